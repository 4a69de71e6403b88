package credentials_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// operator returns a client of a ServiceAccount that is allowed to create its own tokens.
func (e *env) operator() client.Client {
	e.Helper()
	raw, err := cluster.ServiceAccountKubeconfig(e.ctx, e.mine, "operator")
	if err != nil {
		e.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		e.Fatal(err)
	}
	e.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: e.mine, Name: "tokens"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"operator"}, Verbs: []string{"create"}},
	}})
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.mine, Name: "tokens"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tokens"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.mine, Name: "operator"}},
	})
	c, err := client.New(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		e.Fatal(err)
	}
	return c
}

func TestOwnToken(t *testing.T) {
	const apiServer = "https://kubernetes.default.svc" // The audience of the API server.
	down := &rest.Config{Host: "https://127.0.0.1:1"}
	own := func(e *env) client.Client { return e.operator() }
	cases := map[string]struct {
		reason   string
		client   func(e *env) client.Client
		cluster  bool
		manifest bool // authenticationScope is ManifestNamespace.
		ambient  credentials.Ambient
		audience string
		asked    *rest.Config // the API server that is asked; nil means the real one
		class    provider.Class
		message  []string
	}{
		"Cluster":      {"A cluster store gets a token for its audience.", own, true, false, credentials.AmbientCluster, "vault", nil, "", nil},
		"All":          {"So it does if all stores are allowed the operator's identity.", own, true, false, credentials.AmbientAll, "vault", nil, "", nil},
		"Manifest":     {"A cluster store with authenticationScope ManifestNamespace gets the same.", own, true, true, credentials.AmbientCluster, "vault", nil, "", nil},
		"Namespaced":   {"A namespaced store is refused.", own, false, false, credentials.AmbientCluster, "vault", nil, provider.Invalid, []string{"a namespaced store is not allowed", "use the cluster Kind"}},
		"AllowedToAll": {"A namespaced store is refused even if it can use the operator's cloud identity.", own, false, false, credentials.AmbientAll, "vault", nil, provider.Invalid, []string{"a namespaced store is not allowed"}},
		"None":         {"An operator without ambient credentials refuses.", own, true, false, credentials.AmbientNone, "vault", nil, provider.Invalid, []string{"--ambient-credentials=none", "log in in another way"}},
		"APIServer":    {"A token that the API server accepts is refused.", own, true, false, credentials.AmbientCluster, apiServer, nil, provider.Invalid, []string{"the API server accepts tokens for audience \"" + apiServer, "name another audience"}},
		"NoAudience":   {"A token without an audience would be for the API server.", own, true, false, credentials.AmbientCluster, "", nil, provider.Invalid, []string{"set audience"}},
		"Unknown":      {"Without an answer of the API server the token is not used.", own, true, false, credentials.AmbientCluster, "vault", down, provider.Unavailable, []string{"cannot check whether the API server accepts"}},
		"Forbidden":    {"Without permission, the message names the ServiceAccount and the setting of the chart.", func(e *env) client.Client { return e.unauthorizedClient }, true, false, credentials.AmbientCluster, "vault", nil, provider.Denied, []string{"/stranger", "serviceAccountTokens.enabled"}},
		"NoAccount":    {"An operator that is no ServiceAccount has no token.", func(*env) client.Client { return api }, true, false, credentials.AmbientCluster, "vault", nil, provider.Invalid, []string{"does not run as a ServiceAccount"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			c := tc.client(e)
			f := credentials.Fence{Cluster: tc.cluster, Rules: credentials.Rules{Ambient: tc.ambient, Accepts: credentials.AcceptsAt(cluster.Config())}}
			if !tc.cluster || tc.manifest {
				f.Namespace = e.others
			}
			if tc.asked != nil {
				f.Accepts = credentials.AcceptsAt(tc.asked)
			}
			r := credentials.NewReader(c, room.NewReader(c, &quota.Quotas{}), f, func(watch.ObjectRef, string) {})
			token, err := provider.OwnToken(e.ctx, r, tc.audience)
			if tc.class != "" {
				want{class: tc.class, message: tc.message}.compare(t, tc.reason, token, err)
				return
			}
			if err != nil {
				t.Fatalf("\n%s\n%s", tc.reason, err)
			}
			var claims struct {
				Subject  string   `json:"sub"`
				Audience []string `json:"aud"`
			}
			payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
			if err == nil {
				err = json.Unmarshal(payload, &claims)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"system:serviceaccount:" + e.mine + ":operator", "vault"}, append([]string{claims.Subject}, claims.Audience...)); diff != "" {
				t.Errorf("\n%s\nsubject and audiences: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwnTokenOf(t *testing.T) {
	_, err := provider.OwnToken(t.Context(), struct{ provider.Credentials }{fake.Credentials{}}, "vault")
	want{class: provider.Unavailable, message: []string{"no token of the operator's own ServiceAccount"}}.compare(t, "Credentials that have no such token are an error.", "", err)
}
