package client

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	corev1 "k8s.io/api/core/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

const vaultName = emulator.DefaultVault

func start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// storeOf returns a store for the default vault.
func storeOf(url string) *v1alpha1.OnePasswordConnect {
	s := &v1alpha1.OnePasswordConnect{}
	s.Namespace, s.Name = "shop", "prod"
	s.Spec.ConnectHost, s.Spec.Vaults = url, []string{vaultName}
	s.Spec.Auth.SecretRef.ConnectTokenSecretRef = common.SecretKeySelector{Name: "onepassword", Key: "token"}
	return s
}

var credentials = fake.Credentials{"token": emulator.DefaultToken, "wrong": "wrong"}

// client connects to a store, which change can alter first.
func client(t testing.TB, srv *emulator.Server, change ...func(*v1alpha1.OnePasswordConnect)) *Client {
	t.Helper()
	s := storeOf(srv.URL())
	for _, f := range change {
		f(s)
	}
	c, err := Connect(t.Context(), s, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := provider.Close(c); err != nil {
			t.Error(err)
		}
	})
	return c.(*Client)
}

// soon returns a context with a deadline, for calls that must not hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// put stores a JSON object of strings as the fields of an item.
func put(srv *emulator.Server) func(context.Context, string, []byte, map[string]string) error {
	return func(_ context.Context, title string, data []byte, tags map[string]string) error {
		var fields map[string]string
		if err := json.Unmarshal(data, &fields); err != nil {
			return errors.New("a field holds text")
		}
		if checkKey(title) != nil {
			return errors.New("no item has such a title")
		}
		var all []string
		for k, v := range tags {
			all = append(all, k+"="+v)
		}
		srv.Put(vaultName, title, fields, all)
		return nil
	}
}

func harness(srv *emulator.Server) conformance.Harness {
	connect := func(change func(*v1alpha1.OnePasswordConnect)) func(context.Context) (provider.Client, error) {
		return func(ctx context.Context) (provider.Client, error) {
			s := storeOf(srv.URL())
			change(s)
			return Connect(ctx, s, credentials)
		}
	}
	const none = "Connect returns only the current version of an item"
	return conformance.Harness{
		Kind: "OnePasswordConnect", Service: emulator.Name,
		Connect: connect(func(*v1alpha1.OnePasswordConnect) {}),
		ConnectDenied: connect(func(s *v1alpha1.OnePasswordConnect) {
			s.Spec.Auth.SecretRef.ConnectTokenSecretRef.Key = "wrong"
		}),
		Spell: func(ctx context.Context, title string) (string, error) {
			c, err := Connect(ctx, storeOf(srv.URL()), credentials)
			if err != nil {
				return "", err
			}
			i, err := c.(*Client).item(ctx, title)
			if err != nil {
				return "", err
			}
			return i.ID, provider.Close(c)
		},
		ConnectElsewhere: connect(func(s *v1alpha1.OnePasswordConnect) { s.Spec.Vaults = []string{"other"} }),
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return Connect(ctx, storeOf(url), credentials)
		},
		Server: srv.URL(),
		Put:    put(srv),
		Delete: func(_ context.Context, title string) error {
			srv.Delete(vaultName, title)
			return nil
		},
		Inject: func(f conformance.Fault) (func(), error) {
			fault := failures[f.Failure]
			fault.Key = f.Key
			return srv.Inject(fault), nil
		},
		JSONOnly: true,
		MaxWrite: corev1.MaxSecretSize,
		Metadata: []string{`{"tags":{"team":"shop"}}`, `{"tags":{"team":"bank"}}`},
		Without: map[string]string{
			"read/json":            "a field holds text",
			"read/version":         none,
			"batch/version":        none,
			"read/missing-version": none,
		},
	}
}

var failures = map[conformance.Failure]emulator.Fault{
	conformance.Denied:      {Status: http.StatusForbidden},
	conformance.Throttled:   emulator.Throttled(),
	conformance.Unavailable: {Status: http.StatusInternalServerError},
	conformance.Hang:        {Hang: true, Status: http.StatusInternalServerError}, // A hanging call must not take effect later.
	conformance.Dropped:     {Call: "GetItem", Empty: true},
}

func TestConformance(t *testing.T) {
	conformance.Run(t, harness(start(t, emulator.WithVault("other"))))
}
