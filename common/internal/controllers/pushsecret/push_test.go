package pushsecret_test

import (
	"encoding/json"
	"fmt"
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

// TestPush follows one object from its creation over changes of its Secret and its spec to its end.
func TestPush(t *testing.T) {
	e := testenv.New(t)
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
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
}

// TestPushSteady has objects compared again and again without a write: to no store, and where the comparison was not
// asked for, which the status says, to no object.
func TestPushSteady(t *testing.T) {
	e := testenv.New(t)
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
		t.Errorf("%d writes for nothing new", got-writes)
	}
}

// TestPushPolicies has remote secrets that exist already.
func TestPushPolicies(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "ours"})
	cases := map[string]struct {
		reason  string
		update  v1alpha1.PushUpdatePolicy
		adopt   v1alpha1.PushAdoptionPolicy
		exists  string
		data    v1alpha1.PushData
		want    string
		verdict string
		message string
	}{
		"replace":  {"What differs is overwritten.", "", "", "theirs", testenv.PushData("password", "replace", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"exists":   {"IfNotExists leaves it alone, and says so.", v1alpha1.UpdateIfNotExists, "", "theirs", testenv.PushData("password", "exists", ""), "theirs", v1alpha1.ReasonSecretAlreadyExists, `"exists"`},
		"new":      {"IfNotExists writes what does not exist.", v1alpha1.UpdateIfNotExists, "", "", testenv.PushData("password", "new", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"property": {"A property that does not exist is written beside the others.", v1alpha1.UpdateIfNotExists, "", `{"a":1}`, testenv.PushData("password", "property", "b"), `{"a":1,"b":"ours"}`, v1alpha1.ReasonSecretSynced, ""},
		"taken":    {"One that exists is left alone.", v1alpha1.UpdateIfNotExists, "", `{"b":"theirs"}`, testenv.PushData("password", "taken", "b"), `{"b":"theirs"}`, v1alpha1.ReasonSecretAlreadyExists, `property "b" of "taken"`},
		"refuse":   {"Refuse touches nothing that it did not create.", "", v1alpha1.AdoptionRefuse, "theirs", testenv.PushData("password", "refuse", ""), "theirs", v1alpha1.ReasonSecretSyncedError, "spec.adoptionPolicy is Refuse"},
		"equal":    {"What is in step already is no matter of adoption.", "", v1alpha1.AdoptionRefuse, "ours", testenv.PushData("password", "equal", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"text":     {"Only JSON has properties.", "", "", "theirs", testenv.PushData("password", "text", "b"), "theirs", v1alpha1.ReasonSecretSyncedError, "no JSON object"},
		"missing":  {"A key that the Secret lacks is named.", "", "", "theirs", testenv.PushData("nothing", "missing", ""), "theirs", v1alpha1.ReasonSecretSyncedError, `has no key "nothing"`},
	}
	for name, tc := range cases {
		if tc.exists != "" {
			e.Backend.Put(name, []byte(tc.exists))
		}
		e.Create(e.PushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.UpdatePolicy, ps.Spec.AdoptionPolicy, ps.Spec.Data = tc.update, tc.adopt, []v1alpha1.PushData{tc.data}
		}))
	}
	for name, tc := range cases {
		message := e.WantPushed(name, tc.verdict)
		if !strings.Contains(message, tc.message) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, tc.message)
		}
		if diff := cmp.Diff(tc.want, testenv.Remote(e.Backend, name)); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// TestPushDeletesItsOwn has objects go that share remote secrets with others.
func TestPushDeletesItsOwn(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "ours"})
	e.Backend.Put("adopted", []byte("theirs"))
	e.Backend.Put("shared", []byte(`{"theirs":"1"}`))
	e.Create(e.PushSecret("it", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{
			testenv.PushData("password", "own", ""), testenv.PushData("password", "adopted", ""), testenv.PushData("password", "shared", "ours"),
			testenv.PushData("password", "changed", ""), testenv.PushData("password", "remade", ""),
		}
	}))
	e.WantPushed("it", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "shared", `{"theirs":"1","ours":"ours"}`)
	e.Backend.Put("changed", []byte("by somebody"))
	e.Backend.Delete("remade")
	e.Backend.Put("remade", []byte("ours"))
	if err := e.API.Delete(e.Ctx, e.GetPush("it")); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, types.NamespacedName{Namespace: e.NS, Name: "it"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
	got := map[string]string{}
	for _, k := range []string{"own", "adopted", "shared", "changed", "remade"} {
		got[k] = testenv.Remote(e.Backend, k)
	}
	want := map[string]string{"own": "", "adopted": "ours", "shared": `{"theirs":"1"}`, "changed": "by somebody", "remade": "ours"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
}

// TestPushRefusals has stores that must not or cannot be written.
func TestPushRefusals(t *testing.T) {
	e := testenv.NewIdle(t)
	e.Server.Backend("readonly", fake.ReadOnly())
	e.Server.Backend("weak", fake.Weak())
	e.Create(e.Store("closed", "main", func(s *fakev1.FakeStore) { s.Spec.Access = v1alpha1.AccessReadOnly }))
	e.Create(e.Store("unwritable", "readonly"))
	e.Create(e.Store("weak", "weak"))
	e.Start()
	e.Source("source", map[string]string{"password": "ours"})
	property := func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", ps.Name, "p")}
	}
	ifNotExists := func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }
	refuse := func(ps *v1alpha1.PushSecret) { ps.Spec.AdoptionPolicy = v1alpha1.AdoptionRefuse }
	cases := map[string]struct {
		reason  string
		store   string
		change  func(*v1alpha1.PushSecret)
		message string
	}{
		"closed":      {"A ReadOnly store is refused by name.", "closed", nil, `Denied: FakeStore "closed" has access ReadOnly`},
		"unwritable":  {"A store without a Writer says so.", "unwritable", nil, `Invalid: FakeStore "unwritable": not implemented: `},
		"property":    {"So does one that cannot write a property alone.", "weak", property, "not implemented: this store cannot write a property"},
		"ifnotexists": {"So does one that cannot create only.", "weak", ifNotExists, "not implemented: this store cannot write only what does not exist"},
		"refuse":      {"So does one that cannot tell whose a secret is.", "weak", refuse, "not implemented: this store cannot tell who created a secret"},
		"nowhere":     {"A store that does not exist is named.", "nowhere", nil, `NotFound: FakeStore "nowhere" does not exist`},
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
		if message := e.WantPushed(name, v1alpha1.ReasonSecretSyncedError); !strings.Contains(message, tc.message) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, tc.message)
		}
	}
	for _, b := range []*fake.Backend{e.Backend, e.Server.Backend("readonly"), e.Server.Backend("weak")} {
		if n := b.Writes(); n > 0 {
			t.Errorf("%d writes to a store that must not be written", n)
		}
	}
}

