package externalsecret_test

import (
	"fmt"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// unset omits a field. The manifest differs from one with an empty string, but the meaning is the same.
const unset = "-"

// combination is one combination of the fields of spec.target.
type combination struct {
	creation, deletion, cleanup string
	immutable                   any
}

// refused returns the messages expected from the API server; empty if the combination is allowed.
func (c combination) refused() []string {
	var why []string
	is := func(value string, of ...string) bool {
		for _, v := range of {
			if v == value {
				return true
			}
		}
		return false
	}
	shares := is(c.creation, "Merge", "CreateOrMerge", "None")
	if c.deletion == "Delete" && shares {
		why = append(why, "deletionPolicy Delete needs creationPolicy Owner or Orphan")
	}
	if c.deletion == "Merge" && c.creation == "None" {
		why = append(why, "deletionPolicy Merge needs a creationPolicy that writes a Secret")
	}
	if is(c.cleanup, "OnDelete", "Never") && !is(c.creation, unset, "", "Owner") {
		why = append(why, "cleanupPolicy needs creationPolicy Owner")
	}
	if c.immutable == true && shares {
		why = append(why, "immutable needs creationPolicy Owner or Orphan")
	}
	return why
}

func (c combination) object(namespace string) *unstructured.Unstructured {
	target := map[string]any{}
	for field, v := range map[string]string{"creationPolicy": c.creation, "deletionPolicy": c.deletion, "cleanupPolicy": c.cleanup} {
		if v != unset {
			target[field] = v
		}
	}
	if c.immutable != nil {
		target["immutable"] = c.immutable
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target": target, "storeRef": map[string]any{"kind": "FakeStore", "name": "store"},
	}}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ExternalSecret"))
	u.SetNamespace(namespace)
	u.SetName("db")
	return u
}

// TestCombinations offers every combination of policies to the API server. It must accept the allowed ones, and
// refuse the others with every reason.
func TestCombinations(t *testing.T) {
	e := newIdleEnv(t)
	accepted, refused := 0, 0
	for _, creation := range []string{unset, "", "Owner", "Orphan", "Merge", "CreateOrMerge", "None"} {
		for _, deletion := range []string{unset, "", "Retain", "Delete", "Merge"} {
			for _, cleanup := range []string{unset, "", "OnDelete", "Never"} {
				for _, immutable := range []any{nil, false, true} {
					c := combination{creation, deletion, cleanup, immutable}
					err := e.API.Create(e.Ctx, c.object(e.NS), client.DryRunAll)
					why := c.refused()
					if len(why) == 0 {
						accepted++
						if err != nil {
							t.Errorf("%+v is allowed, got: %v", c, err)
						}
						continue
					}
					refused++
					if err == nil || !kerrors.IsInvalid(err) {
						t.Errorf("%+v is not allowed, got: %v", c, err)
						continue
					}
					for _, w := range why {
						if !strings.Contains(err.Error(), w) {
							t.Errorf("%+v is refused with %q, want it to contain %q", c, err, w)
						}
					}
				}
			}
		}
	}
	t.Logf("%d combinations accepted, %d refused", accepted, refused)
}

// TestCombinationsOfUpdates updates an allowed object to combinations that are not allowed.
func TestCombinationsOfUpdates(t *testing.T) {
	e := newIdleEnv(t)
	u := combination{"Owner", "Delete", "Never", true}.object(e.NS)
	e.Create(u)
	for _, c := range []combination{
		{"Merge", "Delete", unset, nil}, {"CreateOrMerge", "Retain", "Never", nil}, {"None", "Merge", unset, nil}, {"Merge", unset, unset, true},
	} {
		next := c.object(e.NS)
		next.SetResourceVersion(u.GetResourceVersion())
		if err := e.API.Update(e.Ctx, next); !kerrors.IsInvalid(err) {
			t.Errorf("the update to %+v is not allowed, got: %v", c, err)
		}
	}
	for field, value := range map[string]string{"creationPolicy": "Owned", "deletionPolicy": "delete", "cleanupPolicy": "onDelete"} {
		next := combination{unset, unset, unset, nil}.object(e.NS)
		next.SetResourceVersion(u.GetResourceVersion())
		if err := unstructured.SetNestedField(next.Object, value, "spec", "target", field); err != nil {
			t.Fatal(err)
		}
		if err := e.API.Update(e.Ctx, next); !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), fmt.Sprintf("Unsupported value: %q", value)) {
			t.Errorf("%s: %s is unknown, got: %v", field, value, err)
		}
	}
}

// TestNamesStore offers specs to the API server. Without a store, no module would claim the object.
func TestNamesStore(t *testing.T) {
	e := newIdleEnv(t)
	store := &v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}
	with := func(ref *v1alpha1.DataSourceRef) v1alpha1.DataEntry {
		return v1alpha1.DataEntry{SecretKey: "a", RemoteRef: v1alpha1.RemoteRef{Key: "a"}, SourceRef: ref}
	}
	from := func(ref *v1alpha1.SourceRef) v1alpha1.DataFromEntry {
		return v1alpha1.DataFromEntry{Extract: &v1alpha1.RemoteRef{Key: "a"}, SourceRef: ref}
	}
	own, all := &v1alpha1.DataSourceRef{StoreRef: *store}, &v1alpha1.SourceRef{StoreRef: store}
	for _, tc := range []struct {
		reason   string
		spec     v1alpha1.ExternalSecretSpec
		accepted bool
	}{
		{"one store for all", v1alpha1.ExternalSecretSpec{StoreRef: store, Data: []v1alpha1.DataEntry{with(nil)}}, true},
		{"a store in each entry", v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{with(own)}, DataFrom: []v1alpha1.DataFromEntry{from(all)}}, true},
		{"nothing at all", v1alpha1.ExternalSecretSpec{}, false},
		{"an entry without a store", v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{with(nil)}}, false},
		{"a second entry without a store", v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{with(own), with(nil)}}, false},
		{"an extract without a store", v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{with(own)}, DataFrom: []v1alpha1.DataFromEntry{from(nil)}}, false},
	} {
		for _, o := range []client.Object{
			&v1alpha1.ExternalSecret{ObjectMeta: e.Meta("names"), Spec: tc.spec},
			&v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: e.NS}, Spec: v1alpha1.ClusterExternalSecretSpec{ExternalSecretSpec: tc.spec}},
		} {
			err := e.API.Create(e.Ctx, o, client.DryRunAll)
			if accepted := err == nil; accepted != tc.accepted || err != nil && !strings.Contains(err.Error(), "set storeRef, or sourceRef in each entry of data and dataFrom") {
				t.Errorf("%T with %s: %v", o, tc.reason, err)
			}
		}
	}
}
