package contribution_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestMixed(t *testing.T) {
	e := newModulesEnv(t, claims, helps, generates)
	e.Backend.Put("db", []byte("one"))
	e.other.Put("db", []byte("two"))
	e.Create(e.mixed("db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Template = &v1alpha1.Template{Data: map[string]string{"all": "{{ .value }}-{{ .other }}-{{ .username }}"}}
	}))
	e.wantSynced("db")
	s := e.Secret("db")
	user := strings.TrimPrefix(string(s.Data["all"]), "one-two-")
	if user == "" || user == string(s.Data["all"]) {
		t.Fatalf("the Secret is %q", s.Data)
	}
	for _, tc := range []struct {
		reason string
		change func()
		want   string
	}{
		{"A change at the claiming module's store is synced.", func() { e.Backend.Put("db", []byte("uno")) }, "uno-two-"},
		{"A change at the other module's store is synced.", func() { e.other.Put("db", []byte("due")) }, "uno-due-"},
		{"Changes at both stores are synced.", func() { e.Backend.Put("db", []byte("1")); e.other.Put("db", []byte("2")) }, "1-2-"},
	} {
		tc.change()
		e.ask("db", tc.reason)
		e.wantSynced("db")
		if got := string(e.Secret("db").Data["all"]); !strings.HasPrefix(got, tc.want) || got == tc.want || strings.HasSuffix(got, user) {
			t.Fatalf("%s\nThe Secret holds %q, want %q and other generated values than before", tc.reason, got, tc.want)
		}
	}
	if n := len(e.parts()); n != 2 {
		t.Errorf("there are %d parts, want one with read values and one with generated values", n)
	}
	if l := target.StoreLabel(fakev1.Group, "OtherFakeStore", e.NS, "other"); s.Labels[l] != "true" {
		t.Errorf("the Secret has the labels %v, want the label of the store that the other module has read, which prevents pushing back to it", s.Labels)
	}
	for _, p := range e.parts() {
		if !partOf(p, e.Get("db").UID) || p.Labels[claims+"/managed"] != "true" {
			t.Errorf("part %s has the owners %v and the labels %v", p.Name, p.OwnerReferences, p.Labels)
		}
	}
	e.remove("db")
	e.Eventually(func() string {
		if n := len(e.parts()); n > 0 || e.Secret("db") != nil {
			return fmt.Sprintf("the object is deleted, and %d parts or its Secret still exist", n)
		}
		return ""
	})
}

// TestTwoModules shares a claiming and a contributing module.
func TestTwoModules(t *testing.T) {
	e := newModulesEnv(t, claims, helps)
	claimMoves(t, e)
	contributionFails(t, e)
	contributionNew(t, e)
	contributionSuspended(t, e)
	contributionPolicies(t, e)
	partEdited(t, e)
	partReplaced(t, e)
}

// both returns an object that takes one key from each of the two modules with stores.
func (e *modulesEnv) both(name string, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	return e.mixed(name, append([]func(*v1alpha1.ExternalSecret){func(es *v1alpha1.ExternalSecret) { es.Spec.DataFrom = nil }}, change...)...)
}

// put sets a value for an object in both backends.
func (e *modulesEnv) put(name, value string) {
	e.Backend.Put(name, []byte(value))
	e.other.Put(name, []byte(value))
}

func (e *modulesEnv) wantBoth(name, value, other string) {
	e.Helper()
	e.Eventually(func() string {
		s := e.Secret(name)
		if s == nil {
			return "there is no Secret " + name
		}
		if v, o := string(s.Data["value"]), string(s.Data["other"]); v != value || o != other {
			return fmt.Sprintf("Secret %s holds %q and %q, want %q and %q", name, v, o, value, other)
		}
		return ""
	})
}

