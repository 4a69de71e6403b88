package provider

import (
	"cmp"
	"context"
	stderrors "errors"
	"slices"
	"sync/atomic"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// A Link is a connected Client, Generator or EventSource. Operators reach the provider's code only through its methods, so that every
// answer counts for a tenant and in the metrics.
//
//structure:exempt It has one method for each function of the contract.
type Link struct {
	// kind is the label of the metrics.
	kind   string
	tenant *quota.Tenant
	// made is the Client, Generator or EventSource.
	made any
	// refused is the error of a call that changes something at the service, and heldBack that of Generate; nil if they are allowed.
	refused, heldBack error
	// received is the result of the last Receive.
	received atomic.Pointer[received]
	// writing are the writes that are in progress, by key.
	writing Locks[string]
}

// NewLink returns a Link to a Client or Generator. kind is a label of the metrics. The answers count for the
// tenant. Operators get a Link from Kind.Connect.
func NewLink(kind string, made any, tenant *quota.Tenant) *Link {
	return &Link{kind: kind, tenant: tenant, made: made}
}

// Capabilities returns the capabilities of the Client or Generator.
func (l *Link) Capabilities() []string { return Capabilities(l.made) }

// Can reports whether the Client or Generator has a capability.
func (l *Link) Can(capability string) bool { return slices.Contains(l.Capabilities(), capability) }

// Close releases the resources of the Client or Generator.
func (l *Link) Close() error { return Close(l.made) }

// context returns the context of a request to the provider.
func (l *Link) context(ctx context.Context) context.Context {
	return withKind(quota.With(ctx, l.tenant), l.kind)
}

// hold counts bytes of an answer for the tenant until ctx ends.
func hold(ctx context.Context, l *Link, bytes int) {
	if bytes == 0 {
		return
	}
	l.tenant.Add(int64(bytes))
	context.AfterFunc(ctx, func() { l.tenant.Add(int64(-bytes)) })
}

// as returns the Client or Generator as one of its interfaces, or errors.ErrUnsupported if it has not that one.
func as[I any](l *Link, what string) (I, error) {
	i, ok := l.made.(I)
	if !ok {
		return i, unsupportedError{what}
	}
	return i, nil
}

// unsupportedError is errors.ErrUnsupported for a Client or Generator that lacks an interface.
type unsupportedError struct{ what string }

// lacking are what users read about a store without an interface, by what it cannot do.
var lacking = map[string]string{
	"write": "the store is read-only, because its Kind cannot write secrets; push to a store of another Kind",
	"find":  "the Kind of this store cannot list secrets, as find needs; name each secret in data or dataFrom.extract, or use a store of another Kind",
}

// Error implements error.
func (e unsupportedError) Error() string {
	return cmp.Or(lacking[e.what], "the Kind of this store does not support the operation; use a store of another Kind")
}

// Unwrap returns errors.ErrUnsupported.
func (unsupportedError) Unwrap() error { return stderrors.ErrUnsupported }

// call makes a call of the contract, unless it is refused.
func call[T any](ctx context.Context, l *Link, name, doing string, refused error, f func(context.Context) (T, error)) (v T, err error) {
	ctx, done := begin(ctx, l, name)
	defer func() { done(err) }()
	if refused != nil {
		return v, refused
	}
	return guard(doing, func() (T, error) { return f(ctx) })
}
