// Package dispatch reads remote secrets for many reconciles at once, over long-lived clients. Requests for the same secret
// are one read, and requests that come close together go out in one batch. No reconcile blocks: one that asks for secrets
// returns, and is called again when they have arrived. A provider that hangs therefore holds no worker, and batches fill
// from every object that is due rather than from those that hold a worker.
//
// Values live from the answer of the provider until the reconcile that asked takes them. A client is built once under
// concurrent demand, replaced when the store's spec or a credential changes, and closed after its last read.
package dispatch