// contributionFails breaks the source of the contributing module. The condition is as if the claiming module had
// failed. The Secret stays, and the object recovers without help.
func contributionFails(t *testing.T, e *modulesEnv) {
	t.Helper()
	cases := map[string]struct {
		reason, ready, wantMessage string
		// fails breaks the source of the object, and returns a function that repairs it.
		fails func(name string) (repair func())
	}{
		"denied": {"The message has the class, the key and the store.", v1alpha1.ReasonSecretSyncedError, `Denied: "denied" in OtherFakeStore "other": no`, func(name string) func() {
			return e.other.Inject(fake.Fault{Key: name, Err: provider.NewError(provider.Denied, "no")})
		}},
		"throttled": {"The message has the class, the key and the store, for another class.", v1alpha1.ReasonSecretSyncedError, `Throttled: "throttled" in OtherFakeStore "other": slow down`, func(name string) func() {
			return e.other.Inject(fake.Fault{Key: name, Err: provider.NewError(provider.Throttled, "slow down")})
		}},
		"dropped": {"An entry that the answer lacks does not count as deleted.", v1alpha1.ReasonSecretSyncedError, `Unavailable: "dropped" in OtherFakeStore "other"`, func(name string) func() {
			return e.other.Inject(fake.Fault{Key: name, Drop: true})
		}},
		"missing": {"A missing secret is an error under Retain.", v1alpha1.ReasonSecretSyncedError, `NotFound: "missing" in OtherFakeStore "other"`, func(name string) func() {
			e.other.Delete(name)
			return func() { e.other.Put(name, []byte("one")) }
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		e.put(name, "one")
		e.Create(e.both(name))
		e.wantSynced(name)
		before := e.Secret(name)
		repair := tc.fails(name)
		e.ask(name, "1")
		c := e.WantReady(name, tc.ready)
		if !strings.HasPrefix(c.Message, tc.wantMessage) {
			t.Errorf("%s: %s\nthe message is %q, want %q", name, tc.reason, c.Message, tc.wantMessage)
		}
		if is := e.Secret(name); is.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s: %s\nthe Secret was written", name, tc.reason)
		}
		repair()
		e.wantSynced(name)
	}
}

// contributionNew is contributionFails for objects that were never in sync.
func contributionNew(t *testing.T, e *modulesEnv) {
	t.Helper()
	missing := &fakev1.OtherFakeStore{ObjectMeta: e.Meta("late"), Spec: fakev1.FakeStoreSpec{Backend: "other"}}
	of := func(kind, name string) func(*v1alpha1.ExternalSecret) {
		return func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data[1].SourceRef.StoreRef = v1alpha1.StoreRef{Kind: kind, Name: name}
		}
	}
	cases := map[string]struct {
		reason, ready, wantMessage string
		change                     func(*v1alpha1.ExternalSecret)
		repair                     func()
	}{
		"nostore": {"A store that does not exist is named.", v1alpha1.ReasonStoreNotFound, `OtherFakeStore "`, of("OtherFakeStore", "late"), func() { e.Create(missing) }},
		"noentry": {"A secret that does not exist is named.", v1alpha1.ReasonSecretSyncedError, `NotFound: "absent" in OtherFakeStore "other"`, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].RemoteRef.Key = "absent" }, func() { e.other.Put("absent", []byte("one")) }},
		"misused": {"A generator that is named as a store is reported, because no running module serves it.", v1alpha1.ReasonProviderNotRunning, "no running module serves FakeGenerator", of("FakeGenerator", "gen"), func() {
			testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta("misused")}, of("OtherFakeStore", "other"))
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		e.put(name, "one")
		e.Create(e.both(name, tc.change))
		c := e.WantReady(name, tc.ready)
		if !strings.HasPrefix(c.Message, tc.wantMessage) {
			t.Errorf("%s: %s\nthe message is %q, want %q", name, tc.reason, c.Message, tc.wantMessage)
		}
		if e.Secret(name) != nil {
			t.Errorf("%s: %s\nthere is a Secret, although half of its values are missing", name, tc.reason)
		}
		tc.repair()
		e.wantSynced(name)
		e.wantBoth(name, "one", "one")
	}
}

