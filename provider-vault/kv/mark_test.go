package kv

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// forward sends a request on to Vault.
func forward(t testing.TB, srv *vaulttest.Server) http.Handler {
	t.Helper()
	u, err := url.Parse(srv.Address)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(u)
}

// An answer that is lost makes no second version, whether the SDK asks again or the caller looks again.
func TestLostAnswers(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	pass := forward(t, srv)
	lost := func(w http.ResponseWriter, r *http.Request) {
		pass.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}
	retried := func(s *v1alpha1.VaultKVSpec) {
		few := int32(3)
		s.RetrySettings = &common.RetrySettings{MaxRetries: &few, RetryInterval: "1ms"}
	}
	const data, metadata = "secret/data/shop/db", "secret/metadata/shop/db"
	cases := map[string]struct {
		reason       string
		begin        string // the value before; none: there is no secret
		method, path string
		want         string
	}{
		"Create": {"It is there once. Nothing proves who made it, so it bears no mark.", "", http.MethodPut, data, `1 {"x":"1"} map[]`},
		"Mark":   {"A mark can be written twice.", "", http.MethodPatch, metadata, `1 {"x":"1"} map[` + markKey + `:` + mark + `]`},
		"Update": {"It is written once.", `{"y":"theirs"}`, http.MethodPut, data, `2 {"x":"1","y":"theirs"} map[]`},
	}
	for name, tc := range cases {
		for how, opts := range map[string][]func(*v1alpha1.VaultKVSpec){"again": nil, "retried": {retried}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				c := connect(t, appRole(srv.URL, opts...), secrets)
				defer srv.Do(http.MethodDelete, metadata, nil)
				if tc.begin != "" {
					mustPut(t, srv, "shop/db", tc.begin)
				}
				defer srv.Inject(first(1, tc.method, tc.path), lost)()
				p := conformance.Pusher{Kind: "VaultKV", Writer: c, Policies: conformance.PushPolicies{Mark: mark, Features: c.Features()}}
				o := p.Apply(t.Context(), shopDB, []conformance.PushValue{{Property: "x", Data: []byte("1")}}, nil)
				if provider.ClassOf(o.Err) == provider.Unavailable && o.Err != nil {
					o = p.Apply(t.Context(), shopDB, []conformance.PushValue{{Property: "x", Data: []byte("1")}}, o.Entries)
				}
				if diff := cmp.Diff(tc.want, stands(srv)); o.Err != nil || diff != "" {
					t.Errorf("%s outcome %+v; -want, +got:\n%s", tc.reason, o, diff)
				}
			})
		}
	}
}

// A mark is written only on what the call before has made.
func TestMark(t *testing.T) {
	const metadata = "secret/metadata/shop/db"
	const marked = `map[` + markKey + `:` + mark + `]`
	srv, secrets := writable(t, "secret/*")
	pass := forward(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cases := map[string]struct {
		reason string
		before func()
		hits   func(vaulttest.Call) bool
		answer http.HandlerFunc
		want   provider.Class // none: no error
		stands string
	}{
		"Failing": {
			reason: "Without a mark the secret stands, and nobody will delete it.",
			hits:   first(2, http.MethodPatch, metadata), answer: vaulttest.Refuse(http.StatusInternalServerError),
			want: provider.Unavailable, stands: `1 {"password":"one"} map[]`,
		},
		"FailingOnce": {
			reason: "It is tried again.",
			hits:   first(1, http.MethodPatch, metadata), answer: vaulttest.Refuse(http.StatusInternalServerError),
			stands: `1 {"password":"one"} ` + marked,
		},
		"LookFailingOnce": {
			reason: "So is the look before it.",
			hits:   first(1, http.MethodGet, metadata), answer: vaulttest.Refuse(http.StatusTooManyRequests),
			stands: `1 {"password":"one"} ` + marked,
		},
		"Ending": {
			reason: "The operator ends between the calls.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) { cancel(); vaulttest.Hang(w, r) },
			stands: `1 {"password":"one"} ` + marked,
		},
		"Remade": {
			reason: "Somebody deletes it and makes another one.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				mustPut(t, srv, "shop/db", `{"theirs":"1"}`)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stands: `1 {"theirs":"1"} map[]`,
		},
		"Gone": {
			reason: "Somebody deletes it.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stands: "none",
		},
		"GoneAtLast": {
			reason: "Somebody deletes it after the look.",
			hits:   first(1, http.MethodPatch, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stands: "none",
		},
		"Settings": {
			reason: "Somebody has made it already, if only its settings.",
			before: func() { srv.Do(http.MethodPost, metadata, M{"custom_metadata": M{"team": "theirs"}}) },
			hits:   first(0, "", ""),
			want:   provider.Conflict, stands: `1 {"password":"one"} map[team:theirs]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := connect(t, appRole(srv.URL), secrets)
			reads(t, connectPut(t, srv, c), 1)
			srv.Do(http.MethodDelete, metadata, nil)
			defer srv.Do(http.MethodDelete, metadata, nil)
			if tc.before != nil {
				tc.before()
			}
			defer srv.Inject(tc.hits, tc.answer)()
			within := t.Context()
			if name == "Ending" {
				within = ctx
			}
			_, err := c.Create(within, shopDB, []byte(db), mark)
			if (err == nil) != (tc.want == "") || err != nil && provider.ClassOf(err) != tc.want {
				t.Errorf("%s error %v, want %q", tc.reason, err, tc.want)
			}
			if diff := cmp.Diff(tc.stands, stands(srv)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