// TestPushLoop pushes what an ExternalSecret has read: back to its store, or to another one over the same backend, which is
// refused, and to another backend.
func TestPushLoop(t *testing.T) {
	e := testenv.NewIdle(t)
	other := e.Server.Backend("other")
	e.Create(e.Store("other", "other"))
	e.Create(e.Store("twin", "main"))
	e.Start()
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
		if m := e.WantPushed(name, v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "round in circles") {
			t.Errorf("%s says %q", name, m)
		}
	}
	e.WantPushed("on", v1alpha1.ReasonSecretSynced)
	e.WantRemote(other, "copy-on", "one")
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("%d writes to the place that the Secret came from", n)
	}
}

// TestPushFailover has one of two stores hang: the other is in step, the status says which is not, and that
// one catches up.
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
	mend := second.Inject(fake.Fault{Hang: true})
	e.Source("source", map[string]string{"password": "two"})
	e.WantRemote(e.Backend, "db", "two")
	if m := e.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, `FakeStore "second"`) || strings.Contains(m, `"store"`) {
		t.Errorf("Ready says %q, want it to name the second store alone", m)
	}
	e.Source("source", map[string]string{"password": "three"})
	e.WantRemote(e.Backend, "db", "three")
	if v := testenv.Remote(second, "db"); v != "one" {
		t.Errorf("the store that hangs holds %q", v)
	}
	mend()
	e.WantRemote(second, "db", "three")
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushSelected pushes all Secrets that carry a label, to all stores that carry another.
func TestPushSelected(t *testing.T) {
	e := testenv.NewIdle(t)
	second := e.Server.Backend("second")
	labelled := func(s *fakev1.FakeStore) { s.Labels = map[string]string{"tier": "true"} }
	e.Create(e.Store("second", "second", labelled))
	e.Start()
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

	// A Secret that is gone deletes nothing, whatever the policy.
	if err := e.API.Delete(e.Ctx, &corev1.Secret{ObjectMeta: e.Meta("one")}); err != nil {
		t.Fatal(err)
	}
	e.Source("two", map[string]string{"password": "3"}, "push")
	e.WantRemote(second, e.NS+"/two", `{"password":"3","tls.crt":"c"}`)
	if v := testenv.Remote(second, e.NS+"/one"); v != `{"password":"1"}` {
		t.Errorf("what was pushed of a Secret that is gone is now %q", v)
	}
	if v := testenv.Remote(second, e.NS+"/none"); v != "" {
		t.Errorf("a Secret without the label was pushed")
	}
}

