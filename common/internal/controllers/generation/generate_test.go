package generation_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var (
	notRenewable   = provider.ErrNotRenewable
	errUnavailable = provider.NewError(provider.Unavailable, "no answer")
	errDenied      = provider.NewError(provider.Denied, "not allowed")
)

func (g *genEnv) readiness(name string) metav1.Condition {
	g.Helper()
	if c := meta.FindStatusCondition(g.Get(name).Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// TestGenerated makes values for an object. It checks the Secret and the owners of the part, and that neither the status
// nor the metadata of the part shows a value.
func TestGenerated(t *testing.T) {
	g := newServedEnv(t)
	user := g.made("db")
	if diff := cmp.Diff(map[string][]byte{"username": []byte(user), "password": []byte("secret of " + user)}, g.Secret("db").Data); diff != "" {
		t.Errorf("the Secret: -want, +got:\n%s", diff)
	}
	g.wantDelivered("db")
	g.Eventually(func() string {
		parts, es := g.parts(), g.Get("db")
		if len(parts) != 1 {
			return fmt.Sprintf("%d parts", len(parts))
		}
		var owners []types.UID
		for _, o := range parts[0].OwnerReferences {
			owners = append(owners, o.UID)
		}
		return cmp.Diff([]types.UID{es.UID, g.Secret("db").UID}, owners)
	})
	for what, o := range map[string]any{"the status": g.Get("db").Status, "the metadata of a part": g.parts()[0].ObjectMeta} {
		if strings.Contains(fmt.Sprintf("%+v", o), user) {
			t.Errorf("%s shows a value: %+v", what, o)
		}
	}
	if n := g.Backend.Count(fake.CallGenerate); n != 1 {
		t.Errorf("%d values were made for one object", n)
	}
}

// TestGeneratedStays changes an object and its operator in ways that must not change the generated values.
func TestGeneratedStays(t *testing.T) {
	g := newGenEnv(t)
	orphan := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateOrphan }
	never := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever }
	templated := func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Template = &v1alpha1.Template{Data: map[string]string{"username": "{{ .username }}", "random": "{{ randAlphaNum 8 }}"}}
	}
	again := func(name string, change ...spec) {
		g.Delete(g.Get(name))
		g.Eventually(func() string {
			if len(g.partOf(name).OwnerReferences) > 1 {
				return "the garbage collector has not seen yet that the object was deleted"
			}
			return ""
		})
		g.Create(g.generated(name, append(change, of(name))...))
	}
	cases := map[string]struct {
		reason string
		specs  []spec
		do     func(name string)
	}{
		"restart": {"A restarted operator finds the part.", nil, func(string) { g.restart() }},
		"wiped-status": {"An empty status loses no values.", nil, func(name string) {
			g.patchStatus(name, `{"status":null}`)
		}},
		"wiped-status-and-restart": {"An empty status and an empty memory lose no values.", nil, func(name string) {
			g.Stop()
			g.patchStatus(name, `{"status":null}`)
			g.Start(testenv.Ahead(&g.ahead))
		}},
		"other-metadata": {"A changed label causes a refresh, not a rotation.", nil, func(name string) {
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
		}},
		"other-spec": {"A changed spec of the object causes no rotation.", nil, func(name string) {
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "2h" })
		}},
		"target-deleted": {"A deleted Secret comes back with the same values.", nil, func(name string) {
			g.Delete(g.Secret(name))
		}},
		"other-target": {"A Secret with another name gets the same values.", nil, func(name string) {
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" })
			g.wantUser("other", "it is unchanged", func(u string) bool { return u != "" })
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "" })
		}},
		"shared-fields": {"The generator's fields for time and scope do not affect the values.", nil, func(name string) {
			testenv.Update(g.Client, g.generator(name), func(o *fakev1.FakeGenerator) {
				o.Spec.ValidationInterval, o.Spec.RotationInterval, o.Spec.GatingPolicy, o.Spec.KeepPrevious = "1h", "9999h", v1alpha1.GatingDisabled, true
			})
		}},
		"generator-again":   {"A generator created again with the same spec keeps the values.", nil, func(name string) { g.Delete(g.generator(name)); g.Create(g.generator(name)) }},
		"again-orphan":      {"The Secret of an Orphan keeps the part, and another object with the same name takes it over.", []spec{orphan}, func(name string) { again(name, orphan) }},
		"again-never":       {"A Secret with cleanupPolicy Never keeps the part.", []spec{never}, func(name string) { again(name, never) }},
		"again-and-restart": {"A part is found again with an empty memory.", []spec{never}, func(name string) { g.Stop(); again(name, never); g.Start(testenv.Ahead(&g.ahead)) }},
		"template":          {"The same holds for templates, including random functions.", []spec{templated}, func(name string) { g.restart(); g.patchStatus(name, `{"status":null}`) }},
		"template-again":    {"It holds for another object with the same name, too.", []spec{orphan, templatedPlain}, func(name string) { again(name, orphan, templatedPlain) }},
		"suspended": {"Nothing is rotated for a suspended object.", []spec{func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false }}, func(name string) {
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) {
				es.Spec.Suspend = true
				es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
			})
			g.WantReady(name, v1alpha1.ReasonSuspended)
			testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend, es.Annotations = false, nil })
		}},
		"immutable": {"Nothing is rotated for an immutable Secret.", []spec{func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true }}, func(name string) {
			testenv.Update(g.Client, g.Get(name), testenv.Request("1"))
			testenv.Update(g.Client, g.generator(name), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
		}},
		"deleted-immutable": {"An immutable Secret that is deleted after a request comes back with the same values.", []spec{func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true }}, func(name string) {
			testenv.Update(g.Client, g.Get(name), testenv.Request("1"))
			g.Delete(g.Secret(name))
		}},
		"created-once": {"Under refreshPolicy CreatedOnce, only a request rotates.", []spec{func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }}, func(name string) {
			testenv.Update(g.Client, g.generator(name), func(o *fakev1.FakeGenerator) { o.Spec.Prefix, o.Spec.RotationInterval = "v", "1h" })
			g.pass(3 * time.Hour)
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		g.Create(g.generator(name))
		made := g.Backend.Count(fake.CallGenerate)
		g.made(name, append(tc.specs, of(name))...)
		g.wantDelivered(name)
		g.Eventually(func() string { // A part stays after its object only once its Secret owns it, too.
			return cmp.Diff(2, len(g.partOf(name).OwnerReferences))
		})
		before := g.Secret(name).Data
		tc.do(name)
		// The operator has handled the change when a later change of the object is in sync.
		mark := testenv.RandomName()
		testenv.Update(g.Client, g.Get(name), func(es *v1alpha1.ExternalSecret) {
			if es.Labels == nil {
				es.Labels = map[string]string{}
			}
			es.Labels["mark"] = mark
		})
		g.wantDelivered(name)
		g.Eventually(func() string {
			if s := g.Secret(name); s == nil || !bytes.Equal(s.Data["username"], before["username"]) {
				return fmt.Sprintf("%s: %s\nthe Secret has changed or was deleted: -want, +got:\n%s", name, tc.reason, cmp.Diff(before, g.dataOf(name)))
			}
			return ""
		})
		if diff := cmp.Diff(before, g.dataOf(name)); diff != "" {
			t.Errorf("%s: %s\nthe Secret: -want, +got:\n%s", name, tc.reason, diff)
		}
		if n := g.Backend.Count(fake.CallGenerate) - made; n != 1 {
			t.Errorf("%s: %s\n%d values were made", name, tc.reason, n)
		}
		g.Delete(g.Get(name))
	}
}