// contributionSuspended suspends an object before its first read: the other module reads nothing for it.
func contributionSuspended(t *testing.T, e *modulesEnv) {
	t.Helper()
	es := e.both("held")
	es.Spec.Suspend = true
	names := []string{"held", "a", "b", "c"}
	for _, name := range names {
		e.put(name, "one")
	}
	e.Create(es)
	e.WantReady("held", v1alpha1.ReasonSuspended)
	for _, name := range names[1:] { // The other module handles objects that were created later.
		e.ask("held", name)
		e.Create(e.both(name))
		e.wantSynced(name)
	}
	if n := e.other.ReadsOf("held"); n != 0 {
		t.Errorf("the store was read %d times for a suspended object", n)
	}
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false })
	e.wantSynced("held")
	e.wantBoth("held", "one", "one")
}

// contributionPolicies has objects of every policy with values of two modules.
func contributionPolicies(t *testing.T, e *modulesEnv) {
	t.Helper()
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.ExternalSecret)
		steps  func(name string)
	}{
		"optional": {"An optional secret may be missing.", func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].Optional = true }, func(name string) {
			e.other.Delete(name)
			e.ask(name, "1")
			e.wantSynced(name)
			e.wantBoth(name, "one", "")
			e.other.Put(name, []byte("back"))
			e.ask(name, "2")
			e.wantSynced(name)
			e.wantBoth(name, "one", "back")
		}},
		"delete": {"Under Delete the key of a missing secret is removed, and the Secret is deleted with its last key.", func(es *v1alpha1.ExternalSecret) { es.Spec.Target.DeletionPolicy = v1alpha1.DeletionDelete }, func(name string) {
			e.other.Delete(name)
			e.ask(name, "1")
			e.wantSynced(name)
			e.wantBoth(name, "one", "")
			e.Backend.Delete(name)
			e.ask(name, "2")
			e.WantReady(name, v1alpha1.ReasonSecretDeleted)
			e.Eventually(func() string {
				if e.Secret(name) != nil {
					return "there is a Secret"
				}
				return ""
			})
			e.put(name, "again")
			e.ask(name, "3")
			e.wantSynced(name)
			e.wantBoth(name, "again", "again")
		}},
		"interval": {"Each module reads at the interval.", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "1s" }, func(name string) {
			e.other.Put(name, []byte("two"))
			e.wantBoth(name, "one", "two")
			e.Backend.Put(name, []byte("three"))
			e.wantBoth(name, "three", "two")
		}},
		"once": {"An object with CreatedOnce is read again on request.", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }, func(name string) {
			e.put(name, "two")
			e.ask(name, "1")
			e.wantSynced(name)
			e.wantBoth(name, "two", "two")
		}},
		"finished": {"An object with CreatedOnce stays as it is when its spec changes, as with one module.", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }, func(name string) {
			before := e.Secret(name).ResourceVersion
			e.other.Put("unread", []byte("two"))
			testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].RemoteRef.Key = "unread" })
			e.WantReady(name, v1alpha1.ReasonSecretSynced)
			e.end(helps)
			e.begin(helps)
			e.WaitForEvents()
			e.WantReady(name, v1alpha1.ReasonSecretSynced)
			if is := e.Secret(name).ResourceVersion; is != before || e.other.ReadsOf("unread") > 0 {
				t.Errorf("the Secret was written, or the other module has read %d times", e.other.ReadsOf("unread"))
			}
		}},
		"corrected": {"A wrong key can be corrected, also in an object with CreatedOnce.", func(es *v1alpha1.ExternalSecret) {
			es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce
			es.Spec.Data[1].RemoteRef.Key = "wrong"
		}, func(name string) {
			e.WantReady(name, v1alpha1.ReasonSecretSyncedError)
			testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].RemoteRef.Key = name })
			e.wantSynced(name)
			e.wantBoth(name, "one", "one")
		}},
		"suspended": {"A suspended object is left unchanged, and synced once it resumes.", func(*v1alpha1.ExternalSecret) {}, func(name string) {
			suspend := func(is bool) {
				testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = is })
			}
			suspend(true)
			e.WantReady(name, v1alpha1.ReasonSuspended)
			e.put(name, "two")
			e.ask(name, "1")
			e.WaitForEvents()
			e.wantBoth(name, "one", "one")
			suspend(false)
			e.wantSynced(name)
			e.wantBoth(name, "two", "two")
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		e.put(name, "one")
		e.Create(e.both(name, tc.change))
		if name != "corrected" {
			e.wantSynced(name)
		}
		tc.steps(name)
		if t.Failed() {
			t.Fatalf("%s: %s", name, tc.reason)
		}
	}
}

