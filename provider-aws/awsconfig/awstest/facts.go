package awstest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// queryError is the header with the code of an error in the query protocol.
const queryError = "X-Amzn-Query-Error"

// A seen is what a fact and an answer of the emulator must have in common.
type seen struct {
	Status                 int
	Code, Text, QueryError string
}

func seenIn(status int, queryError string, body []byte) seen {
	var b struct {
		Type    string `json:"__type"`
		Message string // The decoder also accepts message.
	}
	_ = json.Unmarshal(body, &b) // An answer without these fields has other differences.
	_, code, named := strings.Cut(b.Type, "#")
	if !named {
		code = b.Type
	}
	return seen{status, code, b.Message, queryError}
}

// RunFacts makes the operation of each fact, with a server that answers as recorded, and with an emulator in the state of the fact.
// call makes it with a client of an endpoint, and prepare brings an emulator into a state.
func RunFacts(t *testing.T, call func(t *testing.T, endpoint string, f conformance.Fact) error, prepare func(t *testing.T, srv *emulator.Server, state string)) {
	t.Helper()
	for _, f := range conformance.Facts(t, "recorded.json") {
		t.Run(f.Operation+" "+f.State, func(t *testing.T) {
			recorded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range f.Header {
					w.Header().Set(k, v)
				}
				w.Header().Set("Content-Type", "application/x-amz-json-1.1")
				w.WriteHeader(f.Status)
				_, _ = w.Write(f.Body) // The client reads all of it.
			}))
			t.Cleanup(recorded.Close)
			if got := classOf(call(t, recorded.URL, f)); got != f.Want {
				t.Errorf("the recorded answer has the class %q, want %q", got, f.Want)
			}

			srv := Start(t)
			prepare(t, srv, f.State)
			var last seen
			proxy := httptest.NewServer(listen(t, srv.URL(), &last))
			t.Cleanup(proxy.Close)
			if got := classOf(call(t, proxy.URL, f)); got != f.Want {
				t.Errorf("the answer of the emulator has the class %q, want %q", got, f.Want)
			}
			diff := cmp.Diff(seenIn(f.Status, f.Header[queryError], f.Body), last)
			if (diff != "") != (f.Differs != "") {
				t.Errorf("the emulator differs because %q: -recorded, +emulator:\n%s", f.Differs, diff)
			}
		})
	}
}

func classOf(err error) provider.Class {
	if err == nil {
		return ""
	}
	return provider.ClassOf(err)
}

// listen passes requests on to an emulator, and keeps its last answer.
func listen(t *testing.T, to string, last *seen) http.Handler {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			*last = seenIn(r.StatusCode, r.Header.Get(queryError), body)
			return err
		},
	}
}
