package credentials_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

var (
	api     client.Client
	cluster *controlplane.ControlPlane
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		var err error
		cluster = c
		api, err = client.New(c.Config(), client.Options{Scheme: scheme.Scheme})
		return err
	})
}

// env has a namespace "mine" with a Secret, a ConfigMap and a ServiceAccount, another namespace with the same
// objects, and a client without permissions.
type env struct {
	*testing.T
	ctx                context.Context
	mine, others       string
	unauthorizedClient client.Client
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	suffix := strings.ToLower(rand.Text()[:12])
	e := &env{T: t, ctx: t.Context(), mine: "mine-" + suffix, others: "others-" + suffix}
	for _, ns := range []string{e.mine, e.others} {
		e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		e.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "creds"},
			Data:       map[string][]byte{"password": []byte("of " + ns), "empty": {}},
		})
		e.create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "creds"},
			Data:       map[string]string{"password": "of " + ns, "empty": ""},
			BinaryData: map[string][]byte{"binary": []byte("\xff of " + ns)},
		})
		e.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}})
	}
	raw, err := cluster.ServiceAccountKubeconfig(e.ctx, e.mine, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if e.unauthorizedClient, err = client.New(cfg, client.Options{Scheme: scheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *env) create(o client.Object) {
	e.Helper()
	if err := api.Create(e.ctx, o); err != nil {
		e.Fatal(err)
	}
}

// fence returns the Fence of a namespaced store, or of a cluster store.
func (e *env) fence(cluster bool) credentials.Fence {
	if cluster {
		return credentials.Fence{Cluster: true}
	}
	return credentials.Fence{Namespace: e.mine}
}

// want is the expected result of a call: a value, or an error of a class whose message has all of these parts.
type want struct {
	value   string
	class   provider.Class
	message []string
}

func (w want) compare(t *testing.T, reason, value string, err error) {
	t.Helper()
	if w.class == "" {
		if err != nil || value != w.value {
			t.Errorf("\n%s\ngot %q, error %v, want %q", reason, value, err, w.value)
		}
		return
	}
	if err == nil {
		t.Fatalf("\n%s\ngot %q, want an error", reason, value)
	}
	if class := provider.ClassOf(err); class != w.class || value != "" {
		t.Errorf("\n%s\ngot value %q, class %s, want class %s", reason, value, class, w.class)
	}
	var safe *provider.Error
	if !errors.As(err, &safe) {
		t.Errorf("\n%s\nthe message of a %T is not shown", reason, err)
	}
	for _, m := range w.message {
		if !strings.Contains(err.Error(), m) {
			t.Errorf("\n%s\nmessage: got %q, want %q in it", reason, err, m)
		}
	}
}

// TestValue reads Secrets and ConfigMaps; the same rules apply to both.
func TestValue(t *testing.T) {
	cases := map[string]struct {
		reason        string
		cluster       bool
		sameNamespace bool
		unauthorized  bool
		sel           func(e *env) v1alpha1.SecretKeySelector
		want          func(e *env, what string) want
		// read is the version that the watch receives, "" if it receives none.
		read func(e *env) string
	}{
		"OwnNamespace": {
			reason: "A namespaced store reads in its own namespace.",
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password"}
			},
			want: func(e *env, _ string) want { return want{value: "of " + e.mine} },
			read: func(e *env) string { return e.mine + "/creds present" },
		},
		"NamespacedNamesAnother": {
			reason: "A namespaced store cannot name another namespace.",
			sel: func(e *env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password", Namespace: e.others}
			},
			want: func(_ *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " creds", "must not name a namespace", "remove the namespace"}}
			},
		},
		"NamespacedNamesItsOwn": {
			reason: "A namespaced store cannot name its own namespace either, so that a copy in another namespace reads nothing here.",
			sel: func(e *env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password", Namespace: e.mine}
			},
			want: func(*env, string) want {
				return want{class: provider.Invalid, message: []string{"remove the namespace"}}
			},
		},
		"Cluster": {
			reason: "A cluster store reads in the namespace that the reference names.", cluster: true,
			sel: func(e *env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password", Namespace: e.others}
			},
			want: func(e *env, _ string) want { return want{value: "of " + e.others} },
			read: func(e *env) string { return e.others + "/creds present" },
		},
		"ClusterNamesNone": {
			reason: "A cluster store needs a reference with a namespace.", cluster: true,
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password"}
			},
			want: func(_ *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " creds", "needs a namespace"}}
			},
		},
		"Manifest": {
			reason: "With authenticationScope ManifestNamespace, a cluster store reads in the namespace of the object that refers to it.", sameNamespace: true,
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password"}
			},
			want: func(e *env, _ string) want { return want{value: "of " + e.mine} },
			read: func(e *env) string { return e.mine + "/creds present" },
		},
		"ManifestNamesAnother": {
			reason: "With authenticationScope ManifestNamespace, a reference cannot name a namespace.", sameNamespace: true,
			sel: func(e *env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password", Namespace: e.others}
			},
			want: func(_ *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " creds", "ManifestNamespace", "remove the namespace"}}
			},
		},
		"Missing": {
			reason: "The message names the missing object, and the watch waits for it.",
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "nope", Key: "password"}
			},
			want: func(e *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " " + e.mine + "/nope", "does not exist", "create it or correct the reference"}}
			},
			read: func(e *env) string { return e.mine + "/nope absent" },
		},
		"MissingKey": {
			reason: "The message names the missing key.",
			sel:    func(*env) v1alpha1.SecretKeySelector { return v1alpha1.SecretKeySelector{Name: "creds", Key: "nope"} },
			want: func(e *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " " + e.mine + "/creds", `key "nope"`, "add it or correct the reference"}}
			},
			read: func(e *env) string { return e.mine + "/creds present" },
		},
		"EmptyValue": {
			reason: "An empty credential is refused.",
			sel:    func(*env) v1alpha1.SecretKeySelector { return v1alpha1.SecretKeySelector{Name: "creds", Key: "empty"} },
			want: func(*env, string) want {
				return want{class: provider.Invalid, message: []string{`no value under key "empty"`, "add it or correct the reference"}}
			},
			read: func(e *env) string { return e.mine + "/creds present" },
		},
		"Forbidden": {
			reason: "Without permission, the store does not learn whether the Secret exists.", unauthorized: true,
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password"}
			},
			want: func(e *env, what string) want {
				return want{class: provider.Denied, message: []string{"no permission to read " + what + " " + e.mine + "/creds", "grant it get, list and watch on " + strings.ToLower(what) + "s in that namespace"}}
			},
		},
		"NoName": {
			reason: "An empty name is an error in the spec, not of the API server.",
			sel:    func(*env) v1alpha1.SecretKeySelector { return v1alpha1.SecretKeySelector{Key: "password"} },
			want: func(_ *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + ` name ""`, "correct the reference"}}
			},
		},
		"HostileName": {
			reason: "A path is not accepted as a name.",
			sel: func(e *env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "../../" + e.others + "/secrets/creds", Key: "password"}
			},
			want: func(_ *env, what string) want {
				return want{class: provider.Invalid, message: []string{what + " name", "correct the reference"}}
			},
		},
		"HostileNamespace": {
			reason: "A path is not accepted as a namespace.", cluster: true,
			sel: func(*env) v1alpha1.SecretKeySelector {
				return v1alpha1.SecretKeySelector{Name: "creds", Key: "password", Namespace: "a/../b"}
			},
			want: func(*env, string) want {
				return want{class: provider.Invalid, message: []string{"namespace", "correct the reference"}}
			},
		},
	}
	kinds := map[string]struct {
		resource string
		value    func(context.Context, *credentials.Reader, v1alpha1.SecretKeySelector) ([]byte, error)
	}{
		"Secret": {"secrets", func(ctx context.Context, r *credentials.Reader, sel v1alpha1.SecretKeySelector) ([]byte, error) {
			return r.SecretValue(ctx, sel)
		}},
		"ConfigMap": {"configmaps", func(ctx context.Context, r *credentials.Reader, sel v1alpha1.SecretKeySelector) ([]byte, error) {
			return r.ConfigMapValue(ctx, v1alpha1.ConfigMapKeySelector(sel))
		}},
	}
	for what, kind := range kinds {
		for name, tc := range cases {
			t.Run(what+"/"+name, func(t *testing.T) {
				e := newEnv(t)
				c := api
				if tc.unauthorized {
					c = e.unauthorizedClient
				}
				fence := e.fence(tc.cluster)
				if tc.sameNamespace {
					fence = credentials.Fence{Cluster: true, Namespace: e.mine}
				}
				var read []string
				r := credentials.NewReader(c, room.NewReader(c, &quota.Quotas{}), fence, func(o watch.ObjectRef, version string) {
					state := " absent"
					if version != "" {
						state = " present"
					}
					read = append(read, o.Resource.Resource+" "+o.String()+state)
				})
				v, err := kind.value(e.ctx, r, tc.sel(e))
				tc.want(e, what).compare(t, tc.reason, string(v), err)
				var wantRead []string
				if tc.read != nil {
					wantRead = []string{kind.resource + " " + tc.read(e)}
				}
				if diff := cmp.Diff(wantRead, read); diff != "" {
					t.Errorf("\n%s\nread: -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestConfigMapBinary reads a key of binaryData, which is separate from data.
func TestConfigMapBinary(t *testing.T) {
	e := newEnv(t)
	r := credentials.NewReader(api, room.NewReader(api, &quota.Quotas{}), e.fence(false), func(watch.ObjectRef, string) {})
	v, err := r.ConfigMapValue(e.ctx, v1alpha1.ConfigMapKeySelector{Name: "creds", Key: "binary"})
	want{value: "\xff of " + e.mine}.compare(t, "Bytes that are not UTF-8 are returned as they are.", string(v), err)
}

// TestSecretValueUnavailable checks that a failure of the API server is not reported as an error of the store, and
// that the server's message, which might hold a credential, is not shown.
func TestSecretValueUnavailable(t *testing.T) {
	e := newEnv(t)
	c, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	broken := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("s3cret")
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return errors.New("s3cret")
		},
	})
	r := credentials.NewReader(broken, room.NewReader(broken, &quota.Quotas{}), e.fence(false), func(o watch.ObjectRef, _ string) {
		t.Errorf("%s counts as read", o)
	})
	_, err = r.SecretValue(e.ctx, v1alpha1.SecretKeySelector{Name: "creds", Key: "password"})
	want{class: provider.Unavailable, message: []string{"Secret " + e.mine + "/creds"}}.compare(t, "A Secret.", "", err)
	_, tokenErr := r.ServiceAccountToken(e.ctx, v1alpha1.ServiceAccountSelector{Name: "reader"})
	want{class: provider.Unavailable, message: []string{"ServiceAccount " + e.mine + "/reader"}}.compare(t, "A token.", "", tokenErr)
	if strings.Contains(err.Error()+tokenErr.Error(), "s3cret") {
		t.Error("the message of the API server is shown")
	}
}

// review returns the subject of a token, as namespace:name, and its audiences.
func (e *env) review(token string) (string, []string) {
	e.Helper()
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		e.Fatal(err)
	}
	var claims struct {
		Aud []string `json:"aud"`
		Exp int64    `json:"exp"`
		Iat int64    `json:"iat"`
		Sub string   `json:"sub"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		e.Fatal(err)
	}
	if lifetime := claims.Exp - claims.Iat; lifetime != 600 {
		e.Errorf("the token lives for %d seconds, want 600", lifetime)
	}
	// The API server must accept the token.
	tr := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: claims.Aud}}
	e.create(tr)
	if !tr.Status.Authenticated || tr.Status.User.Username != claims.Sub {
		e.Errorf("the API server does not know the token: %+v", tr.Status)
	}
	return strings.TrimPrefix(claims.Sub, "system:serviceaccount:"), claims.Aud
}

func TestServiceAccountToken(t *testing.T) {
	cases := map[string]struct {
		reason       string
		cluster      bool
		unauthorized bool
		sel          func(e *env) v1alpha1.ServiceAccountSelector
		asked        []string
		user         func(e *env) string
		audiences    []string
		want         want
	}{
		"OwnNamespace": {
			reason: "A namespaced store uses a ServiceAccount of its own namespace, with the audiences of the provider.",
			sel:    func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{Name: "reader"} },
			asked:  []string{"sts.amazonaws.com"},
			user:   func(e *env) string { return e.mine + ":reader" }, audiences: []string{"sts.amazonaws.com"},
		},
		"SelectorAudiences": {
			reason: "Without audiences of the provider, those of the selector apply.",
			sel: func(*env) v1alpha1.ServiceAccountSelector {
				return v1alpha1.ServiceAccountSelector{Name: "reader", Audiences: []string{"a", "b"}}
			},
			user: func(e *env) string { return e.mine + ":reader" }, audiences: []string{"a", "b"},
		},
		"BothAudiences": {
			reason: "Audiences of the provider take precedence over those of the selector.",
			sel: func(*env) v1alpha1.ServiceAccountSelector {
				return v1alpha1.ServiceAccountSelector{Name: "reader", Audiences: []string{"a"}}
			},
			asked: []string{"b"},
			user:  func(e *env) string { return e.mine + ":reader" }, audiences: []string{"b"},
		},
		"NoAudience": {
			reason: "Without any audience the token is for the API server.",
			sel:    func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{Name: "reader"} },
			user:   func(e *env) string { return e.mine + ":reader" }, audiences: []string{"https://kubernetes.default.svc"},
		},
		"NamespacedNamesAnother": {
			reason: "A namespaced store cannot use a ServiceAccount of another namespace.",
			sel: func(e *env) v1alpha1.ServiceAccountSelector {
				return v1alpha1.ServiceAccountSelector{Name: "reader", Namespace: e.others}
			},
			want: want{class: provider.Invalid, message: []string{"ServiceAccount reader", "must not name a namespace", "remove the namespace"}},
		},
		"Cluster": {
			reason: "A cluster store uses the ServiceAccount of the namespace that the reference names.", cluster: true,
			sel: func(e *env) v1alpha1.ServiceAccountSelector {
				return v1alpha1.ServiceAccountSelector{Name: "reader", Namespace: e.others}
			},
			asked: []string{"a"},
			user:  func(e *env) string { return e.others + ":reader" }, audiences: []string{"a"},
		},
		"ClusterNamesNone": {
			reason: "A cluster store needs a reference with a namespace.", cluster: true,
			sel:  func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{Name: "reader"} },
			want: want{class: provider.Invalid, message: []string{"ServiceAccount reader", "needs a namespace"}},
		},
		"Missing": {
			reason: "The message names the missing ServiceAccount.",
			sel:    func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{Name: "nope"} },
			want:   want{class: provider.Invalid, message: []string{"/nope does not exist", "create it or correct the reference"}},
		},
		"Forbidden": {
			reason: "Without permission, the message names the permission to create tokens.", unauthorized: true,
			sel:  func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{Name: "reader"} },
			want: want{class: provider.Denied, message: []string{"/reader", "grant it create on serviceaccounts/token"}},
		},
		"NoName": {
			reason: "An empty name is an error in the spec.",
			sel:    func(*env) v1alpha1.ServiceAccountSelector { return v1alpha1.ServiceAccountSelector{} },
			want:   want{class: provider.Invalid, message: []string{`ServiceAccount name ""`, "correct the reference"}},
		},
		"HostileName": {
			reason: "A path is not accepted as a name.",
			sel: func(*env) v1alpha1.ServiceAccountSelector {
				return v1alpha1.ServiceAccountSelector{Name: "reader/../../x"}
			},
			want: want{class: provider.Invalid, message: []string{"ServiceAccount name", "correct the reference"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			c := api
			if tc.unauthorized {
				c = e.unauthorizedClient
			}
			r := credentials.NewReader(c, room.NewReader(c, &quota.Quotas{}), e.fence(tc.cluster), func(o watch.ObjectRef, _ string) {
				t.Errorf("%s counts as read", o)
			})
			token, err := r.ServiceAccountToken(e.ctx, tc.sel(e), tc.asked...)
			if tc.want.class != "" {
				tc.want.compare(t, tc.reason, token, err)
				return
			}
			if err != nil {
				t.Fatalf("\n%s\n%v", tc.reason, err)
			}
			user, audiences := e.review(token)
			if diff := cmp.Diff(tc.user(e), user); diff != "" {
				t.Errorf("\n%s\nuser: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.audiences, audiences); diff != "" {
				t.Errorf("\n%s\naudiences: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAmbient(t *testing.T) {
	cases := map[string]struct {
		reason  string
		ambient credentials.Ambient
		cluster bool
		want    want
	}{
		"ClusterOfCluster":    {"By default, cluster Kinds can use the operator's identity.", credentials.AmbientCluster, true, want{}},
		"ClusterOfNamespaced": {"By default, namespaced Kinds cannot use it.", credentials.AmbientCluster, false, want{class: provider.Invalid, message: []string{"auth is not set", "set auth, use the cluster Kind", "--ambient-credentials=all"}}},
		"AllOfCluster":        {"With all, every Kind can use it.", credentials.AmbientAll, true, want{}},
		"AllOfNamespaced":     {"With all, every Kind can use it.", credentials.AmbientAll, false, want{}},
		"NoneOfCluster":       {"With none, no Kind can use it.", credentials.AmbientNone, true, want{class: provider.Invalid, message: []string{"auth is not set", "--ambient-credentials=none", "set auth"}}},
		"NoneOfNamespaced":    {"With none, no Kind can use it.", credentials.AmbientNone, false, want{class: provider.Invalid, message: []string{"auth is not set", "--ambient-credentials=none", "set auth"}}},
		"UnsetOfNamespaced":   {"An unset rule allows nothing.", "", false, want{class: provider.Invalid}},
		"UnsetOfCluster":      {"An unset rule allows nothing.", "", true, want{class: provider.Invalid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := credentials.NewReader(nil, room.NewReader(nil, &quota.Quotas{}), credentials.Fence{Cluster: tc.cluster, Rules: credentials.Rules{Ambient: tc.ambient}}, nil)
			tc.want.compare(t, tc.reason, "", r.Ambient())
		})
	}
}
