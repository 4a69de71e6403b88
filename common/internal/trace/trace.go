// Package trace makes the spans of a sync: reconcile, fetch, provider call and write. Without a receiver it does
// nothing, and a Span is a nil pointer. Spans hold names that events show as well, Kinds and reasons. They never hold
// a key, a value or the text of an error.
package trace

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of spans.
const (
	Reconcile = "reconcile"
	Fetch     = "fetch"
	Call      = "provider call"
	Write     = "write"
)

// ok is the result of a success.
const ok = "ok"

// tracer sends spans to the receiver; nil if there is none.
var tracer atomic.Pointer[oteltrace.Tracer]

// A Parent is the parent of other spans, which can outlive it. The zero Parent is no span.
type Parent struct{ span oteltrace.SpanContext }

// From returns the span of ctx.
func From(ctx context.Context) Parent {
	if tracer.Load() == nil {
		return Parent{}
	}
	return Parent{oteltrace.SpanContextFromContext(ctx)}
}

// On reports whether there is a receiver.
func On() bool { return tracer.Load() != nil }

// Use makes spans with a tracer until the returned function is called.
func Use(t oteltrace.Tracer) (stop func()) {
	tracer.Store(&t)
	return func() { tracer.CompareAndSwap(&t, nil) }
}

type linksKey struct{}

// Under returns a context whose next span has the first of parents as its parent, and links to the others: one call
// can be made for many objects.
func Under(ctx context.Context, parents ...Parent) context.Context {
	var links []oteltrace.Link
	seen := map[oteltrace.SpanID]bool{}
	for _, p := range parents {
		id := p.span.SpanID()
		switch {
		case !p.span.IsValid(), seen[id]:
		case len(seen) > 0:
			links = append(links, oteltrace.Link{SpanContext: p.span})
			seen[id] = true
		default:
			ctx = oteltrace.ContextWithSpanContext(ctx, p.span)
			seen[id] = true
		}
	}
	if len(links) > 0 {
		ctx = context.WithValue(ctx, linksKey{}, links)
	}
	return ctx
}

// A Span is a step under way; nil without a receiver.
type Span struct{ span oteltrace.Span }

// Start starts a step. attributes are pairs of name and value.
func Start(ctx context.Context, step string, attributes ...string) (context.Context, *Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, nil
	}
	var opts []oteltrace.SpanStartOption
	if links, _ := ctx.Value(linksKey{}).([]oteltrace.Link); len(links) > 0 {
		opts = append(opts, oteltrace.WithLinks(links...))
		ctx = context.WithValue(ctx, linksKey{}, nil)
	}
	if step == Call {
		opts = append(opts, oteltrace.WithSpanKind(oteltrace.SpanKindClient))
	}
	ctx, span := (*t).Start(ctx, step, opts...)
	for i := 0; i+1 < len(attributes); i += 2 {
		span.SetAttributes(attribute.String(attributes[i], attributes[i+1]))
	}
	return ctx, &Span{span}
}

// Of returns the attributes of an object. They hold only its kind and name, which events show, too.
func Of(kind string, o metav1.Object) []string {
	return []string{"directsecrets.kind", kind, "k8s.namespace.name", o.GetNamespace(), "directsecrets.name", o.GetName()}
}

// Parent returns the span as a parent of other spans.
func (s *Span) Parent() Parent {
	if s == nil {
		return Parent{}
	}
	return Parent{s.span.SpanContext()}
}

// Note adds an attribute.
func (s *Span) Note(name, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// End ends the step. result is the class of its error, or a reason; "ok" or "" for a success. Never pass the error's
// text: an API server or a provider might repeat sent values in it.
func (s *Span) End(result string) {
	if s == nil {
		return
	}
	if result == "" {
		result = ok
	}
	s.span.SetAttributes(attribute.String("directsecrets.result", result))
	if result != ok {
		s.span.SetStatus(codes.Error, result)
	}
	s.span.End()
}

// Result returns the result of a request to an API server: the reason of its error, or "error" if that has none.
func Result(err error) string {
	switch reason := kerrors.ReasonForError(err); {
	case err == nil:
		return ok
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	}
	return "error"
}
