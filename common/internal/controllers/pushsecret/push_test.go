package pushsecret_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPush follows one object from its creation over changes of its Secret and its spec to its deletion.
func TestPush(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one", "user": "bob"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "db", "one")
	ps := e.GetPush("db")
	want := []v1alpha1.PushEntryStatus{{RemoteKey: "db", Source: "source", Version: "v1", ID: e.Backend.ID("db"), Created: true}}
	if diff := cmp.Diff(want, ps.Status.Stores[0].Entries); diff != "" {
		t.Errorf("entries: -want, +got:\n%s", diff)
	}
	if got := e.Backend.Mark("db"); got != string(ps.UID) {
		t.Errorf("the remote secret has mark %q, want the uid %q", got, ps.UID)
	}

	e.Source("source", map[string]string{"password": "two", "user": "bob"})
	e.WantRemote(e.Backend, "db", "two")

	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "other", "auth.password"), testenv.PushData("user", "other", "auth.user")}
	})
	e.WantRemote(e.Backend, "other", `{"auth":{"password":"two","user":"bob"}}`)
	e.WantRemote(e.Backend, "db", "")

	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.Data = ps.Spec.Data[:1] })
	e.WantRemote(e.Backend, "other", `{"auth":{"password":"two"}}`)
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.WantRemote(e.Backend, "other", "")
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(ps), ps); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object still exists: %v", err)
		}
		return ""
	})
}

// TestPushComparisonWritesNothing checks that repeated comparisons write nothing: neither to a store nor, unless the comparison was
// requested and the status records that, to the object.
func TestPushComparisonWritesNothing(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	for i := range 5 {
		e.Create(e.PushSecret(fmt.Sprint("db-", i), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "1s" }))
		e.WantPushed(fmt.Sprint("db-", i), v1alpha1.ReasonSecretSynced)
	}
	writes := e.Backend.Writes()
	versions := func() map[string]string {
		all := map[string]string{}
		for i := range 5 {
			all[fmt.Sprint("db-", i)] = e.GetPush(fmt.Sprint("db-", i)).ResourceVersion
		}
		return all
	}
	before := versions()
	if err := e.Backend.Wait(e.Ctx, e.Backend.Count(fake.CallObserve)+3*len(before), fake.CallObserve); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("a comparison that found nothing new wrote objects; their versions: -before, +now:\n%s", diff)
	}
	for round := range 3 {
		for i := range 5 {
			name := fmt.Sprint("db-", i)
			observed := e.Backend.Count(fake.CallObserve)
			testenv.Update(e.Client, e.GetPush(name), func(ps *v1alpha1.PushSecret) {
				ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(round)}
			})
			e.Eventually(func() string {
				if e.Backend.Count(fake.CallObserve) == observed || e.GetPush(name).Status.Stores[0].ObservedRefreshRequest != fmt.Sprint(round) {
					return name + " was not compared"
				}
				return ""
			})
		}
	}
	if got := e.Backend.Writes(); got != writes {
		t.Errorf("%d writes without a change", got-writes)
	}
}

// TestPushRequestFails requests a refresh that one of two stores cannot serve. The status shows that both have answered.
func TestPushRequestFails(t *testing.T) {
	e := testenv.NewServed(t)
	other := e.BackendOf("other")
	e.Create(e.Store("other", "other"))
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "FakeStore", Name: "other"})
	}))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	// state returns the request that was answered, and per store the one that was served.
	state := func() []string {
		st := e.GetPush("db").Status
		all := []string{st.AttemptedRefreshRequest}
		for _, s := range st.Stores {
			all = append(all, s.Name+" "+s.ObservedRefreshRequest)
		}
		return all
	}
	repair := other.Inject(fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Denied, "not allowed")})
	testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.Eventually(func() string { return cmp.Diff([]string{"1", "other ", "store 1"}, state()) })
	e.WantPushed("db", v1alpha1.ReasonSecretSyncedError)
	repair()
	e.Eventually(func() string { return cmp.Diff([]string{"1", "other 1", "store 1"}, state()) })
}

