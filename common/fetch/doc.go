// Package fetch reads remote secrets for many reconciles at once. Requests for the same secret are
// one read, requests that come close together go out in one batch, and nobody blocks: a reconcile
// that asks for secrets returns, and is called again when they are there. A provider that hangs
// therefore holds no worker, and batches fill from every object that is due rather than from those
// that hold a worker.
//
// Values live from the answer of the provider until the reconcile that asked takes them.
package fetch
