package client

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// newWriter returns a client that is allowed to do everything.
func newWriter(t *testing.T, account, namespace string) *Client {
	t.Helper()
	c, err := Connect(t.Context(), store(newFaulty(t).URL, namespace, "token"), fake.Credentials{"token": tokenWith(t, account, "get", "list", "create", "patch", "delete")})
	must(t, err)
	return c.(*Client)
}

// TestUpdateRemovesKeys compares what an update returns with what is read next.
func TestUpdateRemovesKeys(t *testing.T) {
	c, target := newWriter(t, "update", remote), provider.Target{Key: "removed"}
	made, err := c.Create(t.Context(), target, []byte(`{"a":"1","b":"2"}`), "mark")
	must(t, err)
	seen, err := c.Observe(t.Context(), target)
	must(t, err)
	if made.Version != seen.Version || made.ID != seen.ID {
		t.Errorf("Create returns %+v, and then there is %+v", made, seen)
	}
	w, err := c.Update(t.Context(), target, seen, []byte(`{"b":"3"}`))
	must(t, err)
	now, err := c.Observe(t.Context(), target)
	must(t, err)
	if string(now.Data) != `{"b":"3"}` || w.Version != now.Version || w.ID != now.ID {
		t.Errorf("Update returns %+v, and then there is %+v with %s", w, now, now.Data)
	}
	if _, err := c.Update(t.Context(), target, now, []byte(`{"b":null}`)); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("a null is not an empty value: %v", err)
	}
	if strings.Contains(now.Version+now.ID, uidOf(t, "removed")) {
		t.Error("a status shows the key of the versions")
	}
}

func uidOf(t *testing.T, name string) string {
	t.Helper()
	s := &corev1.Secret{}
	must(t, admin.Get(t.Context(), keyOf(name), s))
	return string(s.UID)
}

// TestBytesOfOthers pushes to, and deletes, a Secret to which another client has added a key that is not text.
func TestBytesOfOthers(t *testing.T) {
	c, target := newWriter(t, "bytes", remote), provider.Target{Key: "bytes"}
	_, err := c.Create(t.Context(), target, []byte(`{"a":"1"}`), "mark")
	must(t, err)
	s := &corev1.Secret{}
	must(t, admin.Get(t.Context(), keyOf("bytes"), s))
	s.Data["keystore.jks"] = []byte{0xff}
	must(t, admin.Update(t.Context(), s))
	seen, err := c.Observe(t.Context(), target)
	must(t, err)
	if _, err := c.Update(t.Context(), target, seen, []byte(`{"a":"2"}`)); provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), `its key "keystore.jks" is not text`) {
		t.Errorf("an update would lose the key: %v", err)
	}
	if err := c.Delete(t.Context(), target, seen); provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), `its key "keystore.jks" is not text`) {
		t.Errorf("a deletion would lose the key: %v", err)
	}
	must(t, admin.Delete(t.Context(), s))
}

// TestImmutable pushes to a Secret that another client has made immutable.
func TestImmutable(t *testing.T) {
	c, target := newWriter(t, "immutable", remote), provider.Target{Key: "immutable"}
	_, err := c.Create(t.Context(), target, []byte(`{"a":"1"}`), "mark")
	must(t, err)
	s, yes := &corev1.Secret{}, true
	must(t, admin.Get(t.Context(), keyOf("immutable"), s))
	s.Immutable = &yes
	must(t, admin.Update(t.Context(), s))
	seen, err := c.Observe(t.Context(), target)
	must(t, err)
	_, err = c.Update(t.Context(), target, seen, []byte(`{"a":"2"}`))
	want := provider.NewError(provider.Invalid, `secret "immutable": is immutable, so its keys and values cannot be changed; delete it, and it is created again, or push to another Secret`)
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("a changed value: -want, +got:\n%s", diff)
	}
	target.Metadata = []byte(`{"labels":{"team":"shop"}}`)
	_, err = c.Update(t.Context(), target, seen, []byte(`{"a":"1"}`))
	must(t, err) // Labels of an immutable Secret can change.
	seen, err = c.Observe(t.Context(), target)
	must(t, err)
	must(t, c.Delete(t.Context(), target, seen))
}

// TestDotInKey pushes a property in a property, as a dot that is not escaped yields it.
func TestDotInKey(t *testing.T) {
	c := newWriter(t, "dot", remote)
	_, err := c.Create(t.Context(), provider.Target{Key: "dot"}, []byte(`{"tls":{"crt":"x"}}`), "mark")
	if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), `write a dot in a key as \., such as tls\.crt`) {
		t.Errorf("the error names the escape: %v", err)
	}
}

