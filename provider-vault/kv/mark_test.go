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
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
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

// A lost answer must not lead to a second version, whether the SDK or the caller repeats the request.
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
		begin        string // the value before; empty if there is no secret
		method, path string
		want         string
	}{
		"Create": {"The secret has one version. Its writer is unknown, so it gets no mark.", "", http.MethodPut, data, `1 {"x":"1"} map[]`},
		"Mark":   {"Writing the mark twice has no effect.", "", http.MethodPatch, metadata, `1 {"x":"1"} map[` + markKey + `:` + mark + `]`},
		"Update": {"The value is written once.", `{"y":"theirs"}`, http.MethodPut, data, `2 {"x":"1","y":"theirs"} map[]`},
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
				p := conformance.Pusher{Store: fake.Link("VaultKV", c), Policies: conformance.PushPolicies{Mark: mark, Features: c.Features()}}
				o := p.Apply(t.Context(), shopDB, []conformance.PushValue{{Property: "x", Data: []byte("1")}}, nil)
				if provider.ClassOf(o.Err) == provider.Unavailable && o.Err != nil {
					o = p.Apply(t.Context(), shopDB, []conformance.PushValue{{Property: "x", Data: []byte("1")}}, o.Entries)
				}
				if diff := cmp.Diff(tc.want, storedState(srv)); o.Err != nil || diff != "" {
					t.Errorf("%s outcome %+v; -want, +got:\n%s", tc.reason, o, diff)
				}
			})
		}
	}
}

// A mark is written only to the secret that the call before has created.
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
		want   provider.Class // empty: no error
		stored string
	}{
		"Failing": {
			reason: "Without a mark the secret stays, and is never deleted.",
			hits:   first(2, http.MethodPatch, metadata), answer: vaulttest.Refuse(http.StatusInternalServerError),
			want: provider.Unavailable, stored: `1 {"password":"one"} map[]`,
		},
		"FailingOnce": {
			reason: "Writing the mark is retried.",
			hits:   first(1, http.MethodPatch, metadata), answer: vaulttest.Refuse(http.StatusInternalServerError),
			stored: `1 {"password":"one"} ` + marked,
		},
		"LookFailingOnce": {
			reason: "Reading the metadata before the mark is retried.",
			hits:   first(1, http.MethodGet, metadata), answer: vaulttest.Refuse(http.StatusTooManyRequests),
			stored: `1 {"password":"one"} ` + marked,
		},
		"Ending": {
			reason: "The mark is written although the caller's context ends between the calls.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) { cancel(); vaulttest.Hang(w, r) },
			stored: `1 {"password":"one"} ` + marked,
		},
		"Remade": {
			reason: "A secret that another writer has created again is not marked.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				mustPut(t, srv, "shop/db", `{"theirs":"1"}`)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stored: `1 {"theirs":"1"} map[]`,
		},
		"Gone": {
			reason: "A secret that another writer has deleted is not marked.",
			hits:   first(1, http.MethodGet, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stored: "none",
		},
		"GoneAtLast": {
			reason: "A secret that another writer deletes just before the mark is not marked.",
			hits:   first(1, http.MethodPatch, metadata),
			answer: func(w http.ResponseWriter, r *http.Request) {
				srv.Do(http.MethodDelete, metadata, nil)
				pass.ServeHTTP(w, r)
			},
			want: provider.Conflict, stored: "none",
		},
		"Settings": {
			reason: "A secret whose metadata existed before is not marked.",
			before: func() { srv.Do(http.MethodPost, metadata, M{"custom_metadata": M{"team": "theirs"}}) },
			hits:   first(0, "", ""),
			want:   provider.Conflict, stored: `1 {"password":"one"} map[team:theirs]`,
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
			_, err := fake.Writer(c).Create(within, shopDB, []byte(db), mark)
			if (err == nil) != (tc.want == "") || err != nil && provider.ClassOf(err) != tc.want {
				t.Errorf("%s error %v, want %q", tc.reason, err, tc.want)
			}
			if diff := cmp.Diff(tc.stored, storedState(srv)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
