package pushsecret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushConflict lets two objects push different values to one remote secret. The first one keeps it until it is deleted, and each
// value is written once.
func TestPushConflict(t *testing.T) {
	e := testenv.NewServed(t)
	e.Create(e.Store("twin", "main", func(s *fakev1.FakeStore) { s.Spec.ValidationInterval = "2h" }))
	e.Source("source", map[string]string{"password": "first"})
	e.Source("second", map[string]string{"password": "second"})
	from := func(key, property, store string) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) {
			ps.Spec.RefreshInterval = "1s"
			ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", key, property)}
			if store != "" {
				ps.Spec.StoreRefs[0].Name = store
				ps.Spec.Selector.Secret.Name = "second"
			}
		}
	}
	cases := map[string]struct {
		reason           string
		property         string
		key, other       string
		policy           v1alpha1.PushDeletionPolicy
		theirs           string // what is there before
		want, afterwards string
	}{
		"whole":    {"One secret by one key.", "", "whole", "whole", "", "", "first", "second"},
		"spelled":  {"One secret by two keys.", "", "spelled", fake.Full + "spelled", "", "", "first", "second"},
		"property": {"One property.", "a", "property", "property", "", "", `{"a":"first"}`, `{"a":"second"}`},
		"adopted":  {"A secret of another tool has no mark.", "", "adopted", "adopted", "", "theirs", "first", "second"},
		"deletes":  {"The other object keeps the secret from being deleted.", "", "deletes", "deletes", v1alpha1.PushDeletionDelete, "", "first", "second"},
	}
	for name, tc := range cases {
		if tc.theirs != "" {
			e.Backend.Put(name, []byte(tc.theirs))
		}
		e.Create(e.PushSecret(name, from(tc.key, tc.property, ""), func(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = tc.policy }))
	}
	versions := map[string]int{}
	for name := range cases {
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		versions[name] = len(e.Backend.Versions(name))
	}
	for name, tc := range cases {
		e.Create(e.PushSecret("other-"+name, from(tc.other, tc.property, "twin"), func(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = tc.policy }))
	}
	for name, tc := range cases {
		message := e.WantPushed("other-"+name, v1alpha1.ReasonConflict)
		if want := fmt.Sprintf("PushSecret %s/%s pushes another value there", e.NS, name); !strings.Contains(message, want) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, want)
		}
		if diff := cmp.Diff([]any{tc.want, versions[name]}, []any{testenv.Remote(e.Backend, name), len(e.Backend.Versions(name))}); diff != "" {
			t.Errorf("%s: %s\nvalue and number of versions: -want, +got:\n%s", name, tc.reason, diff)
		}
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		e.Delete(e.GetPush(name))
	}
	for name, tc := range cases {
		e.WantPushed("other-"+name, v1alpha1.ReasonSecretSynced)
		if diff := cmp.Diff([]any{tc.afterwards, versions[name] + 1}, []any{testenv.Remote(e.Backend, name), len(e.Backend.Versions(name))}); diff != "" {
			t.Errorf("%s: %s\nafter the first object, value and number of versions: -want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// TestPushConflictEnds changes the value of the object that holds a secret to that of the other one.
func TestPushConflictEnds(t *testing.T) {
	e := testenv.NewServed(t)
	for name, value := range map[string]string{"holder": "one", "other": "two"} {
		e.Source(name, map[string]string{"password": value})
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.Selector.Secret.Name = name
			ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "db", "")}
			ps.Spec.Suspend = name == "other"
		}))
	}
	e.WantPushed("holder", v1alpha1.ReasonSecretSynced)
	testenv.Update(e.Client, e.GetPush("other"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = false })
	e.WantPushed("other", v1alpha1.ReasonConflict)
	e.Source("holder", map[string]string{"password": "two"})
	e.WantPushed("other", v1alpha1.ReasonSecretSynced)
	e.WantPushed("holder", v1alpha1.ReasonSecretSynced)
	if v := e.Backend.Versions("db"); len(v) != 2 {
		t.Errorf("versions %v, want one of each value", v)
	}
}

// TestPushRotatesTogether lets two objects push the same value, and changes it. Neither is ever in conflict.
func TestPushRotatesTogether(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	for _, name := range []string{"a", "b"} {
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "db", "")}
		}))
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
	}
	for _, value := range []string{"two", "three"} {
		e.Source("source", map[string]string{"password": value})
		e.WantRemote(e.Backend, "db", value)
		for _, name := range []string{"a", "b"} {
			e.Eventually(func() string {
				ps := e.GetPush(name)
				if ready := ps.Status.Conditions[0]; ready.Reason == v1alpha1.ReasonConflict {
					t.Fatalf("%s: %s", name, ready.Message)
				}
				if len(ps.Status.Stores[0].Entries) != 1 || ps.Status.Stores[0].Entries[0].Version != e.Backend.Versions("db")[len(e.Backend.Versions("db"))-1] {
					return "the status does not record the last version"
				}
				return ""
			})
		}
	}
	if v := e.Backend.Versions("db"); len(v) != 3 {
		t.Errorf("versions %v, want one of each value", v)
	}
}
