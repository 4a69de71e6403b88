package provider

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// One call of the contract can need many requests: retries, pages of a listing, a login. Quotas and bills count
// requests.
var (
	apiCalls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_provider_api_calls_total",
		Help: "Requests to the API of a provider, including retries, pages and logins, by store kind, operation and response code.",
	}, []string{"kind", "operation", "code"})
	apiCallSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "directsecrets_provider_api_call_duration_seconds",
		Help:    "Time from a request to the API of a provider to the first byte of its response.",
		Buckets: []float64{.01, .05, .25, 1, 5, 15},
	}, []string{"kind", "operation"})
)

func init() { metrics.Registry.MustRegister(apiCalls, apiCallSeconds) }

const (
	// OtherOperation is the operation of a request that a provider cannot name.
	OtherOperation = "other"
	// noAnswer is the code of a request without an answer.
	noAnswer = "none"
	// otherCode is the code of an answer whose status is not one of HTTP's: a server could invent 900 of them.
	otherCode = "other"
)

type kindKey struct{}

// withKind sets the Kind for the requests of a call.
func withKind(ctx context.Context, kind string) context.Context {
	return context.WithValue(ctx, kindKey{}, kind)
}

// Aside returns a context for requests that are not part of one call, such as a login for all calls. It does not end
// with ctx, and takes only the Kind and the tenant from it.
func Aside(ctx context.Context) context.Context {
	kind, _ := ctx.Value(kindKey{}).(string)
	return withKind(quota.With(context.Background(), quota.Of(ctx)), kind)
}

// Work waits until the tenant of a call may do work that takes a processor for long: one caller of each tenant at a time, in turn. The caller
// must call end. The error is that of ctx.
func Work(ctx context.Context) (end func(), err error) { return quota.Of(ctx).Work(ctx) }

// APICall starts the count of one request to the API of a provider. ctx is that of the call of the contract, or
// derived from it. operation and code become labels. So both must come from a short list that neither a tenant nor a
// server can extend, and must never contain a name or an address. The caller must call done once, with the code of
// the answer; empty if there was none.
func APICall(ctx context.Context, operation string) (done func(code string)) {
	kind, _ := ctx.Value(kindKey{}).(string)
	start := time.Now()
	return func(code string) {
		if operation == "" {
			operation = OtherOperation
		}
		if code == "" {
			code = noAnswer
		}
		apiCalls.WithLabelValues(kind, operation, code).Inc()
		apiCallSeconds.WithLabelValues(kind, operation).Observe(time.Since(start).Seconds())
	}
}

// CountCalls returns a transport that counts each request as an APICall. operation returns the operation of a
// request.
func CountCalls(next http.RoundTripper, operation func(*http.Request) string) http.RoundTripper {
	return counted{next, operation}
}

type counted struct {
	next      http.RoundTripper
	operation func(*http.Request) string
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	done := APICall(r.Context(), c.operation(r))
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		done("")
		return nil, err
	}
	code := otherCode
	if http.StatusText(resp.StatusCode) != "" {
		code = strconv.Itoa(resp.StatusCode)
	}
	done(code)
	return resp, nil
}
