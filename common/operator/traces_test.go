package operator_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// A receiver receives traces over OTLP.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || req.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, body)
	}))
	t.Cleanup(r.Close)
	return r
}

// spans returns all received spans by id, and the names of the services that have sent them.
func (r *receiver) spans(t *testing.T) (spans map[string]*tracev1.Span, services map[string]bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, services = map[string]*tracev1.Span{}, map[string]bool{}
	for _, b := range r.bodies {
		m := &collector.ExportTraceServiceRequest{}
		if err := proto.Unmarshal(b, m); err != nil {
			t.Fatal(err)
		}
		for _, rs := range m.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				if a.Key == "service.name" {
					services[a.Value.GetStringValue()] = true
				}
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					spans[string(s.SpanId)] = s
				}
			}
		}
	}
	return spans, services
}

// TestTraces is not parallel, because tracing is global to the process.
func TestTraces(t *testing.T) {
	r := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	const value, property = "s3cret-of-the-test", "property-of-the-test"
	e := testenv.NewSerial(t)
	e.Backend.Put("key-of-the-test", []byte(value))
	e.Start()
	es := e.ExternalSecret("db")
	for i := range es.Spec.Data {
		es.Spec.Data[i].SecretKey, es.Spec.Data[i].RemoteRef.Key = property, "key-of-the-test"
	}
	e.Create(es)
	e.WantSecret("db", property, value)
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Stop()

	spans, services := r.spans(t)
	if len(services) != 1 || services[""] {
		t.Errorf("the services are %v, want the module", services)
	}
	var paths []string
	found := false
	for _, s := range spans {
		path := s.Name
		for p := spans[string(s.ParentSpanId)]; p != nil; p = spans[string(p.ParentSpanId)] {
			if !bytes.Equal(p.TraceId, s.TraceId) {
				t.Errorf("%s is in another trace than its parent %s", s.Name, p.Name)
			}
			path = p.Name + " > " + path
		}
		paths = append(paths, path)
		if path != "reconcile > write" {
			continue
		}
		// The same trace must contain the read of the store.
		for _, c := range spans {
			f := spans[string(c.ParentSpanId)]
			if c.Name != "provider call" || f == nil || !bytes.Equal(c.TraceId, s.TraceId) {
				continue
			}
			found = found || f.Name == "fetch" && bytes.Equal(f.ParentSpanId, s.ParentSpanId)
		}
	}
	if !found {
		t.Errorf("A sync must be one trace: a walk with the fetch, its call, and the write.\nspans: %s", strings.Join(paths, "\n"))
	}

	for _, secret := range []string{value, property, "key-of-the-test"} {
		for _, form := range [][]byte{[]byte(secret), []byte(base64.StdEncoding.EncodeToString([]byte(secret)))} {
			for _, b := range r.bodies {
				if bytes.Contains(b, form) {
					t.Errorf("a span contains %q", form)
				}
			}
		}
	}
}