// of makes an object take its values from a generator.
func of(name string) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.DataFrom[0].SourceRef.GeneratorRef.Name = name }
}

func templatedPlain(es *v1alpha1.ExternalSecret) {
	es.Spec.Target.Template = &v1alpha1.Template{Data: map[string]string{"username": "{{ .username }}", "url": "db://{{ .username }}:{{ .password }}@db"}}
}

func (g *genEnv) dataOf(name string) map[string][]byte {
	if s := g.Secret(name); s != nil {
		return s.Data
	}
	return nil
}

func (g *genEnv) patchStatus(name, patch string) {
	g.Helper()
	if err := g.API.Status().Patch(g.Ctx, g.Get(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		g.Fatal(err)
	}
}

// TestRotation replaces values, each time once.
func TestRotation(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*fakev1.FakeGenerator)
		rotate func(g *genEnv, round int)
	}{
		"Expiring": {"Values that cannot be renewed are replaced before they expire.", func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RevocationDelay = "3h", "0s" }, func(g *genEnv, _ int) {
			g.finite()
			g.pass(2*time.Hour + time.Minute)
		}},
		"WhileDown": {"A rotation that was due while no operator ran happens once.", func(o *fakev1.FakeGenerator) { o.Spec.RotationInterval = "24h" }, func(g *genEnv, round int) {
			g.Stop()
			g.ahead.Add(int64(100 * time.Hour))
			testenv.Update(g.Client, g.Get("db"), testenv.Request(fmt.Sprint(round)))
			testenv.Update(g.Client, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = fmt.Sprintf("r%d-", round) })
			g.Start(testenv.Ahead(&g.ahead))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var change []func(*fakev1.FakeGenerator)
			if tc.change != nil {
				change = append(change, tc.change)
			}
			g := newGenEnv(t, change...)
			user := g.made("db")
			for round := 1; round <= 4; round++ {
				g.wantDelivered("db")
				tc.rotate(g, round)
				user = g.wantUser("db", tc.reason, not(user))
				g.wantDelivered("db")
				if n := g.Backend.Count(fake.CallGenerate); n != round+1 {
					t.Fatalf("%s\nround %d: %d values were made in all, want %d", tc.reason, round, n, round+1)
				}
			}
		})
	}
}

