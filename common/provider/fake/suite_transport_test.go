package fake_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const password = "right"

// secretJSON is the answer with a secret, and problemJSON the answer without one.
type (
	secretJSON struct {
		Key     *string `json:"key"`
		Value   []byte  `json:"value"`
		Version string  `json:"version"`
	}
	listJSON struct {
		Keys []string `json:"keys"`
	}
	problemJSON struct {
		Problem string `json:"problem"`
	}
)

// webServer serves a backend over HTTP.
func webServer(t *testing.T, b *fake.Backend) *httptest.Server {
	t.Helper()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := func(status int, v any) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v) // The client might have closed the connection.
		}
		key := r.URL.Query().Get("key")
		if r.Header.Get("Authorization") != "Bearer "+password {
			answer(http.StatusForbidden, problemJSON{"denied"})
			return
		}
		if key == "" {
			list := listJSON{Keys: []string{}}
			for v, err := range c.(provider.Finder).Find(r.Context(), provider.Query{}) {
				if err == nil {
					list.Keys = append(list.Keys, v.Key)
				}
			}
			answer(http.StatusOK, list)
			return
		}
		v, err := c.Get(r.Context(), provider.Ref{Key: key})
		if err != nil {
			answer(http.StatusNotFound, problemJSON{"missing"})
			return
		}
		answer(http.StatusOK, secretJSON{&v.Key, v.Data, v.Version})
	}))
	t.Cleanup(srv.Close)
	return srv
}

// A webClient reads a webServer. Tests replace its functions to break it.
type webClient struct {
	url  string
	http *http.Client

	explain func(error) error                                  // It is the error of a call without an answer.
	refuse  func(status int, raw []byte) error                 // It is the error of an unsuccessful answer.
	decode  func(raw []byte, into any) error                   // It decodes a successful answer.
	during  func(context.Context) context.Context              // It is the context of a call.
	finish  func(raw []byte, err error) (read []byte, _ error) // It completes the read of an answer.
	list    func(listJSON) error
}

func newWebClient(url string) *webClient {
	return &webClient{
		url: url,
		http: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		explain: explainWeb,
		refuse:  refuseWeb,
		decode: func(raw []byte, into any) error {
			if json.Unmarshal(raw, into) != nil {
				return provider.NewError(provider.Unavailable, "the answer is damaged")
			}
			return nil
		},
		during: func(ctx context.Context) context.Context { return ctx },
		finish: func(raw []byte, err error) ([]byte, error) { return raw, err },
		list: func(l listJSON) error {
			if l.Keys == nil {
				return provider.NewError(provider.Unavailable, "the answer lacks the list")
			}
			return nil
		},
	}
}

func explainWeb(err error) error {
	var dns *net.DNSError
	switch fault := provider.CertificateFaultOf(err); {
	case fault != "":
		return provider.NewError(provider.Unavailable, "spec.server: the certificate %s", fault)
	case errors.As(err, &dns):
		return provider.NewError(provider.Unavailable, "spec.server: cannot resolve %q", dns.Name)
	}
	return provider.Safe(err)
}

func refuseWeb(status int, raw []byte) error {
	var p problemJSON
	if json.Unmarshal(raw, &p) == nil && status == http.StatusNotFound && p.Problem == "missing" {
		return provider.NewError(provider.NotFound, "does not exist")
	}
	return provider.NewError(provider.Unavailable, "the server answers with status %d", status)
}

func (c *webClient) call(ctx context.Context, key string, into any) error {
	req, err := http.NewRequestWithContext(c.during(ctx), http.MethodGet, c.url+"/?key="+url.QueryEscape(key), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+password)
	resp, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer func() { _ = resp.Body.Close() }() // The body has been read.
	raw, err := c.finish(io.ReadAll(resp.Body))
	if err != nil {
		return c.explain(err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.refuse(resp.StatusCode, raw)
	}
	return c.decode(raw, into)
}

// Get reads one secret.
func (c *webClient) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	var s secretJSON
	if err := c.call(ctx, ref.Key, &s); err != nil {
		return provider.Value{}, err
	}
	if s.Key == nil || *s.Key != ref.Key {
		return provider.Value{}, provider.NewError(provider.Unavailable, "the answer is not of this secret")
	}
	return provider.Value{Key: *s.Key, Data: s.Value, Version: s.Version}, nil
}

