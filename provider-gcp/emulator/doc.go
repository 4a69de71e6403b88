// Package emulator is an in-memory Google Secret Manager for tests and demos, global and regional, over gRPC
// with the published protos. It has pull subscriptions of Pub/Sub, which get a notification of each change. On the same port it has these HTTP endpoints for logins:
//   - the OAuth token endpoint
//   - the token exchange of the Security Token Service
//   - generateAccessToken of the IAM Credentials API
//   - the token of the metadata server
//
// It counts calls and injects faults and latency. It is safe for concurrent use.
package emulator