// finite makes credentials not renewable, also for a second request of an operator after a conflict.
func (g *genEnv) finite() {
	g.Backend.Inject(fake.Fault{Call: fake.CallRenew, Err: notRenewable})
}

// TestKeepPrevious keeps the previous values together with the present ones, and removes them when keepPrevious is
// unset.
func TestKeepPrevious(t *testing.T) {
	g := newServedEnv(t, func(o *fakev1.FakeGenerator) { leased(o); o.Spec.KeepPrevious = true })
	first := g.made("db")
	want := func(why string, users ...string) {
		t.Helper()
		g.Eventually(func() string {
			got := map[string]string{}
			for k, v := range g.dataOf("db") {
				if !strings.HasPrefix(k, "password") {
					got[k] = string(v)
				}
			}
			all := map[string]string{"username": users[0]}
			if len(users) > 1 {
				all["username-previous"] = users[1]
			}
			if diff := cmp.Diff(all, got); diff != "" {
				return why + ": -want, +got:\n" + diff
			}
			return ""
		})
	}
	want("there is no previous value", first)
	testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
	second := g.wantUser("db", "rotated", not(first))
	want("the first value is kept", second, first)
	g.wantLive(first, second)
	testenv.Update(g.Client, g.Get("db"), testenv.Request("2"))
	third := g.wantUser("db", "rotated again", not(second))
	want("only the last previous value is kept", third, second)
	g.wantLive(second, third)
	testenv.Update(g.Client, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.KeepPrevious = false })
	want("it is no longer kept", third)
	g.wantLive(third)
	if n := g.Backend.Count(fake.CallGenerate); n != 3 {
		t.Errorf("%d values were made, want 3", n)
	}
}

// wantRenewed waits until all credentials with a lifetime of an hour have been renewed.
func (g *genEnv) wantRenewed() {
	g.Helper()
	g.Eventually(func() string {
		for _, p := range g.parts() {
			rec, _ := handoff.Of(p.Annotations)
			for _, e := range rec.Entries {
				if left := e.Expires.Sub(time.Now().Add(time.Duration(g.ahead.Load()))); left < 50*time.Minute {
					return fmt.Sprintf("the credential is valid for another %s, want an hour", left)
				}
			}
		}
		return ""
	})
}

// TestRenewal checks that a credential is renewed, and not replaced, as long as its object exists.
func TestRenewal(t *testing.T) {
	g := newGenEnv(t, leased)
	user := g.made("db")
	for range 5 {
		g.wantDelivered("db")
		g.pass(45 * time.Minute)
		g.wantRenewed()
		g.wantLive(user)
	}
	if got := g.user("db"); got != user {
		t.Errorf("the Secret holds %q, want %q: renewing changes nothing", got, user)
	}
	if n := g.Backend.Count(fake.CallRenew); n < 5 {
		t.Errorf("%d renewals, want 5", n)
	}
	g.wantDelivered("db")
	g.Delete(g.Get("db"))
	g.wantLive()
	g.wantNoParts()
}

func (g *genEnv) wantNoParts() {
	g.Helper()
	g.Eventually(func() string {
		if n := len(g.parts()); n > 0 {
			return fmt.Sprintf("%d parts are left", n)
		}
		return ""
	})
}