// Find lists, and reads the matching secrets.
func (c *webClient) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		var l listJSON
		err := c.call(ctx, "", &l)
		if err == nil {
			err = c.list(l)
		}
		if err != nil {
			yield(provider.Value{}, err)
			return
		}
		for _, key := range l.Keys {
			if q.Name != nil && !q.Name.MatchString(key) {
				continue
			}
			v, err := c.Get(ctx, provider.Ref{Key: key})
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Check lists.
func (c *webClient) Check(ctx context.Context) error {
	var l listJSON
	if err := c.call(ctx, "", &l); err != nil {
		return err
	}
	return c.list(l)
}

var _ provider.Finder = &webClient{}
var _ provider.Checker = &webClient{}

// webChecks returns the transport checks for clients that were changed by spoil.
func webChecks(t *testing.T, spoil func(*webClient), change func(*conformance.Harness)) []conformance.Check {
	t.Helper()
	b := fake.New()
	h := conformance.Fake(b)
	b.SetPassword("")
	srv := webServer(t, b)
	h.EndTimeout = 300 * time.Millisecond
	h.Without = nil
	h.Server = srv.URL
	h.ConnectTo = func(_ context.Context, url string) (provider.Client, error) {
		c := newWebClient(url)
		spoil(c)
		return c, nil
	}
	connectTo := h.ConnectTo
	h.Connect = func(ctx context.Context) (provider.Client, error) { return connectTo(ctx, srv.URL) }
	change(&h)
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(checks, func(c conformance.Check) bool { return !strings.HasPrefix(c.Name, "transport/") })
}

func nothing(*webClient)            {}
func asItIs(*conformance.Harness)   {}
func unavailable(text string) error { return provider.NewError(provider.Unavailable, "%s", text) }

func TestTransport(t *testing.T) {
	checks := webChecks(t, nothing, asItIs)
	if len(checks) == 0 {
		t.Error("there are no checks of the transport")
	}
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("%s:\n%v", c.Reason, err)
			}
		})
	}
}

