// Package dispatch reads remote secrets for many concurrent reconciles over long-lived clients. Requests for the same
// secret share one read, and requests at about the same time share one batch. A reconcile never blocks: it requests
// secrets and returns, and the object is enqueued again when they have arrived. So a provider that hangs occupies no
// worker, and a batch can hold the reads of all due objects, not only those of the objects that occupy a worker.
//
// Values stay in memory from the provider's answer until the reconcile takes them. Concurrent requests create a
// client once. It is replaced when the store's spec or a credential changes, and closed after its last read.
package dispatch
