package client

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
)

const (
	remote    = "remote"
	elsewhere = "elsewhere"
)

var (
	plane *controlplane.ControlPlane
	admin client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) (err error) {
		plane = c
		admin, err = client.New(c.Config(), client.Options{})
		for _, ns := range []string{remote, elsewhere} {
			if err == nil {
				err = admin.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
			}
		}
		return err
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tokenWith returns a token of a new ServiceAccount that is allowed what the rules say in namespace remote, and elsewhere
// if it exists there.
func tokenWith(t testing.TB, name string, verbs ...string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: remote, Name: name}}
	must(t, admin.Create(t.Context(), account))
	for _, ns := range []string{remote, elsewhere} {
		meta := metav1.ObjectMeta{Namespace: ns, Name: name}
		must(t, admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: verbs}}}))
		must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: remote, Name: name}}}))
	}
	request := &authenticationv1.TokenRequest{}
	must(t, admin.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// store returns a store that logs in with the token under key.
func store(server, namespace, key string) *v1alpha1.KubernetesSecrets {
	s := &v1alpha1.KubernetesSecrets{Spec: v1alpha1.KubernetesSecretsSpec{
		RemoteNamespace: namespace, Server: &v1alpha1.KubernetesServer{URL: server},
		Auth: &v1alpha1.KubernetesAuth{Token: &v1alpha1.KubernetesToken{BearerToken: common.SecretKeySelector{Name: "kube", Key: key}}},
	}}
	s.Namespace, s.Name = "shop", "prod"
	return s
}

// A faulty is an API server without TLS, in front of the real one, that fails if told so.
type faulty struct {
	*httptest.Server

	mu    sync.Mutex
	fault *conformance.Fault
	calls []string
}

func newFaulty(t testing.TB) *faulty {
	t.Helper()
	config := rest.AnonymousClientConfig(plane.Config())
	to, err := url.Parse(config.Host)
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	f := &faulty{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: f.modify}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.calls = append(f.calls, r.Method+" "+r.URL.Path)
		fault := f.fault
		f.mu.Unlock()
		if fault == nil || strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews") && fault.Failure == conformance.Denied ||
			fault.Key != "" && !strings.HasSuffix(r.URL.Path, "/"+fault.Key) || fault.Failure == conformance.Dropped {
			proxy.ServeHTTP(w, r)
			return
		}
		switch fault.Failure {
		default:
			refuse(w, fault.Failure)
		case conformance.Hang:
			_, _ = io.Copy(io.Discard, r.Body) // The end of a connection shows only after its body.
			<-r.Context().Done()
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// modify leaves the secret of a fault out of lists, and its answers empty.
func (f *faulty) modify(resp *http.Response) error {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault == nil || fault.Key == "" || resp.StatusCode != http.StatusOK {
		return nil
	}
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return err
	}
	items, _ := body["items"].([]any)
	if slices.ContainsFunc(items, func(o any) bool { return o.(map[string]any)["metadata"].(map[string]any)["name"] == fault.Key }) {
		recorder := httptest.NewRecorder()
		refuse(recorder, fault.Failure)
		failed := recorder.Result()
		resp.StatusCode, resp.Status, resp.Header, resp.Body, resp.ContentLength = failed.StatusCode, failed.Status, failed.Header, failed.Body, -1
		return nil
	}
	if strings.HasSuffix(resp.Request.URL.Path, "/"+fault.Key) {
		body = map[string]any{}
	}
	raw, err := json.Marshal(body)
	recorder := httptest.NewRecorder()
	_, _ = recorder.Write(raw)
	resp.Body, resp.ContentLength = recorder.Result().Body, int64(len(raw))
	resp.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return err
}

// refuse answers with a failure.
func refuse(w http.ResponseWriter, f conformance.Failure) {
	switch f {
	case conformance.Denied:
		status(w, kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil))
	case conformance.Throttled:
		status(w, kerrors.NewTooManyRequests("", 7))
	default:
		status(w, kerrors.NewInternalError(context.Canceled))
	}
}

func status(w http.ResponseWriter, e *kerrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	if e.ErrStatus.Details != nil && e.ErrStatus.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.ErrStatus.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(e.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(e.ErrStatus)
}

func (f *faulty) inject(fault conformance.Fault) (func(), error) {
	set := func(to *conformance.Fault) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.fault = to
	}
	set(&fault)
	return func() { set(nil) }, nil
}

// put writes a Secret as an administrator. Members that are not strings are stored as JSON.
func put(ctx context.Context, name string, raw []byte, tags map[string]string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	data := map[string][]byte{}
	for k, v := range members {
		var text string
		if json.Unmarshal(v, &text) == nil {
			v = []byte(text)
		}
		data[k] = v
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: remote, Name: name}}
	err := admin.Get(ctx, client.ObjectKeyFromObject(s), s)
	s.Data = data
	if tags != nil {
		s.Labels = maps.Clone(tags)
	}
	if kerrors.IsNotFound(err) {
		return admin.Create(ctx, s)
	}
	if err != nil {
		return err
	}
	return admin.Update(ctx, s)
}

// harness is the harness of the conformance suite for a real API server.
func harness(t *testing.T) conformance.Harness {
	f := newFaulty(t)
	creds := fake.Credentials{"token": tokenWith(t, strings.ToLower(t.Name()), "get", "list", "create", "patch", "delete"), "wrong": "wrong"}
	connect := func(url, namespace, key string) func(context.Context) (provider.Client, error) {
		return func(ctx context.Context) (provider.Client, error) {
			return Connect(ctx, store(url, namespace, key), creds)
		}
	}
	return conformance.Harness{
		Kind: "KubernetesSecrets", Service: "Kubernetes",
		Connect: connect(f.URL, remote, "token"), ConnectDenied: connect(f.URL, remote, "wrong"), ConnectElsewhere: connect(f.URL, elsewhere, "token"),
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return connect(url, remote, "token")(ctx)
		},
		Server: f.URL,
		Put:    put,
		Delete: func(ctx context.Context, name string) error {
			return client.IgnoreNotFound(admin.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: remote, Name: name}}))
		},
		Inject: f.inject, Key: func(name string) string { return strings.ReplaceAll(name, "/", ".") }, JSONOnly: true,
		MaxWrite: 1<<20 + len(`{"a":""}`),
		Metadata: []string{`{"labels":{"team":"shop"},"annotations":{"a":"b"}}`, `{"labels":{"team":"bank"},"annotations":{"a":"c"}}`},
		Without: map[string]string{
			"read/json":            "a Secret holds strings",
			"read/version":         "Kubernetes keeps no versions",
			"batch/version":        "Kubernetes keeps no versions",
			"read/missing-version": "Kubernetes keeps no versions",
		},
	}
}

func keyOf(name string) client.ObjectKey {
	if name == "ending" {
		return client.ObjectKey{Name: name}
	}
	return client.ObjectKey{Namespace: remote, Name: name}
}

// adminToken returns a token of a ServiceAccount that is allowed everything.
func adminToken(t testing.TB, name string) string {
	t.Helper()
	token := tokenWith(t, name, "get")
	must(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: remote, Name: name}},
	}))
	return token
}
