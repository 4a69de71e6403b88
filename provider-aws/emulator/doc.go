// Package emulator is an in-memory AWS for tests and demos: Secrets Manager,
// Parameter Store and the logins of container registries (AWS JSON 1.1), and
// STS (AWS query protocol), on one HTTP handler. It speaks
// the wire protocol that the unmodified AWS SDKs speak and checks their
// signatures, so nothing in the program under test has to know about it but
// the endpoint.
//
// It keeps the semantics that clients come to depend on: versions and staging
// labels, idempotency tokens, scheduled deletion, names and partial ARNs,
// pagination, filters, size limits and the service's own error codes and
// messages. It counts calls and injects faults, both through Go methods and
// through HTTP below /_control/. Nothing in it ever logs a secret value.
//
// One Emulator is one account in one region.
package emulator
