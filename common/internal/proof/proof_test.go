package proof

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

var (
	api     client.WithWatch
	cluster *controlplane.ControlPlane
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) (err error) {
		cluster = c
		api, err = client.NewWithWatch(c.Config(), client.Options{Scheme: scheme.Scheme})
		return err
	})
}

// newSecret returns the name of the Secret with the keys in a new namespace.
func newSecret(t *testing.T) types.NamespacedName {
	t.Helper()
	t.Parallel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "t-" + strings.ToLower(rand.Text()[:12])}}
	if err := api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return types.NamespacedName{Namespace: ns.Name, Name: Name("test.direct-secrets.io")}
}

var purpose = []string{"shop", "db-part", "Kind", "gen"}

// verify returns whether a proof is valid.
func verify(t *testing.T, k *Keys, of []string, text, proof string) bool {
	t.Helper()
	ok, err := k.Verify(t.Context(), of, text, proof)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func sign(t *testing.T, k *Keys, text string) string {
	t.Helper()
	p, err := k.Sign(t.Context(), purpose, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestVerify(t *testing.T) {
	k := NewKeys(api, newSecret(t), time.Now)
	p := sign(t, k, "lease")
	cases := map[string]struct {
		reason  string
		purpose []string
		text    string
		proof   string
		want    bool
	}{
		"Same":      {"A proof is valid for its text and purpose.", purpose, "lease", p, true},
		"Text":      {"Another text needs another proof.", purpose, "lease2", p, false},
		"Namespace": {"A proof is not valid in another namespace.", []string{"other", "db-part", "Kind", "gen"}, "lease", p, false},
		"Moved":     {"The borders between parts count.", []string{"shop", "db-partKind", "", "gen"}, "lease", p, false},
		"Swapped":   {"The text is no part of the purpose.", []string{"lease", "db-part", "Kind", "gen"}, "shop", p, false},
		"Fewer":     {"All parts count.", purpose[:3], "lease", p, false},
		"None":      {"No proof is not valid.", purpose, "lease", "", false},
		"Short":     {"A part of a proof is not valid.", purpose, "lease", p[:20], false},
		"NoBase64":  {"Any text is not valid.", purpose, "lease", "?" + p[1:], false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := verify(t, k, tc.purpose, tc.text, tc.proof); got != tc.want {
				t.Errorf("\n%s\nVerify(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPermissions makes and reads a key with the permissions of the chart: for one name.
func TestPermissions(t *testing.T) {
	secret := newSecret(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: "records"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name}, Verbs: []string{"get", "create", "patch"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: secret.Namespace}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config := cluster.Config()
	config.Impersonate.UserName = secret.Namespace
	limited, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := limited.Create(t.Context(), newKey(secret.Namespace)); !kerrors.IsForbidden(err) {
		t.Fatalf("another Secret can be created: %v", err)
	}
	controlplane.Eventually(t, func() string { // The authorizer sees the binding late.
		p, err := NewKeys(limited, secret, time.Now).Sign(t.Context(), purpose, "lease")
		if err != nil {
			return err.Error()
		}
		if !verify(t, NewKeys(api, secret, time.Now), purpose, "lease", p) {
			t.Error("the key is not in the Secret")
		}
		return ""
	})
}

// TestRace lets many operators make the first key at the same time. All of them must use the same one.
func TestRace(t *testing.T) {
	secret := newSecret(t)
	var wg sync.WaitGroup
	all := make([]*Keys, 16)
	proofs := make([]string, len(all))
	for i := range all {
		all[i] = NewKeys(api, secret, time.Now)
		wg.Go(func() { proofs[i], _ = all[i].Sign(context.Background(), purpose, "lease") })
	}
	wg.Wait()
	for i, p := range proofs {
		if p == "" || !verify(t, all[0], purpose, "lease", p) {
			t.Errorf("operator %d signs with another key", i)
		}
	}
}

// TestKeyChanges changes the key below operators that use it.
func TestKeyChanges(t *testing.T) {
	const other = "0123456789abcdef0123456789abcdef"
	cases := map[string]struct {
		reason string
		change func(data map[string][]byte)
		// former is whether a proof by the former key is valid then.
		former bool
	}{
		"Changed":  {"The former key is accepted as the previous one.", func(d map[string][]byte) { d[Previous], d[Current] = d[Current], []byte(other) }, true},
		"Replaced": {"A key that is not in the Secret is not accepted.", func(d map[string][]byte) { d[Current] = []byte(other) }, false},
		"Short":    {"A previous key that is too short is not accepted.", func(d map[string][]byte) { d[Previous], d[Current] = []byte("k"), []byte(other) }, false},
		"Lost":     {"A new key is made.", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secret := newSecret(t)
			now := time.Now()
			k := NewKeys(api, secret, func() time.Time { return now })
			former := sign(t, k, "lease")
			s := &corev1.Secret{}
			if err := api.Get(t.Context(), secret, s); err != nil {
				t.Fatal(err)
			}
			if tc.change == nil {
				if err := api.Delete(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			} else {
				tc.change(s.Data)
				if err := api.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(2 * maxAge)
			fresh := NewKeys(api, secret, time.Now)
			later := sign(t, fresh, "lease")
			if !verify(t, k, purpose, "lease", later) {
				t.Error("an operator that runs does not accept the new key")
			}
			for _, k := range []*Keys{k, fresh} {
				if got := verify(t, k, purpose, "lease", former); got != tc.former {
					t.Errorf("\n%s\nVerify() of the former proof: %t, want %t", tc.reason, got, tc.former)
				}
			}
		})
	}
}

// TestNewKeyAtOnce accepts a proof by a key that another operator has put in place within the last minute.
func TestNewKeyAtOnce(t *testing.T) {
	secret := newSecret(t)
	k := NewKeys(api, secret, time.Now)
	sign(t, k, "lease")
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), secret, s); err != nil {
		t.Fatal(err)
	}
	s.Data[Current] = []byte("0123456789abcdef0123456789abcdef")
	if err := api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if p := sign(t, NewKeys(api, secret, time.Now), "lease"); !verify(t, k, purpose, "lease", p) {
		t.Error("the new key is not accepted at once")
	}
}

// TestErrors checks that nothing is decided about a proof while the key cannot be read.
func TestErrors(t *testing.T) {
	secret := newSecret(t)
	p := sign(t, NewKeys(api, secret, time.Now), "lease")
	down := interceptor.NewClient(api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return context.DeadlineExceeded
	}})
	damaged := newDamaged(t, secret.Namespace)
	cases := map[string]struct {
		keys *Keys
		want string
	}{
		"Unavailable": {NewKeys(down, secret, time.Now), `cannot read the Secret "records.test.direct-secrets.io" in namespace "` + secret.Namespace + `"`},
		"Damaged":     {NewKeys(api, damaged, time.Now), `the Secret "damaged" in namespace "` + secret.Namespace + `" needs a random value of at least 32 bytes under "key"; correct it, or delete it`},
		"NoNamespace": {NewKeys(api, types.NamespacedName{Name: "x"}, time.Now), `the operator has no namespace of its own for the Secret "x"; set --leader-election-namespace`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.keys.Verify(t.Context(), purpose, "lease", p)
			if diff := cmp.Diff(tc.want, provider.Safe(err).Message); diff != "" {
				t.Errorf("Verify(): -want, +got:\n%s", diff)
			}
			if _, err := tc.keys.Sign(t.Context(), purpose, "lease"); err == nil {
				t.Error("Sign(): no error")
			}
		})
	}
}

// newDamaged creates a Secret whose key is too short.
func newDamaged(t *testing.T, namespace string) types.NamespacedName {
	t.Helper()
	s := newKey(namespace)
	if err := api.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(s)
}

func newKey(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "damaged"}, Data: map[string][]byte{Current: []byte("short")}}
}
