// Package emulator is an in-memory 1Password Connect server for tests and demos, over HTTP with the documented REST API: vaults,
// items, and files. It has no older versions of items, like Connect.
//
// It counts calls and injects faults and latency. It is safe for concurrent use.
package emulator
