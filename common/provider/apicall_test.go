package provider_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestCountCalls(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(code)
	}))
	defer srv.Close()
	c := &http.Client{Transport: provider.CountCalls(srv.Client().Transport, func(r *http.Request) string { return r.Header.Get("Operation") })}
	ask := func(ctx context.Context, operation, path string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Operation", operation)
		resp, err := c.Do(r)
		if err != nil {
			return
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}

	kind := t.Name()
	before, callsBefore := conformance.APICalls(t, kind), callsOf(t, kind)
	_, err := fake.Link(kind, getter(func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
		for _, path := range []string{"200", "200", "429", "742", "743", "aborted"} {
			ask(ctx, "read", path)
		}
		ask(ctx, "", "200")
		return echo(ctx, ref)
	})).Get(t.Context(), provider.Ref{Key: "shop/db"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"read 200": 2, "read 429": 1, "read other": 2, "read none": 1, "other 200": 1}
	got := conformance.APICalls(t, kind)
	for request, n := range before {
		got[request] -= n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each request must count, and a server must not add labels.\nrequests: -want, +got:\n%s", diff)
	}
	calls := callsOf(t, kind)
	calls["Get ok"] -= callsBefore["Get ok"]
	if diff := cmp.Diff(map[string]float64{"Get ok": 1}, calls); diff != "" {
		t.Errorf("The requests must be one call of the contract: -want, +got:\n%s", diff)
	}
}