// TestPushRefusals pushes to stores that must not or cannot be written.
func TestPushRefusals(t *testing.T) {
	e := testenv.NewServed(t)
	e.BackendOf("readonly", fake.ReadOnly())
	e.BackendOf("weak", fake.Weak())
	e.Create(e.Store("closed", "main", func(s *fakev1.FakeStore) { s.Spec.Access = v1alpha1.AccessReadOnly }))
	e.Create(e.Store("unwritable", "readonly"))
	e.Create(e.Store("weak", "weak"))
	e.Source("source", map[string]string{"password": "ours"})
	property := func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", ps.Name, "p")}
	}
	ifNotExists := func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }
	refuse := func(ps *v1alpha1.PushSecret) { ps.Spec.AdoptionPolicy = v1alpha1.AdoptionRefuse }
	const failed = v1alpha1.ReasonSecretSyncedError
	cases := map[string]struct {
		reason  string
		store   string
		change  func(*v1alpha1.PushSecret)
		ready   string
		message string
	}{
		"closed":      {"A ReadOnly store is refused, and the message names it.", "closed", nil, v1alpha1.ReasonForbidden, `FakeStore "closed" has access: ReadOnly`},
		"unwritable":  {"A store without a Writer is refused.", "unwritable", nil, failed, `Invalid: FakeStore "unwritable": the store is read-only, because its Kind cannot write secrets`},
		"property":    {"A store that cannot write a single property is refused.", "weak", property, failed, "not implemented: this store cannot write one property"},
		"ifnotexists": {"A store without a create-only call is refused.", "weak", ifNotExists, failed, "not implemented: this store does not support spec.updatePolicy: IfNotExists"},
		"refuse":      {"A store that cannot mark its secrets is refused.", "weak", refuse, failed, "not implemented: this store does not record who created a secret"},
		"nowhere":     {"The message names a store that does not exist.", "nowhere", nil, v1alpha1.ReasonStoreNotFound, `/nowhere" does not exist`},
	}
	for name, tc := range cases {
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.StoreRefs[0].Name = tc.store
			if tc.change != nil {
				tc.change(ps)
			}
		}))
	}
	for name, tc := range cases {
		if message := e.WantPushed(name, tc.ready); !strings.Contains(message, tc.message) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, tc.message)
		}
	}
	for _, b := range []*fake.Backend{e.Backend, e.BackendOf("readonly"), e.BackendOf("weak")} {
		if n := b.Writes(); n > 0 {
			t.Errorf("%d writes to a store that must not be written", n)
		}
	}
}

// TestPushLoop pushes a Secret that an ExternalSecret wrote. A push to the same store, or to another store over the
// same backend, is refused. A push to another backend is allowed.
func TestPushLoop(t *testing.T) {
	e := testenv.NewServed(t)
	other := e.BackendOf("other")
	e.Create(e.Store("other", "other"))
	e.Create(e.Store("twin", "main"))
	e.Backend.Put("db", []byte("one"))
	e.Create(e.ExternalSecret("db"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	for name, store := range map[string]string{"back": "store", "round": "twin", "on": "other"} {
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.StoreRefs[0].Name, ps.Spec.Selector.Secret.Name = store, "db"
			ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("value", "copy-"+name, "")}
		}))
	}
	for _, name := range []string{"back", "round"} {
		if m := e.WantPushed(name, v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "cannot be pushed back to it") {
			t.Errorf("%s says %q", name, m)
		}
	}
	e.WantPushed("on", v1alpha1.ReasonSecretSynced)
	e.WantRemote(other, "copy-on", "one")
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("%d writes to the backend that the Secret was read from", n)
	}
}