// TestRefusedSettings pushes Secrets that the cluster would fill with a login.
func TestRefusedSettings(t *testing.T) {
	c := newWriter(t, "settings", remote)
	cases := map[string]struct{ reason, key, metadata, want string }{
		"Token":      {"The cluster would fill it with a token of a ServiceAccount.", "a", `{"type":"kubernetes.io/service-account-token"}`, "type: kubernetes.io/service-account-token is refused"},
		"Bootstrap":  {"A node could join the cluster with it.", "a", `{"type":"bootstrap.kubernetes.io/token"}`, "type: bootstrap.kubernetes.io/token is refused"},
		"Account":    {"The annotation names the ServiceAccount.", "a", `{"annotations":{"kubernetes.io/service-account.name":"default"}}`, `"kubernetes.io/service-account.name" is reserved`},
		"Mark":       {"The mark names the object that is allowed to delete.", "a", `{"annotations":{"direct-secrets.io/created-by":"x"}}`, `"direct-secrets.io/created-by" is reserved`},
		"Managed":    {"The operator of the other cluster would take it for its own.", "a", `{"labels":{"aws.direct-secrets.io/managed":"true"}}`, `"aws.direct-secrets.io/managed" is reserved`},
		"Unknown":    {"A setting of another provider is an error.", "a", `{"tags":{}}`, `unknown field "tags"`},
		"ConfigMap":  {"ConfigMaps are read only.", "configmap/a", ``, "ConfigMaps are read only"},
		"OtherLabel": {"A label that only looks alike is allowed.", "a", `{"labels":{"kubernetes.io/name":"a"}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := provider.Target{Key: tc.key, Metadata: []byte(tc.metadata)}
			_, err := c.Observe(t.Context(), target)
			if tc.want == "" {
				if !provider.IsNotFound(err) {
					t.Errorf("%s got %v", tc.reason, err)
				}
				return
			}
			if _, made := c.Create(t.Context(), target, []byte(`{}`), "mark"); made == nil || provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s got %v and %v, want %q", tc.reason, err, made, tc.want)
			}
		})
	}
}

// TestNamespaces reads from namespaces that do not prove that a secret does not exist.
func TestNamespaces(t *testing.T) {
	token := adminToken(t, "admin")
	ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending", Finalizers: []string{"example.com/hold"}}}
	ending.Spec.Finalizers = []corev1.FinalizerName{"kubernetes"}
	must(t, admin.Create(t.Context(), ending))
	must(t, admin.Delete(t.Context(), ending))
	t.Cleanup(func() {
		must(t, admin.Get(context.Background(), keyOf("ending"), ending))
		ending.Finalizers = nil
		must(t, admin.Update(context.Background(), ending))
	})
	for name, tc := range map[string]struct{ namespace, want string }{
		"Missing": {"no-such", "Invalid: spec.remoteNamespace: namespace no-such does not exist"},
		"Ending":  {"ending", "Invalid: spec.remoteNamespace: namespace ending is being deleted"},
		"There":   {remote, "NotFound: "},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(t.Context(), store(newFaulty(t).URL, tc.namespace, "token"), fake.Credentials{"token": token})
			must(t, err)
			_, err = c.Get(t.Context(), provider.Ref{Key: "none"})
			if got := string(provider.ClassOf(err)) + ": " + err.Error(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	c := newWriter(t, "versions", remote)
	must(t, put(t.Context(), "pinned", []byte(`{"a":"1"}`), nil))
	if _, err := c.Get(t.Context(), provider.Ref{Key: "pinned", Version: "1"}); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("another version of a secret that exists: %v", err)
	}
}

// TestFindTags searches by tags that no label can have. They select nothing, and are no other selector.
func TestFindTags(t *testing.T) {
	c := newWriter(t, "tags", remote)
	must(t, put(t.Context(), "tagged", []byte(`{"a":"1"}`), map[string]string{"find-tags": "shop"}))
	for name, tags := range map[string]map[string]string{
		"Value": {"find-tags": "shop,other!=a"},
		"Key":   {"find-tags in (shop),other!": ""},
		"Space": {"find-tags": "my shop"},
	} {
		t.Run(name, func(t *testing.T) {
			for v, err := range c.Find(t.Context(), provider.Query{Tags: tags}) {
				if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), "find: tags") {
					t.Errorf("found %q: %v", v.Key, err)
				}
				return
			}
			t.Error("there is no error")
		})
	}
}
