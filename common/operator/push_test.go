package operator_test

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
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// pushSecret returns an object that pushes the key "password" of the Secret "source" to a remote secret of
// the object's name.
func (e *env) pushSecret(name string, change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	ps := &v1alpha1.PushSecret{
		ObjectMeta: e.meta(name),
		Spec: v1alpha1.PushSecretSpec{
			StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "store"}},
			Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
			Data:      []v1alpha1.PushData{pushData("password", name, "")},
		},
	}
	for _, f := range change {
		f(ps)
	}
	return ps
}

func pushData(key, remote, property string) v1alpha1.PushData {
	return v1alpha1.PushData{Match: v1alpha1.PushMatch{SecretKey: key, RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: remote, Property: property}}}
}

// source creates a Secret to push, or gives it another value.
func (e *env) source(name string, data map[string]string, labels ...string) {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: e.meta(name), StringData: data}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&s.ObjectMeta, l, "true")
	}
	err := api.Create(e.ctx, s)
	if kerrors.IsAlreadyExists(err) {
		update(e, &corev1.Secret{ObjectMeta: e.meta(name)}, func(s *corev1.Secret) {
			s.Data = map[string][]byte{}
			for k, v := range data {
				s.Data[k] = []byte(v)
			}
		})
		return
	}
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) getPush(name string) *v1alpha1.PushSecret {
	e.Helper()
	ps := &v1alpha1.PushSecret{}
	if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: name}, ps); err != nil {
		e.Fatal(err)
	}
	return ps
}

// wantPushed waits until the Ready condition of a PushSecret has a reason for its present generation, and
// returns its message.
func (e *env) wantPushed(name, reason string) string {
	e.Helper()
	message := ""
	e.eventually(func() string {
		ps := e.getPush(name)
		c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil {
			return "PushSecret " + name + " has no Ready condition"
		}
		message = c.Message
		if c.Reason != reason || c.ObservedGeneration != ps.Generation {
			return fmt.Sprintf("PushSecret %s is %s %s: %s, want %s", name, c.Status, c.Reason, c.Message, reason)
		}
		return ""
	})
	return message
}

// wantRemote waits until a remote secret holds a value; empty if there is none.
func (e *env) wantRemote(b *fake.Backend, key, want string) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, remote(b, key)) })
}

func remote(b *fake.Backend, key string) string {
	v, ok := b.Value(key)
	if !ok {
		return ""
	}
	return string(v)
}

func pushDeletes(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete }

// TestPush follows one object from its creation over changes of its Secret and its spec to its end.
func TestPush(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one", "user": "bob"})
	e.create(e.pushSecret("db", pushDeletes))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	e.wantRemote(e.backend, "db", "one")
	ps := e.getPush("db")
	want := []v1alpha1.PushEntryStatus{{RemoteKey: "db", Source: "source", Version: "v1", ID: "1", Created: true}}
	if diff := cmp.Diff(want, ps.Status.Stores[0].Entries); diff != "" {
		t.Errorf("entries: -want, +got:\n%s", diff)
	}
	if got := e.backend.Mark("db"); got != string(ps.UID) {
		t.Errorf("the remote secret has mark %q, want the uid %q", got, ps.UID)
	}

	e.source("source", map[string]string{"password": "two", "user": "bob"})
	e.wantRemote(e.backend, "db", "two")

	update(e, ps, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{pushData("password", "other", "auth.password"), pushData("user", "other", "auth.user")}
	})
	e.wantRemote(e.backend, "other", `{"auth":{"password":"two","user":"bob"}}`)
	e.wantRemote(e.backend, "db", "")

	update(e, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.Data = ps.Spec.Data[:1] })
	e.wantRemote(e.backend, "other", `{"auth":{"password":"two"}}`)
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.wantRemote(e.backend, "other", "")
	e.eventually(func() string {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(ps), ps); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
}