// TestRefusedWritesLoseNoValues refuses writes. Values generated meanwhile must be kept until they can be written, and the values
// that they replace must not be revoked before.
func TestRefusedWritesLoseNoValues(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		restart bool
		refuses func(*http.Request) bool
	}{
		"Target":           {"The target cannot be written.", false, writesOf(false)},
		"TargetAndRestart": {"The operator stops before the target could be written.", true, writesOf(false)},
		"Part":             {"The part cannot be written.", false, writesOf(true)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGenEnv(t, leased)
			open := g.gate.Close(tc.refuses)
			g.Create(g.generated("db"))
			g.Eventually(func() string {
				if n := g.Backend.Count(fake.CallGenerate); n == 0 {
					return "nothing was made"
				}
				return ""
			})
			if tc.restart {
				g.restart()
			}
			g.waitForRetries()
			if n := g.Backend.Count(fake.CallGenerate); n != 1 {
				t.Fatalf("%s\n%d credentials were made, want 1", tc.reason, n)
			}
			open()
			first := g.wantUser("db", "the value is delivered", func(u string) bool { return u != "" })
			g.wantLive(first)
			g.wantDelivered("db")

			open = g.gate.Close(tc.refuses)
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			g.Eventually(func() string {
				if n := g.Backend.Count(fake.CallGenerate); n < 2 {
					return "nothing was made"
				}
				return ""
			})
			if tc.restart {
				g.restart()
			}
			g.waitForRetries()
			if n := g.Backend.Count(fake.CallGenerate); n != 2 {
				t.Errorf("%s\n%d credentials were made for two, want 2", tc.reason, n)
			}
			if live := g.Backend.Live(); len(live) != 2 || g.user("db") != first {
				t.Errorf("%s\nlive are %q and the Secret holds %q; both must stay live until the new one is delivered", tc.reason, live, g.user("db"))
			}
			open()
			second := g.wantUser("db", "the new value is delivered", not(first))
			g.wantLive(second)
			g.Delete(g.Get("db"))
			g.wantLive()
			g.wantNoParts()
		})
	}
}

// waitForRetries waits until refused writes were repeated, which happens within seconds.
func (g *genEnv) waitForRetries() {
	g.Helper()
	before := g.gate.Hits.Load()
	g.Eventually(func() string {
		if n := g.gate.Hits.Load() - before; n < 3 {
			return fmt.Sprintf("a write was refused %d times", n)
		}
		return ""
	})
}

// TestRevocationDelay checks that the former credential stays live for the revocation delay.
func TestRevocationDelay(t *testing.T) {
	g := newGenEnv(t, func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RevocationDelay = "10h", "1h" })
	first := g.made("db")
	g.wantDelivered("db")
	testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
	second := g.wantUser("db", "rotated", not(first))
	g.Eventually(func() string {
		for _, p := range g.parts() {
			if rec, _ := handoff.Of(p.Annotations); len(rec.Retired) == 1 && !rec.Retired[0].Release.IsZero() {
				return ""
			}
		}
		return "the time of the revocation is not recorded"
	})
	g.pass(50 * time.Minute)
	g.restart()
	testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
	g.WantReady("db", v1alpha1.ReasonSecretSynced)
	g.wantLive(first, second)
	g.pass(15 * time.Minute)
	g.wantLive(second)
}

// TestNothingLeft removes objects in all possible ways.
func TestNothingLeft(t *testing.T) {
	g := newGenEnv(t, leased)
	cases := map[string]struct {
		reason string
		specs  []spec
		end    func()
		// kept is true if the credential stays with the Secret.
		kept bool
	}{
		"Deleted":  {"The object is deleted, and its Secret with it.", nil, func() { g.Delete(g.Get("db")) }, false},
		"Orphaned": {"The Secret is kept, so the credential is kept.", []spec{func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateOrphan }}, func() { g.Delete(g.Get("db")) }, true},
		"Dropped": {"The spec no longer names the generator.", nil, func() {
			g.Server.Backend("main").Put("db", []byte("x"))
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec = g.ExternalSecret("db").Spec })
		}, false},
		"DroppedWhileDown": {"The spec changed while no operator ran.", nil, func() {
			g.Stop()
			g.Server.Backend("main").Put("db", []byte("x"))
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec = g.ExternalSecret("db").Spec })
			g.Start(testenv.Ahead(&g.ahead))
		}, false},
		"DeletedWhileDown": {"The object was deleted while no operator ran.", nil, func() {
			g.Stop()
			g.Delete(g.Get("db"))
			g.Start(testenv.Ahead(&g.ahead))
		}, false},
		"Unreachable": {"The provider does not answer at first.", nil, func() {
			g.Backend.Inject(fake.Fault{Call: fake.CallCleanup, Times: 2, Err: errUnavailable})
			g.Delete(g.Get("db"))
		}, false},
	}
	for name, tc := range cases {
		t.Log(name, tc.reason)
		user := g.made("db", tc.specs...)
		g.wantDelivered("db")
		g.Eventually(func() string {
			if n := len(g.parts()[0].OwnerReferences); n != 2 {
				return fmt.Sprintf("%d owners", n)
			}
			return ""
		})
		tc.end()
		if tc.kept {
			g.Eventually(func() string {
				if n := len(g.parts()[0].OwnerReferences); n != 1 {
					return fmt.Sprintf("%d owners, want the Secret alone", n)
				}
				return ""
			})
			g.wantLive(user)
			g.Delete(g.Secret("db"))
		}
		g.wantLive()
		g.wantNoParts()
		g.clear()
	}
}

