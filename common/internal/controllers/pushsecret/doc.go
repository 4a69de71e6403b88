// Package pushsecret is the controller that keeps secret stores in sync with Secrets. Its steps are: claim, gate, due
// check, read the Secret, compare and write, status.
package pushsecret