// TestPushSteady has objects compared again and again without a write: to no store, and but for heartbeats
// to the API server.
func TestPushSteady(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	for i := range 5 {
		e.create(e.pushSecret(fmt.Sprint("db-", i)))
		e.wantPushed(fmt.Sprint("db-", i), v1alpha1.ReasonSecretSynced)
	}
	writes := e.backend.Writes()
	versions := map[string]string{}
	for i := range 5 {
		versions[fmt.Sprint("db-", i)] = e.getPush(fmt.Sprint("db-", i)).ResourceVersion
	}
	for round := range 3 {
		for i := range 5 {
			name := fmt.Sprint("db-", i)
			observed := e.backend.Count(fake.CallObserve)
			update(e, e.getPush(name), func(ps *v1alpha1.PushSecret) {
				ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(round)}
			})
			e.eventually(func() string {
				if e.backend.Count(fake.CallObserve) == observed || e.getPush(name).Status.Stores[0].ObservedRefreshRequest != fmt.Sprint(round) {
					return name + " was not compared"
				}
				return ""
			})
		}
	}
	if got := e.backend.Writes(); got != writes {
		t.Errorf("%d writes for nothing new", got-writes)
	}
}

// TestPushPolicies has remote secrets that exist already.
func TestPushPolicies(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "ours"})
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
		"replace":  {"What differs is overwritten.", "", "", "theirs", pushData("password", "replace", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"exists":   {"IfNotExists leaves it alone, and says so.", v1alpha1.UpdateIfNotExists, "", "theirs", pushData("password", "exists", ""), "theirs", v1alpha1.ReasonSecretAlreadyExists, `"exists"`},
		"new":      {"IfNotExists writes what does not exist.", v1alpha1.UpdateIfNotExists, "", "", pushData("password", "new", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"property": {"A property that does not exist is written beside the others.", v1alpha1.UpdateIfNotExists, "", `{"a":1}`, pushData("password", "property", "b"), `{"a":1,"b":"ours"}`, v1alpha1.ReasonSecretSynced, ""},
		"taken":    {"One that exists is left alone.", v1alpha1.UpdateIfNotExists, "", `{"b":"theirs"}`, pushData("password", "taken", "b"), `{"b":"theirs"}`, v1alpha1.ReasonSecretAlreadyExists, `property "b" of "taken"`},
		"refuse":   {"Refuse touches nothing that it did not create.", "", v1alpha1.AdoptionRefuse, "theirs", pushData("password", "refuse", ""), "theirs", v1alpha1.ReasonSecretSyncedError, "spec.adoptionPolicy is Refuse"},
		"equal":    {"What is in step already is no matter of adoption.", "", v1alpha1.AdoptionRefuse, "ours", pushData("password", "equal", ""), "ours", v1alpha1.ReasonSecretSynced, ""},
		"text":     {"Only JSON has properties.", "", "", "theirs", pushData("password", "text", "b"), "theirs", v1alpha1.ReasonSecretSyncedError, "no JSON object"},
		"missing":  {"A key that the Secret lacks is named.", "", "", "theirs", pushData("nothing", "missing", ""), "theirs", v1alpha1.ReasonSecretSyncedError, `has no key "nothing"`},
	}
	for name, tc := range cases {
		if tc.exists != "" {
			e.backend.Put(name, []byte(tc.exists))
		}
		e.create(e.pushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.UpdatePolicy, ps.Spec.AdoptionPolicy, ps.Spec.Data = tc.update, tc.adopt, []v1alpha1.PushData{tc.data}
		}))
	}
	for name, tc := range cases {
		message := e.wantPushed(name, tc.verdict)
		if !strings.Contains(message, tc.message) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, tc.message)
		}
		if diff := cmp.Diff(tc.want, remote(e.backend, name)); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// TestPushDeletesItsOwn has objects go that share remote secrets with others.
func TestPushDeletesItsOwn(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "ours"})
	e.backend.Put("adopted", []byte("theirs"))
	e.backend.Put("shared", []byte(`{"theirs":"1"}`))
	e.create(e.pushSecret("it", pushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{
			pushData("password", "own", ""), pushData("password", "adopted", ""), pushData("password", "shared", "ours"),
			pushData("password", "changed", ""), pushData("password", "remade", ""),
		}
	}))
	e.wantPushed("it", v1alpha1.ReasonSecretSynced)
	e.wantRemote(e.backend, "shared", `{"theirs":"1","ours":"ours"}`)
	e.backend.Put("changed", []byte("by somebody"))
	e.backend.Delete("remade")
	e.backend.Put("remade", []byte("ours"))
	if err := api.Delete(e.ctx, e.getPush("it")); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: "it"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
	got := map[string]string{}
	for _, k := range []string{"own", "adopted", "shared", "changed", "remade"} {
		got[k] = remote(e.backend, k)
	}
	want := map[string]string{"own": "", "adopted": "ours", "shared": `{"theirs":"1"}`, "changed": "by somebody", "remade": "ours"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
}