// TestPartDeleted deletes the part of an existing object. Its values must be replaced, and the Secret must always hold
// valid values.
func TestPartDeleted(t *testing.T) {
	g := newServedEnv(t, leased)
	first := g.made("db")
	g.wantDelivered("db")
	p := g.parts()[0]
	g.Delete(&p)
	second := g.wantUser("db", "new values are made", not(first))
	g.wantLive(second)
	g.wantDelivered("db")
}

// TestPartWaitsForGenerator deletes objects whose generator is deleted before the part. The part must be kept until the generator
// exists again, or the credential has expired.
func TestPartWaitsForGenerator(t *testing.T) {
	g := newGenEnv(t, leased)
	user := g.made("db")
	g.wantDelivered("db")
	orphan := func(name string) {
		g.Stop()
		g.Delete(g.generator("gen"))
		g.Delete(g.Get(name))
		g.Start(testenv.Ahead(&g.ahead))
	}
	orphan("db")
	held := func() string {
		for _, p := range g.parts() {
			if p.DeletionTimestamp != nil {
				return ""
			}
		}
		return "the part is not being deleted"
	}
	g.Eventually(held)
	g.wantLive(user)
	g.Create(g.generator("gen", leased))
	g.wantLive()
	g.wantNoParts()

	user = g.made("other")
	g.wantDelivered("other")
	orphan("other")
	g.Eventually(held)
	g.wantLive(user)
	g.pass(2 * time.Hour) // The credential has expired.
	g.wantLive()
	g.wantNoParts()
}

// TestGeneratorGate checks that objects wait while their generator is not ready.
func TestGeneratorGate(t *testing.T) {
	g := newServedEnv(t, func(o *fakev1.FakeGenerator) {
		o.Spec.Auth = &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "credentials", Key: "password"}}
	})
	g.Backend.SetPassword("right")
	g.Create(g.generated("db"))
	if c := g.WantReady("db", v1alpha1.ReasonStoreNotReady); !strings.Contains(c.Message, "credentials") {
		t.Errorf("Ready says %q, want it to name the Secret", c.Message)
	}
	g.Credentials("password", "right")
	g.WantReady("db", v1alpha1.ReasonSecretSynced)
	if n := g.Backend.Count(fake.CallGenerate); n != 1 {
		t.Errorf("%d values were made, want 1", n)
	}
}

// TestGenerateFails checks that errors of a generator are reported and retried.
func TestGenerateFails(t *testing.T) {
	g := newServedEnv(t, leased)
	remove := g.Backend.Inject(fake.Fault{Call: fake.CallGenerate, Err: errDenied})
	g.Create(g.generated("db"))
	g.Eventually(func() string {
		c := g.readiness("db")
		if c.Reason != v1alpha1.ReasonSecretSyncedError || !strings.HasPrefix(c.Message, `Denied: FakeGenerator "gen": `) {
			return fmt.Sprintf("Ready is %s %q", c.Reason, c.Message)
		}
		return ""
	})
	remove()
	first := g.wantUser("db", "it is retried", func(u string) bool { return u != "" })
	g.WantReady("db", v1alpha1.ReasonSecretSynced)

	remove = g.Backend.Inject(fake.Fault{Call: fake.CallGenerate, Err: errUnavailable})
	testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
	g.Eventually(func() string {
		if c := g.readiness("db"); c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, `Unavailable: FakeGenerator "gen": `) {
			return fmt.Sprintf("Ready is %s %q", c.Reason, c.Message)
		}
		return ""
	})
	if got := g.user("db"); got != first {
		t.Errorf("the Secret holds %q while no new value can be made, want %q", got, first)
	}
	remove()
	g.wantUser("db", "it is retried", not(first))
	g.WantReady("db", v1alpha1.ReasonSecretSynced)
}
