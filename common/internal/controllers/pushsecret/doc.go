// Package pushsecret is the loop that keeps secret stores in step with Secrets: claim, gate, due?, read
// the Secret, compare and write, status.
package pushsecret