// TestPushRefusals has stores that must not or cannot be written.
func TestPushRefusals(t *testing.T) {
	e := newIdleEnv(t)
	e.server.Backend("readonly", fake.ReadOnly())
	e.server.Backend("weak", fake.Weak())
	e.create(e.store("closed", "main", func(s *fakev1.FakeStore) { s.Spec.Access = v1alpha1.AccessReadOnly }))
	e.create(e.store("unwritable", "readonly"))
	e.create(e.store("weak", "weak"))
	e.start()
	e.source("source", map[string]string{"password": "ours"})
	property := func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{pushData("password", ps.Name, "p")}
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
		e.create(e.pushSecret(name, func(ps *v1alpha1.PushSecret) {
			ps.Spec.StoreRefs[0].Name = tc.store
			if tc.change != nil {
				tc.change(ps)
			}
		}))
	}
	for name, tc := range cases {
		if message := e.wantPushed(name, v1alpha1.ReasonSecretSyncedError); !strings.Contains(message, tc.message) {
			t.Errorf("%s: %s\nmessage %q, want %q", name, tc.reason, message, tc.message)
		}
	}
	for _, b := range []*fake.Backend{e.backend, e.server.Backend("readonly"), e.server.Backend("weak")} {
		if n := b.Writes(); n > 0 {
			t.Errorf("%d writes to a store that must not be written", n)
		}
	}
}

// TestPushLoop pushes what an ExternalSecret has read: back to its store, which is refused, and to another.
func TestPushLoop(t *testing.T) {
	e := newIdleEnv(t)
	other := e.server.Backend("other")
	e.create(e.store("other", "other"))
	e.start()
	e.backend.Put("db", []byte("one"))
	e.create(e.externalSecret("db"))
	e.wantReady("db", v1alpha1.ReasonSecretSynced)
	from := func(store string) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) {
			ps.Spec.StoreRefs[0].Name, ps.Spec.Selector.Secret.Name = store, "db"
			ps.Spec.Data = []v1alpha1.PushData{pushData("value", "copy", "")}
		}
	}
	e.create(e.pushSecret("back", from("store")))
	e.create(e.pushSecret("on", from("other")))
	if m := e.wantPushed("back", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "round in circles") {
		t.Errorf("pushing back says %q", m)
	}
	e.wantPushed("on", v1alpha1.ReasonSecretSynced)
	e.wantRemote(other, "copy", "one")
	if n := e.backend.Writes(); n > 0 {
		t.Errorf("%d writes to the store that the Secret came from", n)
	}
}

// TestPushFailover has one of two stores hang: the other is in step, the status says which is not, and that
// one catches up.
func TestPushFailover(t *testing.T) {
	e := newIdleEnv(t)
	second := e.server.Backend("second")
	e.create(e.store("second", "second"))
	e.start()
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "FakeStore", Name: "second"})
	}))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	mend := second.Inject(fake.Fault{Hang: true})
	e.source("source", map[string]string{"password": "two"})
	e.wantRemote(e.backend, "db", "two")
	if m := e.wantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, `FakeStore "second"`) || strings.Contains(m, `"store"`) {
		t.Errorf("Ready says %q, want it to name the second store alone", m)
	}
	e.source("source", map[string]string{"password": "three"})
	e.wantRemote(e.backend, "db", "three")
	if v := remote(second, "db"); v != "one" {
		t.Errorf("the store that hangs holds %q", v)
	}
	mend()
	e.wantRemote(second, "db", "three")
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushSelected pushes all Secrets that carry a label, to all stores that carry another.
func TestPushSelected(t *testing.T) {
	e := newIdleEnv(t)
	second := e.server.Backend("second")
	labelled := func(s *fakev1.FakeStore) { s.Labels = map[string]string{"tier": "true"} }
	e.create(e.store("second", "second", labelled))
	e.start()
	e.source("one", map[string]string{"password": "1"}, "push")
	e.source("none", map[string]string{"password": "0"})
	e.create(e.pushSecret("all", pushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "true"}}}}
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"push": "true"}}}
		ps.Spec.Data = nil
		ps.Spec.DataTo = []v1alpha1.PushDataTo{{RemoteKey: "${namespace}/${name}"}}
	}))
	e.wantRemote(second, e.ns+"/one", `{"password":"1"}`)
	e.source("two", map[string]string{"password": "2", "tls.crt": "c"}, "push")
	e.wantRemote(second, e.ns+"/two", `{"password":"2","tls.crt":"c"}`)
	update(e, e.store("store", "main"), labelled)
	e.wantRemote(e.backend, e.ns+"/one", `{"password":"1"}`)
	e.wantPushed("all", v1alpha1.ReasonSecretSynced)

	// A Secret that is gone deletes nothing, whatever the policy.
	if err := api.Delete(e.ctx, &corev1.Secret{ObjectMeta: e.meta("one")}); err != nil {
		t.Fatal(err)
	}
	e.source("two", map[string]string{"password": "3"}, "push")
	e.wantRemote(second, e.ns+"/two", `{"password":"3","tls.crt":"c"}`)
	if v := remote(second, e.ns+"/one"); v != `{"password":"1"}` {
		t.Errorf("what was pushed of a Secret that is gone is now %q", v)
	}
	if v := remote(second, e.ns+"/none"); v != "" {
		t.Errorf("a Secret without the label was pushed")
	}
}

