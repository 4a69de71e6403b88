package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Fact is one answer that a real service was seen to give. A provider keeps its facts in testdata/recorded.json, written by
// hand: status, codes, names of fields and the words on which a class depends are the service's, all values are our own. A test
// feeds each fact to the real client, and compares the provider's emulator with it.
type Fact struct {
	Operation string // Operation is the call, by the name of the service.
	State     string // State says what the call met: "no such secret".
	Source    string // Source is the recording, issue or page that shows the answer, and Date its day.
	Date      string
	Status    int               // Status is that of HTTP; 0 for gRPC.
	Code      string            // Code is the error's code in the body, or gRPC's; empty for a result.
	Header    map[string]string // Header are the fields on which a result depends.
	Body      json.RawMessage   // Body is the answer of HTTP; a JSON string is a text, such as gRPC's, a page or XML.
	// Want is the class of the error that the client returns, or empty if it returns none.
	Want provider.Class
	// Differs is the reason why the emulator answers otherwise. It is empty if status, code and text are those of the fact.
	Differs string
}

// Facts returns the recorded facts of the package under test, by file name of testdata. Each has a source.
func Facts(t *testing.T, name string) []Fact {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatalf("cannot read the recorded facts: %v", err)
	}
	var facts []Fact
	if err := json.Unmarshal(raw, &facts); err != nil {
		t.Fatalf("cannot decode the recorded facts: %v", err)
	}
	for i, f := range facts {
		if f.Operation == "" || f.State == "" || f.Source == "" || f.Date == "" {
			t.Fatalf("recorded fact %d needs an operation, a state, a source and a date", i)
		}
	}
	return facts
}

// ServeHTTP answers a request as recorded.
func (f Fact) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(f.Raw()) // The client reads all of it.
}

// Raw returns the body of the answer.
func (f Fact) Raw() []byte {
	var text string
	if json.Unmarshal(f.Body, &text) == nil {
		return []byte(text)
	}
	return f.Body
}

// A FactHarness makes the operations of facts with the real client, for RunFacts.
type FactHarness struct {
	// Prepare brings a server, such as the emulator, into the state of a fact, and returns its URL.
	Prepare func(t *testing.T, f Fact) string
	// Call makes the operation of a fact with a client of a URL.
	Call func(t *testing.T, url string, f Fact) error
	// Answers reports whether a fact is the answer to a request of its operation. The server answers the others. nil means all.
	Answers func(f Fact, r *http.Request) bool
	// Seen returns what a fact and an answer of the server must have in common.
	Seen func(status int, h http.Header, body []byte) any
	// Absent are the states that say that a secret, key or version does not exist. No other answer is NotFound, whatever the operation.
	Absent []string
}

// RunFacts compares the client and a server with the recorded facts of the package under test.
func RunFacts(t *testing.T, h FactHarness) {
	t.Helper()
	facts := Facts(t, "recorded.json")
	var operations []string
	for _, f := range facts {
		if !slices.Contains(operations, f.Operation) {
			operations = append(operations, f.Operation)
		}
	}
	for _, f := range facts {
		t.Run(f.Operation+" "+f.State, func(t *testing.T) {
			if got := h.replay(t, f); got != f.Want {
				t.Errorf("the recorded answer has the class %q, want %q", got, f.Want)
			}
			h.compare(t, f)
			for _, f.Operation = range operations {
				if h.replay(t, f) == provider.NotFound && !slices.Contains(h.Absent, f.State) {
					t.Errorf("%s: this answer does not say that a secret or key does not exist, but is NotFound", f.Operation)
				}
			}
		})
	}
}

// replay makes the operation of a fact, which a server answers as recorded, and returns the class of the error.
func (h FactHarness) replay(t *testing.T, f Fact) provider.Class {
	t.Helper()
	answered := false
	at := h.through(t, f, func(*http.Response) error { return nil }, func(w http.ResponseWriter, r *http.Request) bool {
		if h.Answers != nil && !h.Answers(f, r) {
			return false
		}
		answered = true
		f.ServeHTTP(w, r)
		return true
	})
	got := classOf(h.Call(t, at, f))
	if !answered {
		t.Errorf("the client makes no request of the operation %s", f.Operation)
	}
	return got
}

// compare makes the operation of a fact with a server in the state of the fact.
func (h FactHarness) compare(t *testing.T, f Fact) {
	t.Helper()
	var last any
	at := h.through(t, f, func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if h.Answers == nil || h.Answers(f, resp.Request) {
			last = h.Seen(resp.StatusCode, resp.Header, body)
		}
		return err
	}, func(http.ResponseWriter, *http.Request) bool { return false })
	got := classOf(h.Call(t, at, f))
	recorded := httptest.NewRecorder()
	f.ServeHTTP(recorded, nil)
	diff := cmp.Diff(h.Seen(f.Status, recorded.Header(), f.Raw()), last)
	if (diff != "") != (f.Differs != "") {
		t.Errorf("the server differs because %q: -recorded, +server:\n%s", f.Differs, diff)
	}
	if f.Differs == "" && got != f.Want {
		t.Errorf("the answer of the server has the class %q, want %q", got, f.Want)
	}
}

// through returns the URL of a proxy of a server in the state of a fact. The proxy passes on what answer does not answer.
func (h FactHarness) through(t *testing.T, f Fact, modify func(*http.Response) error, answer func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	u, err := url.Parse(h.Prepare(t, f))
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host },
		ModifyResponse: modify,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func classOf(err error) provider.Class {
	if err == nil {
		return ""
	}
	return provider.ClassOf(err)
}