func TestTransportCatches(t *testing.T) {
	certificates := []string{"transport/unknown-authority", "transport/expired-certificate", "transport/other-name"}
	cases := map[string]struct {
		reason string
		spoil  func(*webClient)
		want   []string // They are the only checks that must fail.
	}{
		"TrustsAnybody": {
			reason: "A client that does not verify certificates shows its credentials to any server.",
			spoil:  func(c *webClient) { c.http.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true }, //nolint:gosec // G402: this is the defect.
			want:   certificates,
		},
		"TellsNothing": {
			reason: "The message must name the problem of a certificate or a host name.",
			spoil: func(c *webClient) {
				c.explain = func(error) error { return unavailable("spec.server: cannot connect") }
			},
			want: append(slices.Clone(certificates), "transport/no-such-host"),
		},
		"NamesNoField": {
			reason: "The message must name the field to fix.",
			spoil: func(c *webClient) {
				c.explain = func(err error) error {
					return unavailable(strings.TrimPrefix(explainWeb(err).Error(), "spec.server: "))
				}
			},
			want: append(slices.Clone(certificates), "transport/no-such-host"),
		},
		"RefusedIsMissing": {
			reason: "An unreachable server that is reported as missing would delete keys.",
			spoil: func(c *webClient) {
				c.explain = func(err error) error {
					if strings.Contains(err.Error(), "refused") {
						return provider.NewError(provider.NotFound, "does not exist")
					}
					return explainWeb(err)
				}
			},
			want: []string{"transport/refused"},
		},
		"NoTLSIsInvalid": {
			reason: "A failed connection can be retried.",
			spoil: func(c *webClient) {
				c.explain = func(err error) error {
					if errors.Is(err, http.ErrSchemeMismatch) {
						return provider.NewError(provider.Invalid, "no TLS")
					}
					return explainWeb(err)
				}
			},
			want: []string{"transport/no-tls"},
		},
		"ContextIgnored": {
			reason: "A server that hangs would block a worker forever.",
			spoil:  func(c *webClient) { c.during = func(context.Context) context.Context { return context.Background() } },
			want:   []string{"transport/silent"},
		},
		"AnyPageIsMissing": {
			reason: "A 404 of a proxy that is reported as missing would delete keys.",
			spoil: func(c *webClient) {
				c.refuse = func(status int, raw []byte) error {
					if status == http.StatusNotFound {
						return provider.NewError(provider.NotFound, "does not exist")
					}
					return refuseWeb(status, raw)
				}
			},
			want: []string{"transport/cut", "transport/garbage"},
		},
		"AnswerShown": {
			reason: "An invalid answer might contain a secret, so it must not be shown.",
			spoil: func(c *webClient) {
				c.decode = func(raw []byte, into any) error {
					if json.Unmarshal(raw, into) != nil {
						return unavailable("the answer is damaged: " + string(raw))
					}
					return nil
				}
			},
			want: []string{"transport/garbage"},
		},
		"NothingIsEmpty": {
			reason: "An empty answer is not an empty list.",
			spoil: func(c *webClient) {
				c.decode = func(raw []byte, into any) error {
					if len(raw) > 0 && json.Unmarshal(raw, into) != nil {
						return unavailable("the answer is damaged")
					}
					return nil
				}
				c.list = func(listJSON) error { return nil }
			},
			want: []string{"transport/garbage"},
		},
		"CutIsWhole": {
			reason: "A truncated answer must not be used.",
			spoil: func(c *webClient) {
				c.finish = func(raw []byte, _ error) ([]byte, error) { return raw, nil }
				c.decode = func(raw []byte, into any) error {
					if json.Unmarshal(raw, into) != nil && !strings.HasPrefix(string(raw), "{") {
						return unavailable("the answer is damaged")
					}
					return nil
				}
				c.list = func(listJSON) error { return nil }
			},
			want: []string{"transport/cut"},
		},
		"Redirected": {
			reason: "A client that follows redirects sends its credentials to another server.",
			spoil:  func(c *webClient) { c.http.CheckRedirect = nil },
			want:   []string{"transport/redirect"},
		},
		"Strict": {
			reason: "A newer server must not break all reads.",
			spoil: func(c *webClient) {
				c.decode = func(raw []byte, into any) error {
					d := json.NewDecoder(strings.NewReader(string(raw)))
					d.DisallowUnknownFields()
					if d.Decode(into) != nil {
						return unavailable("the answer is damaged")
					}
					return nil
				}
			},
			want: []string{"transport/newer"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(sorted(tc.want), failures(t, webChecks(t, tc.spoil, asItIs))); diff != "" {
				t.Errorf("%s\nchecks that fail: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTransportReadsHarness(t *testing.T) {
	var all []string
	for _, c := range webChecks(t, nothing, asItIs) {
		all = append(all, c.Name)
	}
	cases := map[string]struct {
		reason string
		change func(*conformance.Harness)
		want   []string // They are the only checks that must fail.
	}{
		"NoConnectTo": {
			reason: "A harness without ConnectTo does not conform.",
			change: func(h *conformance.Harness) { h.ConnectTo = nil },
			want:   all,
		},
		"NoServer": {
			reason: "The proxy checks need the provider's server.",
			change: func(h *conformance.Harness) { h.Server = "" },
			want: []string{
				"transport/unknown-authority", "transport/expired-certificate", "transport/other-name",
				"transport/cut", "transport/redirect", "transport/newer",
			},
		},
		"ElsewhereIgnored": {
			reason: "A client that ignores the URL of ConnectTo proves nothing.",
			change: func(h *conformance.Harness) {
				h.ConnectTo = func(ctx context.Context, _ string) (provider.Client, error) { return h.Connect(ctx) }
			},
			want: all,
		},
		"NoNetwork": {
			reason: "A provider without a network names that in Without.",
			change: func(h *conformance.Harness) {
				h.ConnectTo, h.Without = nil, map[string]string{"transport": "there is no network"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks := webChecks(t, nothing, tc.change)
			if diff := cmp.Diff(sorted(tc.want), failures(t, checks)); diff != "" {
				t.Errorf("%s\nchecks that fail: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// failures returns the sorted names of the failed checks.
func failures(t *testing.T, checks []conformance.Check) (names []string) {
	t.Helper()
	for _, c := range checks {
		if err := c.Run(t.Context()); err != nil {
			t.Logf("%s: %v", c.Name, err)
			names = append(names, c.Name)
		}
	}
	return sorted(names)
}