// TestPushTemplate shapes what is pushed.
func TestPushTemplate(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"user": "bob", "password": "one"})
	e.create(e.pushSecret("url", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"url": "db://{{ .user }}:{{ .password }}@host"}}
		ps.Spec.Data = []v1alpha1.PushData{pushData("url", "url", "")}
		ps.Spec.Data[0].Metadata = jsonOf(t, map[string]any{"tags": map[string]string{"team": "shop"}})
	}))
	e.wantRemote(e.backend, "url", "db://bob:one@host")
	e.wantPushed("url", v1alpha1.ReasonSecretSynced)
	if diff := cmp.Diff(map[string]string{"team": "shop"}, e.backend.TagsOf("url")); diff != "" {
		t.Errorf("tags: -want, +got:\n%s", diff)
	}
}

// TestPushHeldNamespace deletes a namespace whose object has to remove something from a store that is gone.
func TestPushHeldNamespace(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", pushDeletes))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	if err := api.Delete(e.ctx, e.store("store", "main")); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: "db"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
	if v := remote(e.backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
}

// TestPushHeldByStore deletes an object whose store refuses: it is held, says so, and None lets it go.
func TestPushHeldByStore(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", pushDeletes))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	e.backend.Inject(fake.Fault{Call: fake.CallDelete, Err: provider.NewError(provider.Denied, "no deletion")})
	ps := e.getPush("db")
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		c := meta.FindStatusCondition(e.getPush("db").Status.Conditions, v1alpha1.ConditionReady)
		if !strings.Contains(c.Message, "spec.deletionPolicy: None") || e.backend.Count(fake.CallDelete) == 0 {
			return "Ready says " + c.Message
		}
		return ""
	})
	update(e, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = "" })
	e.eventually(func() string {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(ps), ps); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
}

// TestPushRandomTemplate shapes what is pushed by a template that yields another value each time: one is
// pushed, until the Secret or the spec changes.
func TestPushRandomTemplate(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"user": "bob"})
	e.create(e.pushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"password": `{{ .user }}-{{ randAlphaNum 12 }}`}}
		ps.Spec.Data = []v1alpha1.PushData{pushData("password", "whole", ""), pushData("password", "object", "p")}
	}))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	for round := range 3 {
		update(e, e.getPush("db"), func(ps *v1alpha1.PushSecret) {
			ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(round)}
		})
		e.eventually(func() string {
			return cmp.Diff(fmt.Sprint(round), e.getPush("db").Status.Stores[0].ObservedRefreshRequest)
		})
	}
	for _, key := range []string{"whole", "object"} {
		if v := e.backend.Versions(key); len(v) != 1 {
			t.Errorf("%s has versions %v, and nothing changed", key, v)
		}
	}
	e.source("source", map[string]string{"user": "eve"})
	e.eventually(func() string {
		if v := remote(e.backend, "whole"); !strings.HasPrefix(v, "eve-") {
			return "the store holds " + v
		}
		return ""
	})
}

// TestPushOneKeyFails has one of several remote secrets fail for good: the others are written, and the
// condition names the one.
func TestPushOneKeyFails(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	defer e.backend.Inject(fake.Fault{Call: fake.CallCreate, Key: "b", Err: provider.NewError(provider.Unavailable, "no such region")})()
	e.create(e.pushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = nil
		for _, key := range []string{"a", "b", "c", "d"} {
			ps.Spec.Data = append(ps.Spec.Data, pushData("password", key, ""))
		}
	}))
	for _, key := range []string{"a", "c", "d"} {
		e.wantRemote(e.backend, key, "one")
	}
	if m := e.wantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `Unavailable: FakeStore "store": "b": `) {
		t.Errorf("Ready says %q", m)
	}
}