// TestPushTemplate shapes what is pushed.
func TestPushTemplate(t *testing.T) {
	e := testenv.New(t)
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

// TestPushHeldNamespace deletes a namespace whose object has to remove something from a store that is gone.
func TestPushHeldNamespace(t *testing.T) {
	e := testenv.New(t)
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
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
}

// TestPushHeldByStore deletes an object whose store refuses: it is held, says so, and None lets it go.
func TestPushHeldByStore(t *testing.T) {
	e := testenv.New(t)
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
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
}

// TestPushRandomTemplate shapes what is pushed by a template that yields another value each time: one is
// pushed, until the Secret or the spec changes.
func TestPushRandomTemplate(t *testing.T) {
	e := testenv.New(t)
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

// TestPushOneKeyFails has one of several remote secrets fail for good: the others are written, and the
// condition names the one.
func TestPushOneKeyFails(t *testing.T) {
	e := testenv.New(t)
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

// TestPushNewGeneration has a changed spec wait for its store: what is known of the spec before it is no
// longer Ready.
func TestPushNewGeneration(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	release := e.Backend.Inject(fake.Fault{Call: fake.CallObserve, Hang: true})
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0] = testenv.PushData("password", "other", "") })
	e.Eventually(func() string {
		c := meta.FindStatusCondition(e.GetPush("db").Status.Conditions, v1alpha1.ConditionReady)
		if c.ObservedGeneration != ps.Generation {
			return "the new spec was not looked at"
		}
		if c.Status == metav1.ConditionTrue {
			t.Fatalf("Ready is True for a spec that was not pushed: %s", c.Message)
		}
		return ""
	})
	release()
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushStoreMoves changes where a store is: what is in step is pushed there.
func TestPushStoreMoves(t *testing.T) {
	e := testenv.New(t)
	elsewhere := e.Server.Backend("elsewhere")
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	testenv.Update(e.Client, e.Store("store", "main"), func(s *fakev1.FakeStore) { s.Spec.Backend = "elsewhere" })
	e.WantRemote(elsewhere, "db", "one")
}

// TestPushSuspendedGoes deletes an object that is suspended: nothing is touched, and it goes.
func TestPushSuspendedGoes(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	ps := testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
	e.WantPushed("db", v1alpha1.ReasonSuspended)
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	wantPushGone(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left alone", v)
	}
}

// TestPushSourceLosesKeys takes a key out of a Secret of which all keys are pushed. What was pushed of it stays,
// also when the spec changes later, and goes with the object.
func TestPushSourceLosesKeys(t *testing.T) {
	e := testenv.New(t)
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
			return "the spec was not looked at"
		}
		return ""
	})
	if v := testenv.Remote(e.Backend, "b"); v != "2" {
		t.Errorf("what was pushed of a key that the Secret lost is now %q", v)
	}
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	wantPushGone(e, "db")
	e.WantRemote(e.Backend, "b", "")
}

// TestPushDeletedMeanwhile deletes an object while the secret is being created for it: that goes, too.
func TestPushDeletedMeanwhile(t *testing.T) {
	e := testenv.New(t)
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
			return fmt.Sprintf("its end was not looked at: %+v", c)
		}
		return ""
	})
	release()
	wantPushGone(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "" {
		t.Errorf("the remote secret is %q, and nobody knows of it any more", v)
	}
}

// TestPushRestart has an operator start over objects that are in step: it reads no Secret's values and
// calls no store but to validate it.
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
			t.Errorf("the secret that is in step was read %s after the restart", r.Time.Sub(since))
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