// TestPushFailover blocks one of two stores. The other store must be in sync, the status must name the blocked one, and
// the blocked one must catch up later.
func TestPushFailover(t *testing.T) {
	e := testenv.NewIdle(t)
	second := e.Server.Backend("second")
	e.Create(e.Store("second", "second"))
	e.Start()
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "FakeStore", Name: "second"})
	}))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	repair := second.Inject(fake.Fault{Hang: true})
	e.Source("source", map[string]string{"password": "two"})
	e.WantRemote(e.Backend, "db", "two")
	if m := e.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, `FakeStore "second"`) || strings.Contains(m, `"store"`) {
		t.Errorf("Ready says %q, want it to name the second store alone", m)
	}
	e.Source("source", map[string]string{"password": "three"})
	e.WantRemote(e.Backend, "db", "three")
	if v := testenv.Remote(second, "db"); v != "one" {
		t.Errorf("the blocked store holds %q", v)
	}
	repair()
	e.WantRemote(second, "db", "three")
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushSelected pushes all Secrets with a label to all stores with another label.
func TestPushSelected(t *testing.T) {
	e := testenv.NewServed(t)
	second := e.BackendOf("second")
	labelled := func(s *fakev1.FakeStore) { s.Labels = map[string]string{"tier": "true"} }
	e.Create(e.Store("second", "second", labelled))
	e.Source("one", map[string]string{"password": "1"}, "push")
	e.Source("none", map[string]string{"password": "0"})
	e.Create(e.PushSecret("all", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "true"}}}}
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"push": "true"}}}
		ps.Spec.Data = nil
		ps.Spec.DataTo = []v1alpha1.PushDataTo{{RemoteKey: "${namespace}/${name}"}}
	}))
	e.WantRemote(second, e.NS+"/one", `{"password":"1"}`)
	e.Source("two", map[string]string{"password": "2", "tls.crt": "c"}, "push")
	e.WantRemote(second, e.NS+"/two", `{"password":"2","tls.crt":"c"}`)
	testenv.Update(e.Client, e.Store("store", "main"), labelled)
	e.WantRemote(e.Backend, e.NS+"/one", `{"password":"1"}`)
	e.WantPushed("all", v1alpha1.ReasonSecretSynced)

	// A deleted Secret deletes nothing, whatever the policy.
	if err := e.API.Delete(e.Ctx, &corev1.Secret{ObjectMeta: e.Meta("one")}); err != nil {
		t.Fatal(err)
	}
	e.Source("two", map[string]string{"password": "3"}, "push")
	e.WantRemote(second, e.NS+"/two", `{"password":"3","tls.crt":"c"}`)
	if v := testenv.Remote(second, e.NS+"/one"); v != `{"password":"1"}` {
		t.Errorf("the value pushed from a deleted Secret is now %q", v)
	}
	if v := testenv.Remote(second, e.NS+"/none"); v != "" {
		t.Errorf("a Secret without the label was pushed")
	}
}

// TestPushTemplate pushes the output of a template.
func TestPushTemplate(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"user": "bob", "password": "one"})
	e.Create(e.PushSecret("url", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"url": "db://{{ .user }}:{{ .password }}@host"}}
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("url", "url", "")}
		ps.Spec.Data[0].Metadata = jsonOf(t, map[string]any{"tags": map[string]string{"team": "shop"}})
	}))
	e.WantRemote(e.Backend, "url", "db://bob:one@host")
	e.WantPushed("url", v1alpha1.ReasonSecretSynced)
	if diff := cmp.Diff(map[string]string{"team": "shop"}, e.Backend.TagsOf("url")); diff != "" {
		t.Errorf("tags: -want, +got:\n%s", diff)
	}
}

// TestPushTemplateIsExact pushes numbers of a document as they are. A template that would change a value pushes nothing.
func TestPushTemplateIsExact(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"doc": `{"id":12345678,"p":1.10,"gone":null}`, "raw": "\x00\xff"})
	push := func(name, template string) {
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"v": template}}
			ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("v", name, "")}
		}))
	}
	push("exact", `{{ $d := fromJson .doc }}{{ $d.id }} {{ $d.p }}`)
	e.WantRemote(e.Backend, "exact", "12345678 1.10")
	for name, template := range map[string]string{"null": `{{ (fromJson .doc).gone }}`, "bytes": `{{ toJson .raw }}`} {
		push(name, template)
		e.WantPushed(name, v1alpha1.ReasonSecretSyncedError)
		if v := testenv.Remote(e.Backend, name); v != "" {
			t.Errorf("%s: %q was pushed", name, v)
		}
	}
}