// TestPushNewGeneration has a changed spec wait for its store: what is known of the spec before it is no
// longer Ready.
func TestPushNewGeneration(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db"))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	release := e.backend.Inject(fake.Fault{Call: fake.CallObserve, Hang: true})
	ps := update(e, e.getPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0] = pushData("password", "other", "") })
	e.eventually(func() string {
		c := meta.FindStatusCondition(e.getPush("db").Status.Conditions, v1alpha1.ConditionReady)
		if c.ObservedGeneration != ps.Generation {
			return "the new spec was not looked at"
		}
		if c.Status == metav1.ConditionTrue {
			t.Fatalf("Ready is True for a spec that was not pushed: %s", c.Message)
		}
		return ""
	})
	release()
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushStoreMoves changes where a store is: what is in step is pushed there.
func TestPushStoreMoves(t *testing.T) {
	e := newEnv(t)
	elsewhere := e.server.Backend("elsewhere")
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db"))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	update(e, e.store("store", "main"), func(s *fakev1.FakeStore) { s.Spec.Backend = "elsewhere" })
	e.wantRemote(elsewhere, "db", "one")
}

// TestPushSuspendedGoes deletes an object that is suspended: nothing is touched, and it goes.
func TestPushSuspendedGoes(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", pushDeletes))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	ps := update(e, e.getPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
	e.wantPushed("db", v1alpha1.ReasonSuspended)
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.wantPushGone("db")
	if v := remote(e.backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left alone", v)
	}
}

// TestPushSourceLosesKeys takes a key out of a Secret of which all keys are pushed. What was pushed of it stays,
// also when the spec changes later, and goes with the object.
func TestPushSourceLosesKeys(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"a": "1", "b": "2"})
	e.create(e.pushSecret("db", pushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data, ps.Spec.DataTo = nil, []v1alpha1.PushDataTo{{}}
	}))
	e.wantRemote(e.backend, "b", "2")
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	e.source("source", map[string]string{"a": "3"})
	e.wantRemote(e.backend, "a", "3")
	ps := update(e, e.getPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })
	e.eventually(func() string {
		if s := e.getPush("db").Status.Stores[0]; s.ObservedGeneration != ps.Generation {
			return "the spec was not looked at"
		}
		return ""
	})
	if v := remote(e.backend, "b"); v != "2" {
		t.Errorf("what was pushed of a key that the Secret lost is now %q", v)
	}
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.wantPushGone("db")
	e.wantRemote(e.backend, "b", "")
}

// TestPushDeletedMeanwhile deletes an object while the secret is being created for it: that goes, too.
func TestPushDeletedMeanwhile(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	release := e.backend.Inject(fake.Fault{Call: fake.CallCreate, Hang: true})
	ps := e.pushSecret("db", pushDeletes)
	e.create(ps)
	if err := e.backend.Wait(e.ctx, 1, fake.CallCreate); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		if c := meta.FindStatusCondition(e.getPush("db").Status.Conditions, v1alpha1.ConditionReady); c == nil || !strings.Contains(c.Message, "being deleted") {
			return fmt.Sprintf("its end was not looked at: %+v", c)
		}
		return ""
	})
	release()
	e.wantPushGone("db")
	if v := remote(e.backend, "db"); v != "" {
		t.Errorf("the remote secret is %q, and nobody knows of it any more", v)
	}
}

// TestPushRestart has an operator start over objects that are in step: it reads no Secret's values and
// calls no store but to validate it.
func TestPushRestart(t *testing.T) {
	e := newEnv(t)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db"))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	e.eventually(func() string {
		if e.getPush("db").Status.Stores[0].NextRefreshTime == nil {
			return "the next comparison is not planned"
		}
		return ""
	})
	e.stop()
	observed, since := e.backend.Count(fake.CallObserve), time.Now()
	e.start()
	e.create(e.pushSecret("later"))
	e.wantPushed("later", v1alpha1.ReasonSecretSynced)
	for _, r := range e.backend.Calls(fake.CallObserve)[observed:] {
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
