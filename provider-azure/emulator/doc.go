// Package emulator is an in-memory Azure Key Vault for tests and demos. On the same port it has the token endpoint of Microsoft Entra
// ID for one tenant, and the token endpoint of the instance metadata service (IMDS). Its vault has secrets with versions, tags,
// attributes, soft deletion and purge protection, and certificates and keys with versions, tags and attributes. It is also a container
// registry that issues tokens, but has no images.
//
// It counts calls and injects faults and latency. It is safe for concurrent use.
package emulator