// TestPushHeldNamespace deletes a namespace whose object must remove a secret from a deleted store.
func TestPushHeldNamespace(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	if err := e.API.Delete(e.Ctx, e.Store("store", "main")); err != nil {
		t.Fatal(err)
	}
	if err := e.API.Delete(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS}}); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, types.NamespacedName{Namespace: e.NS, Name: "db"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object still exists: %v", err)
		}
		return ""
	})
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
}

// TestPushHeldByStore deletes an object whose store denies the removal. The object must be kept and report it, and
// deletionPolicy None must release it.
func TestPushHeldByStore(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Inject(fake.Fault{Call: fake.CallDelete, Err: provider.NewError(provider.Denied, "no deletion")})
	ps := e.GetPush("db")
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string {
		c := meta.FindStatusCondition(e.GetPush("db").Status.Conditions, v1alpha1.ConditionReady)
		if !strings.Contains(c.Message, "spec.deletionPolicy: None") || e.Backend.Count(fake.CallDelete) == 0 {
			return "Ready says " + c.Message
		}
		return ""
	})
	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = "" })
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(ps), ps); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object still exists: %v", err)
		}
		return ""
	})
}

// TestPushRandomTemplate pushes the output of a template that differs on every run. Only one output must be pushed,
// until the Secret or the spec changes.
func TestPushRandomTemplate(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"user": "bob"})
	e.Create(e.PushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"password": `{{ .user }}-{{ randAlphaNum 12 }}`}}
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "whole", ""), testenv.PushData("password", "object", "p")}
	}))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	for round := range 3 {
		testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) {
			ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(round)}
		})
		e.Eventually(func() string {
			return cmp.Diff(fmt.Sprint(round), e.GetPush("db").Status.Stores[0].ObservedRefreshRequest)
		})
	}
	for _, key := range []string{"whole", "object"} {
		if v := e.Backend.Versions(key); len(v) != 1 {
			t.Errorf("%s has versions %v, and nothing changed", key, v)
		}
	}
	e.Source("source", map[string]string{"user": "eve"})
	e.Eventually(func() string {
		if v := testenv.Remote(e.Backend, "whole"); !strings.HasPrefix(v, "eve-") {
			return "the store holds " + v
		}
		return ""
	})
}

// TestPushOneKeyFails makes one of several remote secrets fail permanently. The others must be written, and the
// condition must name the failing one.
func TestPushOneKeyFails(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	defer e.Backend.Inject(fake.Fault{Call: fake.CallCreate, Key: "b", Err: provider.NewError(provider.Unavailable, "no such region")})()
	e.Create(e.PushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = nil
		for _, key := range []string{"a", "b", "c", "d"} {
			ps.Spec.Data = append(ps.Spec.Data, testenv.PushData("password", key, ""))
		}
	}))
	for _, key := range []string{"a", "c", "d"} {
		e.WantRemote(e.Backend, key, "one")
	}
	if m := e.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `Unavailable: FakeStore "store": "b": `) {
		t.Errorf("Ready says %q", m)
	}
}