// TestContributorNotRunning stops each of three modules once. The conditions of an object in sync and of a new one name the missing
// module and the fix, and nothing is written. Both recover once the module runs.
func TestContributorNotRunning(t *testing.T) {
	hints := map[string]string{claims: "FakeStore", helps: "OtherFakeStore", generates: "FakeGenerator"}
	modules := slices.Sorted(maps.Keys(hints))
	e := newModulesEnv(t, modules...)
	e.put("db", "one")
	e.Create(e.mixed("db"))
	e.wantSynced("db")
	for i, missing := range modules {
		before := e.Secret("db").ResourceVersion
		e.end(missing)
		created := fmt.Sprint("new-", i)
		e.put(created, "one")
		e.Create(e.mixed(created))
		e.ask("db", missing)
		for _, name := range []string{"db", created} {
			c := e.WantReady(name, v1alpha1.ReasonProviderNotRunning)
			if want := "no running module serves " + hints[missing] + ";"; !strings.HasPrefix(c.Message, want) {
				t.Errorf("the message of %s is %q, want %q", name, c.Message, want)
			}
		}
		if e.Secret(created) != nil {
			t.Error("there is a Secret, although half of its values are missing")
		}
		if is := e.Secret("db").ResourceVersion; is != before {
			t.Error("the Secret was written, although a module is missing")
		}
		e.begin(missing)
		for _, name := range []string{"db", created} {
			e.wantSynced(name)
			e.wantBoth(name, "one", "one")
		}
	}
}

// withPart creates an object with values of both modules, and returns the name of its part.
func (e *modulesEnv) withPart(name string) types.NamespacedName {
	e.Helper()
	e.put(name, "one")
	e.Create(e.both(name))
	e.wantSynced(name)
	return types.NamespacedName{Namespace: e.NS, Name: reader(helps).PartName("ExternalSecret", name)}
}

