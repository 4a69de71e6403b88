package otlp

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

func TestWanted(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		env    map[string]string
		want   bool
	}{
		"Nothing":   {"Without variables there is no receiver.", nil, false},
		"Endpoint":  {"The endpoint for all signals receives traces.", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, true},
		"Traces":    {"An endpoint for traces alone is enough.", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, true},
		"Disabled":  {"The SDK can be disabled.", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "true"}, false},
		"NoTraces":  {"Traces alone can be disabled.", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, false},
		"SomeOther": {"An endpoint for other signals is not used.", map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			if got := wanted(); got != c.want {
				t.Errorf("%s wanted() = %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

func TestNoReceiver(t *testing.T) {
	stop, err := Export(t.Context(), "module", "v1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := trace.Start(t.Context(), trace.Write)
	span.Note("name", "value")
	span.End("")
	stop()
	if span != nil || ctx != t.Context() || trace.On() {
		t.Error("a span is made without a receiver")
	}
}

// TestRefused checks a receiver that refuses all spans, and repeats the sent header in its answer.
func TestRefused(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such token: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	defer srv.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	stop, err := Export(t.Context(), "module", "v1", log)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 5000 {
		_, span := trace.Start(t.Context(), trace.Write)
		span.End("")
	}
	if took := time.Since(start); took > flushTimeout {
		t.Errorf("refused spans block the stop: %s", took)
	}
	stop()
	if trace.On() {
		t.Error("spans are still made after the stop")
	}
	lines := slices.Collect(strings.Lines(out.String()))
	if len(lines) != 1 || !strings.Contains(lines[0], "the receiver answers with status 401") || strings.Contains(lines[0], "s3cret") {
		t.Errorf("got %q, want one line without the receiver's answer", lines)
	}
}