// TestPushPatternMatchesNothing misspells the pattern of an entry. The other entries are pushed, and nothing is removed,
// neither remote secrets nor properties of one.
func TestPushPatternMatchesNothing(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"a-1": "1", "b-1": "2"})
	for name, remoteKey := range map[string]string{"secrets": "", "properties": "all"} {
		match := func(re string) v1alpha1.PushDataTo {
			return v1alpha1.PushDataTo{Match: &v1alpha1.PushKeyMatch{RegExp: re}, RemoteKey: remoteKey}
		}
		want := func(values map[string]string) {
			t.Helper()
			if remoteKey == "" {
				for k, v := range values {
					e.WantRemote(e.Backend, k, v)
				}
				return
			}
			maps.DeleteFunc(values, func(_, v string) bool { return v == "" })
			raw, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			e.WantRemote(e.Backend, remoteKey, string(raw))
		}
		e.Source("source", map[string]string{"a-1": "1", "b-1": "2"})
		e.Create(e.PushSecret(name, testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
			ps.Spec.Data, ps.Spec.DataTo = nil, []v1alpha1.PushDataTo{match("^a"), match("^b")}
		}))
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		e.Source("source", map[string]string{"a-1": "1", "b-1": "3"})
		testenv.Update(e.Client, e.GetPush(name), func(ps *v1alpha1.PushSecret) { ps.Spec.DataTo[0] = match("^A") })
		message := `NotFound: FakeStore "store": spec.dataTo[0].match.regexp: "^A" matches no key of Secret "source"; correct it, or add the key`
		if got := e.WantPushed(name, v1alpha1.ReasonSecretSyncedError); got != message {
			t.Errorf("message is %q, want %q", got, message)
		}
		want(map[string]string{"a-1": "1", "b-1": "3"})
		testenv.Update(e.Client, e.GetPush(name), func(ps *v1alpha1.PushSecret) { ps.Spec.DataTo = ps.Spec.DataTo[1:] })
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		want(map[string]string{"a-1": "", "b-1": "3"})
		if err := e.API.Delete(e.Ctx, e.GetPush(name)); err != nil {
			t.Fatal(err)
		}
		wantPushDeleted(e, name)
	}
}

// TestPushNewGeneration changes the spec while the store is blocked. Ready must not be True any longer, because it
// refers to the former spec.
func TestPushNewGeneration(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	release := e.Backend.Inject(fake.Fault{Call: fake.CallObserve, Hang: true})
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0] = testenv.PushData("password", "other", "") })
	e.Eventually(func() string {
		c := meta.FindStatusCondition(e.GetPush("db").Status.Conditions, v1alpha1.ConditionReady)
		if c.ObservedGeneration != ps.Generation {
			return "the new spec was not reconciled"
		}
		if c.Status == metav1.ConditionTrue {
			t.Fatalf("Ready is True for a spec that was not pushed: %s", c.Message)
		}
		return ""
	})
	release()
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushStoreMoves changes the backend of a store. The values must be pushed to the new backend.
func TestPushStoreMoves(t *testing.T) {
	e := testenv.NewServed(t)
	elsewhere := e.BackendOf("elsewhere")
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	testenv.Update(e.Client, e.Store("store", "main"), func(s *fakev1.FakeStore) { s.Spec.Backend = e.BackendName("elsewhere") })
	e.WantRemote(elsewhere, "db", "one")
}

// TestPushSuspendedIsDeleted deletes a suspended object. The remote secret must stay unchanged, and the object must be
// deleted.
func TestPushSuspendedIsDeleted(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
	e.WantPushed("db", v1alpha1.ReasonSuspended)
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	wantPushDeleted(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it unchanged", v)
	}
}

// TestPushSuspendedIsDeletedMeanwhile deletes a suspended object while a push to one of its stores has not ended. The
// remote secret in the other store must stay unchanged, too.
func TestPushSuspendedIsDeletedMeanwhile(t *testing.T) {
	e := testenv.NewServed(t)
	second := e.BackendOf("second")
	e.Create(e.Store("second", "second"))
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "FakeStore", Name: "second"})
	}))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	release := second.Inject(fake.Fault{Call: fake.CallUpdate, Hang: true})
	e.Source("source", map[string]string{"password": "two"})
	if err := second.Wait(e.Ctx, 1, fake.CallUpdate); err != nil {
		t.Fatal(err)
	}
	e.WantRemote(e.Backend, "db", "two")
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
	e.Delete(ps)
	wantPushDeleted(e, "db")
	release()
	e.WantNote("db", "Released", `FakeStore "second" "db"`)
	if v := testenv.Remote(e.Backend, "db"); v != "two" {
		t.Errorf("the remote secret in the other store is %q, want it unchanged", v)
	}
}