// partEdited has users edit and delete the part of read values.
func partEdited(t *testing.T, e *modulesEnv) {
	t.Helper()
	key := e.withPart("edited")
	cases := []struct {
		reason string
		edit   func(*corev1.Secret)
	}{
		{"Changed values are restored.", func(s *corev1.Secret) {
			for k := range s.Data {
				if k != "record" {
					s.Data[k] = []byte(`{"value":{"data":"Zm9yZ2Vk"}}`)
				}
			}
		}},
		{"Removed labels are restored.", func(s *corev1.Secret) { s.Labels = nil }},
		{"Removed annotations are restored.", func(s *corev1.Secret) { s.Annotations = nil }},
		{"A removed owner is restored.", func(s *corev1.Secret) { s.OwnerReferences = nil }},
		{"Removed data is restored.", func(s *corev1.Secret) { s.Data = nil }},
	}
	for i, tc := range cases {
		before := &corev1.Secret{}
		if err := e.API.Get(e.Ctx, key, before); err != nil {
			t.Fatal(err)
		}
		testenv.Update(e.Client, before.DeepCopy(), tc.edit)
		e.Eventually(func() string {
			s := &corev1.Secret{}
			if err := e.API.Get(e.Ctx, key, s); err != nil {
				return err.Error()
			}
			if len(s.Data) != 2 || len(s.Labels) != 3 || len(s.OwnerReferences) != 1 || s.Annotations[v1alpha1.PartAnnotation] == "" || strings.Contains(fmt.Sprintf("%s", s.Data), "Zm9yZ2Vk") {
				return fmt.Sprintf("%s\nthe part is %v", tc.reason, s.ObjectMeta)
			}
			return ""
		})
		e.ask("edited", fmt.Sprint(i))
		e.wantSynced("edited")
		e.wantBoth("edited", "one", "one")
	}
	e.other.Put("edited", []byte("two")) // It is read again to restore the part.
	if err := e.API.Delete(e.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.NS, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	e.wantBoth("edited", "one", "two")
	e.wantSynced("edited")
}

// TestPausedContributor pauses the operator of a module between an answer of the provider and the write of the part.
// Meanwhile another operator of the same module serves the object, with a later answer.
func TestPausedContributor(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		t.Run(method, func(t *testing.T) {
			e := newModulesEnv(t, claims)
			paused := testenv.NewPause(t)
			e.Config = rest.CopyConfig(e.Config) // The other module has its own configuration.
			e.Config.Wrap(paused.Wrap)
			e.begin(helps)
			for _, b := range []*fake.Backend{e.Backend, e.other} {
				b.Put("db", []byte("first"))
			}
			e.Create(e.mixed("db", func(es *v1alpha1.ExternalSecret) {
				es.Spec.RefreshPolicy, es.Spec.DataFrom = v1alpha1.RefreshOnChange, nil
			}))
			e.wantSynced("db")
			part := e.parts()[0]

			e.other.Put("db", []byte("old"))
			paused.Before(func(r *http.Request) bool {
				return r.Method == method && strings.HasSuffix(r.URL.Path, "/secrets/"+part.Name)
			})
			e.ask("db", "again")
			paused.Wait()
			e.other.Put("db", []byte("new"))
			stop := e.Module("second", helps, e.Server.OtherKinds(), operator.WithPresence(swift),
				operator.WithFlags(func(f *operator.Flags) { f.PresenceNamespace = e.NS }))
			e.wantSynced("db")
			e.WantSecret("db", "other", "new")
			stop()
			want := handoff.RecordOf(&e.parts()[0]).Reads.Version
			paused.End()

			// The operator serves a later request after it has finished the paused pass.
			e.ask("db", "later")
			e.wantSynced("db")
			if diff := cmp.Diff(want, handoff.RecordOf(&e.parts()[0]).Reads.Version); diff != "" {
				t.Errorf("The operator has written an answer that is older than that in the part. -want, +got:\n%s", diff)
			}
		})
	}
}

