// Package dispatch reads remote secrets for many concurrent walks over long-lived clients. Requests for the same secret
// share one read, and requests at about the same time share one batch.
//
// Values stay in memory from the provider's answer until the walk releases them. Concurrent requests create a client
// once. It is replaced when the store's spec or a credential changes, and closed after its last read.
package dispatch