// TestPushSourceLosesKeys removes a key from a Secret of which all keys are pushed. Its remote secret must stay, also
// if the spec changes later, and must be deleted with the object.
func TestPushSourceLosesKeys(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"a": "1", "b": "2"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data, ps.Spec.DataTo = nil, []v1alpha1.PushDataTo{{}}
	}))
	e.WantRemote(e.Backend, "b", "2")
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Source("source", map[string]string{"a": "3"})
	e.WantRemote(e.Backend, "a", "3")
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })
	e.Eventually(func() string {
		if s := e.GetPush("db").Status.Stores[0]; s.ObservedGeneration != ps.Generation {
			return "the spec was not reconciled"
		}
		return ""
	})
	if v := testenv.Remote(e.Backend, "b"); v != "2" {
		t.Errorf("the value pushed from a removed key is now %q", v)
	}
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	wantPushDeleted(e, "db")
	e.WantRemote(e.Backend, "b", "")
}

// TestPushDeletedMeanwhile deletes an object while its remote secret is being created. The remote secret must be
// deleted, too.
func TestPushDeletedMeanwhile(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	release := e.Backend.Inject(fake.Fault{Call: fake.CallCreate, Hang: true})
	ps := e.PushSecret("db", testenv.PushDeletes)
	e.Create(ps)
	if err := e.Backend.Wait(e.Ctx, 1, fake.CallCreate); err != nil {
		t.Fatal(err)
	}
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string {
		if c := meta.FindStatusCondition(e.GetPush("db").Status.Conditions, v1alpha1.ConditionReady); c == nil || !strings.Contains(c.Message, "being deleted") {
			return fmt.Sprintf("the end of the push was not reconciled: %+v", c)
		}
		return ""
	})
	release()
	wantPushDeleted(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "" {
		t.Errorf("the remote secret is %q, and no status lists it any more", v)
	}
}

// TestPushRestart restarts an operator with objects in sync. It must read no values of Secrets, and call no store
// except for the store validation.
func TestPushRestart(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Eventually(func() string {
		if e.GetPush("db").Status.Stores[0].NextRefreshTime == nil {
			return "the next comparison is not planned"
		}
		return ""
	})
	e.Stop()
	observed, since := e.Backend.Count(fake.CallObserve), time.Now()
	e.Start()
	e.Create(e.PushSecret("later"))
	e.WantPushed("later", v1alpha1.ReasonSecretSynced)
	for _, r := range e.Backend.Calls(fake.CallObserve)[observed:] {
		if r.Refs[0].Key == "db" {
			t.Errorf("the secret in sync was read %s after the restart", r.Time.Sub(since))
		}
	}
}

func jsonOf(t *testing.T, v any) *runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

// TestPushTooLarge pushes 201 keys to each of ten stores. The status could not list all of it, so nothing is created.
func TestPushTooLarge(t *testing.T) {
	e := testenv.NewServed(t)
	values := map[string]string{}
	for i := range 201 {
		values[fmt.Sprintf("key-%d", i)] = "v"
	}
	var refs []v1alpha1.PushStoreRef
	for i := range 10 {
		name := fmt.Sprintf("store-%d", i)
		e.Create(e.Store(name, "main"))
		refs = append(refs, v1alpha1.PushStoreRef{Kind: "FakeStore", Name: name})
	}
	e.Source("source", values)
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs, ps.Spec.Data, ps.Spec.DataTo = refs, nil, []v1alpha1.PushDataTo{{}}
	}))
	if m := e.WantPushed("db", v1alpha1.ReasonInvalidSpec); !strings.Contains(m, "2010 remote secrets and properties") || !strings.Contains(m, "at most 2000") {
		t.Errorf("message: %s", m)
	}
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("%d writes to the stores", n)
	}
}
