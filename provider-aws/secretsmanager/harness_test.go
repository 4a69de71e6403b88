package secretsmanager

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// secrets are what the Secrets of a test hold, by key; the names do not matter.
type secrets map[string]string

func (s secrets) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	return []byte(s[sel.Key]), nil
}

func (secrets) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errors.New("no token")
}

func (secrets) Ambient() error { return store.NewError(store.Invalid, "auth is not set") }

type testStore struct {
	*v1alpha1.AWSSecretsManager
	secrets
}

type option func(*testStore)

func withKey(id, key string) option {
	return func(s *testStore) { s.secrets = secrets{"id": id, "key": key} }
}

func withPrefix(p string) option { return func(s *testStore) { s.Spec.Prefix = p } }

func withRetries(n int32) option {
	return func(s *testStore) { s.Spec.RetrySettings.MaxRetries = &n }
}

func connectTo(t testing.TB, endpoint string, opts ...option) (*Client, error) {
	one := int32(1)
	s := testStore{&v1alpha1.AWSSecretsManager{}, secrets{"id": "test", "key": "test"}}
	s.Namespace, s.Name = "shop", "prod"
	s.Spec.Region, s.Spec.Endpoint = "us-east-1", endpoint
	s.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	s.Spec.Auth = &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{
		AccessKeyIDSecretRef:     common.SecretKeySelector{Name: "aws", Key: "id"},
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "aws", Key: "key"},
	}}
	for _, o := range opts {
		o(&s)
	}
	c, err := Connect(t.Context(), s.AWSSecretsManager, s.secrets)
	if err != nil {
		return nil, err
	}
	return c.(*Client), nil
}

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

func client(t testing.TB, srv *emulator.Server, opts ...option) *Client {
	t.Helper()
	c, err := connectTo(t, srv.URL(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// dropping is an emulator that can leave one secret out of its batches, which AWS never should.
type dropping struct {
	*emulator.Emulator
	url     string
	dropped atomic.Pointer[string]
}

func startDropping(t testing.TB) *dropping {
	d := &dropping{Emulator: emulator.New()}
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	d.url = srv.URL
	return d
}

func (d *dropping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := d.dropped.Load()
	if name == nil || r.Header.Get("X-Amz-Target") != "secretsmanager.BatchGetSecretValue" {
		d.Emulator.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	d.Emulator.ServeHTTP(rec, r)
	out := map[string]any{}
	body := rec.Body.Bytes()
	if json.Unmarshal(body, &out) == nil {
		if values, ok := out["SecretValues"].([]any); ok {
			out["SecretValues"] = slices.DeleteFunc(values, func(v any) bool { return v.(map[string]any)["Name"] == *name })
			body, _ = json.Marshal(out)
		}
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rec.Code)
	_, _ = bytes.NewReader(body).WriteTo(w)
}
