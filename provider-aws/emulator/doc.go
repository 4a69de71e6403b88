// Package emulator is an in-memory AWS for tests and demos, as one HTTP handler. It emulates Secrets Manager, Parameter Store, SQS with
// the events of EventBridge, and the logins of container registries (AWS JSON), and STS (AWS query protocol). It uses the wire protocol
// of the unmodified AWS SDKs and checks their signatures, so the program under test only needs another endpoint.
//
// It emulates the operations and parameters that the provider uses, with the semantics that the provider depends on. These are versions
// and staging labels, idempotency tokens, scheduled deletion, pagination, size limits, and the services' own error codes and messages.
// It counts calls and injects faults. It never logs a secret value.
//
// One Emulator is one account in one region.
package emulator