// partReplaced replaces the recorded part by a forged one with the same metadata and record, while its module is
// stopped.
func partReplaced(t *testing.T, e *modulesEnv) {
	t.Helper()
	key := e.withPart("replaced")
	e.end(helps)
	forged := &corev1.Secret{}
	if err := e.API.Get(e.Ctx, key, forged); err != nil {
		t.Fatal(err)
	}
	if err := e.API.Delete(e.Ctx, forged.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for k := range forged.Data {
		if k != "record" {
			forged.Data[k] = []byte(`{"value":{"data":"Zm9yZ2Vk"}}`)
		}
	}
	rec := handoff.RecordOf(forged)
	rec.Reads.Hash, rec.Reads.Version = target.HashInputs(rec.UID, handoff.Content(forged.Data)), "another"
	if err := rec.Put(forged); err != nil {
		t.Fatal(err)
	}
	forged.ObjectMeta = metav1.ObjectMeta{Namespace: e.NS, Name: key.Name, Labels: forged.Labels, Annotations: forged.Annotations, OwnerReferences: forged.OwnerReferences}
	e.Create(forged)
	e.begin(helps)
	e.Eventually(func() string {
		is := &corev1.Secret{}
		if err := e.API.Get(e.Ctx, key, is); err != nil {
			return err.Error()
		}
		if s := e.Get("replaced").Status.Parts; strings.Contains(fmt.Sprintf("%s", is.Data), "Zm9yZ2Vk") || len(s) != 1 || s[0].UID != is.UID {
			return fmt.Sprintf("the part is the forged one, and the status records %v", s)
		}
		return ""
	})
	e.ask("replaced", "after")
	e.wantSynced("replaced")
	e.wantBoth("replaced", "one", "one")
}

// TestPartForged creates Secrets that look like parts: none is read.
func TestPartForged(t *testing.T) {
	e := newModulesEnv(t, claims)
	e.Backend.Put("db", []byte("one"))
	es := e.both("db")
	e.Create(es)
	ref := v1alpha1.StoreRef{Kind: "OtherFakeStore", Name: "other"}
	read := provider.Read{Ref: provider.Ref{Key: "db"}}
	data, entries, err := handoff.Pack([]render.Source{{Store: ref, Read: read}}, func(render.Source) provider.Answer {
		return provider.Answer{Value: provider.Value{Data: []byte("forged")}}
	})
	if err != nil {
		t.Fatal(err)
	}
	forge := func(ns, name string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{
			v1alpha1.PartLabel: "true", claims + "/managed": "true", helps + "/managed": "true",
		}}, Type: handoff.Type, Data: maps.Clone(data)}
		rec := handoff.Record{Kind: "ExternalSecret", Name: "db", UID: e.Get("db").UID, Reads: &handoff.Reads{Version: "v", Entries: entries, At: time.Now()}}
		rec.Reads.Hash = target.HashInputs(rec.UID, handoff.Content(s.Data)) // Only the uid in the status tells it from the real part.
		if err := rec.Put(s); err != nil {
			t.Fatal(err)
		}
		e.Create(s)
		return s
	}
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS + "-x"}}
	e.Create(elsewhere)
	forge(e.NS, "forged")
	inPlace := forge(e.NS, reader(helps).PartName("ExternalSecret", "db"))
	far := forge(elsewhere.Name, "far")
	e.WantReady("db", v1alpha1.ReasonProviderNotRunning)
	if e.Secret("db") != nil {
		t.Error("there is a Secret, created from a part that the status does not record")
	}
	// The status records a Secret of another namespace, or one with another uid.
	record := func(name string, uid types.UID) {
		body := fmt.Sprintf(`{"status":{"parts":[{"module":%q,"name":%q,"uid":%q}]}}`, reader(helps).Key(), name, uid)
		if err := e.API.Status().Patch(e.Ctx, es, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []types.UID{far.UID, "another"} {
		record(far.Name, uid)
		record(inPlace.Name, uid)
		e.WaitForEvents()
		if e.Secret("db") != nil {
			t.Fatal("there is a Secret, created from a part of another namespace, or with another uid")
		}
	}
	e.other.Put("db", []byte("two"))
	e.begin(helps)
	e.wantSynced("db")
	e.wantBoth("db", "one", "two")
}

// TestUnusedPart removes the other module's sources from the spec: its part is deleted, whether that module runs or
// not.
func TestUnusedPart(t *testing.T) {
	e := newModulesEnv(t, claims, helps, generates)
	for i, runs := range []bool{true, false} {
		name := fmt.Sprint("db-", i)
		e.put(name, "one")
		e.Create(e.mixed(name))
		e.wantSynced(name)
		if !runs {
			e.end(helps)
			e.end(generates)
		}
		testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data, es.Spec.DataFrom = es.Spec.Data[:1], nil
		})
		e.wantSynced(name)
		e.wantBoth(name, "one", "")
		e.Eventually(func() string {
			if es, n := e.Get(name), len(e.parts()); n > 0 || len(es.Status.Parts) > 0 {
				return fmt.Sprintf("there are %d parts, and the status records %v", n, es.Status.Parts)
			}
			return ""
		})
	}
}

