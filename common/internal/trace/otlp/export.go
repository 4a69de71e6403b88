// Package otlp sends spans over OTLP to the receiver that the environment variables name.
package otlp

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

const (
	// flushTimeout limits how long a stopping operator waits to send its last spans.
	flushTimeout = 5 * time.Second
	// complainEvery is the minimum time between two log lines about a failing receiver.
	complainEvery = 5 * time.Minute
)

// wanted reports whether the environment names a receiver, by the standard variables of OpenTelemetry.
func wanted() bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Export sends the spans of this process over OTLP to the receiver that the environment names. Without one it does
// nothing. The returned function stops the export and sends the remaining spans, waiting at most flushTimeout. A
// failing receiver is logged at most every complainEvery and blocks nothing: spans are dropped when the buffer is
// full.
func Export(ctx context.Context, module, version string, log *slog.Logger) (stop func(), err error) {
	if !wanted() {
		return func() {}, nil
	}
	otel.SetLogger(logr.Discard()) // It would log headers that cannot be parsed.
	otel.SetErrorHandler(&complaints{log: log, limit: rate.Sometimes{First: 1, Interval: complainEvery}})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, errors.New("cannot send traces: a variable OTEL_EXPORTER_OTLP_… is not valid; correct it")
	}
	// An attribute of the environment that cannot be parsed is reported, and the others are used.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", module), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		otel.Handle(err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	unused := trace.Use(p.Tracer("github.com/direct-secrets/direct-secrets/common"))
	return func() {
		unused()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}, nil
}

// complaints log errors of the exporter at a limited rate.
type complaints struct {
	log   *slog.Logger
	mu    sync.Mutex
	limit rate.Sometimes
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit.Do(func() { c.log.Warn("cannot send traces", "why", why(err)) })
}

var refusal = regexp.MustCompile(`\b[45][0-9]{2}\b`)

// why returns the cause without the receiver's answer, which might repeat the sent headers.
func why(err error) string {
	var u *url.Error
	switch {
	case errors.As(err, &u):
		return u.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "the receiver did not answer in time"
	}
	if status := refusal.FindString(err.Error()); status != "" {
		return "the receiver answers with status " + status
	}
	return "the receiver rejects them"
}
