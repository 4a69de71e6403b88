// Package emulator is an in-memory Google Secret Manager, for tests and demos. It speaks gRPC from
// the published protos, global and regional, and the endpoints over HTTP by which one logs in: the OAuth
// token endpoint, the exchange of tokens of the Security Token Service, generateAccessToken of the IAM
// Credentials API, and the token of the metadata server. All of them share one port.
//
// It counts calls and injects faults and latency. It is safe for concurrent use.
package emulator