// claimMoves moves objects from one claiming module to the other and back, with values of both.
func claimMoves(t *testing.T, e *modulesEnv) {
	t.Helper()
	for i := range 5 {
		name := fmt.Sprint("es-", i)
		e.Backend.Put(name, []byte("one"))
		e.other.Put(name, []byte("two"))
		e.Create(e.both(name))
	}
	refs := []v1alpha1.StoreRef{{Kind: "FakeStore", Name: "store"}, {Kind: "OtherFakeStore", Name: "other"}}
	values := []string{"one", "two"}
	for round := range 4 {
		first := round % 2
		for i := range 5 {
			name := fmt.Sprint("es-", i)
			testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) {
				es.Spec.StoreRef = &refs[first]
				es.Spec.Data[1].SourceRef.StoreRef = refs[1-first]
			})
		}
		for i := range 5 {
			name := fmt.Sprint("es-", i)
			e.wantSynced(name)
			e.wantBoth(name, values[first], values[1-first])
			e.Eventually(func() string {
				es := e.Get(name)
				if len(es.Status.Parts) != 1 || es.Status.Parts[0].Group != []string{helps, claims}[first] {
					return fmt.Sprintf("round %d: the status records %v", round, es.Status.Parts)
				}
				return ""
			})
		}
	}
	if n := len(e.parts()); n != 5 {
		t.Errorf("there are %d parts, want one for each of 5 objects", n)
	}
}

// TestMixedRestart restarts the modules of objects that are in sync: nothing is read.
func TestMixedRestart(t *testing.T) {
	e := newModulesEnv(t, claims, helps, generates)
	for _, name := range []string{"a", "b", "c"} {
		e.put(name, "one")
		e.Create(e.mixed(name))
	}
	versions := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		e.wantSynced(name)
	}
	e.WaitForEvents()
	for _, name := range []string{"a", "b", "c"} {
		versions[name] = e.Secret(name).ResourceVersion
	}
	for _, p := range e.parts() {
		versions[p.Name] = p.ResourceVersion
	}
	for _, m := range []string{claims, helps, generates} {
		e.end(m)
	}
	for _, b := range []*fake.Backend{e.Backend, e.other, e.made} {
		b.Reset()
	}
	for _, m := range []string{claims, helps, generates} {
		e.begin(m)
	}
	e.put("new", "one")
	e.Create(e.mixed("new"))
	e.wantSynced("new")
	e.WaitForEvents()
	for _, b := range []*fake.Backend{e.Backend, e.other} {
		for _, name := range []string{"a", "b", "c"} {
			if n := b.ReadsOf(name); n != 0 {
				t.Errorf("%q was read %d times after the restart", name, n)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if s := e.Secret(name); s == nil || s.ResourceVersion != versions[name] {
			t.Errorf("Secret %s was written after the restart", name)
		}
	}
}

// TestVersionSkew runs two modules whose versions are too far apart.
func TestVersionSkew(t *testing.T) {
	e := newModulesEnv(t)
	e.put("db", "one")
	e.begin(claims, operator.WithVersion("v0.1.0"))
	e.begin(helps, operator.WithVersion("v0.2.0"))
	e.Create(e.both("db"))
	e.wantSynced("db")
	before := e.Secret("db").ResourceVersion
	e.end(helps)
	e.begin(helps, operator.WithVersion("v0.3.0"))
	c := e.WantReady("db", v1alpha1.ReasonVersionSkew)
	for _, want := range []string{"lead is built with common v0.1.0", "other with common v0.3.0"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the message is %q, want it to contain %q", c.Message, want)
		}
	}
	e.put("db", "two")
	e.ask("db", "1")
	e.WaitForEvents()
	if e.Secret("db").ResourceVersion != before {
		t.Error("the Secret was written, although the versions are too far apart")
	}
	e.end(claims)
	e.begin(claims, operator.WithVersion("v0.2.0"))
	e.wantSynced("db")
	e.wantBoth("db", "two", "two")
}
