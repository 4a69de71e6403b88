package generation_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// caughtUp waits until the operator has reconciled all parts and revoked what it would revoke. For this it creates and
// deletes another object, and waits until the credential of that object is revoked.
func (g *genEnv) caughtUp() {
	g.Helper()
	g.pass(0)
	name := "control-" + testenv.RandomName()
	user := g.made(name)
	g.wantDelivered(name)
	g.Delete(g.Get(name))
	g.Eventually(func() string {
		if slices.Contains(g.Backend.Live(), user) {
			return "the credential of a deleted object is still live"
		}
		return ""
	})
}

// TestInUse does things after which a credential looks unused. Credentials in Secrets must stay live (newGenEnv checks
// that). After everything is deleted, no credential may be left.
func TestInUse(t *testing.T) {
	g := newGenEnv(t, leased)
	orphan := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateOrphan }
	once := func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }
	reads := func() func(*v1alpha1.ExternalSecret) {
		g.Server.Backend("main").Put("db", []byte("x"))
		return func(es *v1alpha1.ExternalSecret) {
			plain := g.ExternalSecret("db").Spec
			es.Spec.StoreRef, es.Spec.Data, es.Spec.DataFrom = plain.StoreRef, plain.Data, nil
		}
	}
	cases := map[string]struct {
		reason string
		specs  []spec
		do     func(user string)
		// moved is true if the Secret gets another credential.
		moved bool
	}{
		"SuspendedAndDropped": {"A spec without the generator has no effect while the object is suspended.", nil, func(_ string) {
			change := reads()
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { change(es); es.Spec.Suspend = true })
			g.WantReady("db", v1alpha1.ReasonSuspended)
		}, false},
		"DroppedAfterOnce": {"Under CreatedOnce the Secret keeps its values, even if the spec no longer names the generator.", []spec{once}, func(_ string) {
			testenv.Update(g.Client, g.Get("db"), reads())
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
		}, false},
		"None": {"A Secret that is no longer written keeps its values.", nil, func(_ string) {
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateNone })
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			g.Eventually(func() string {
				if g.Get("db").Status.ObservedRefreshRequest != "1" {
					return "the request was not served"
				}
				return ""
			})
		}, false},
		"Renamed": {"The former Secret of a changed spec.target.name still holds the credential.", []spec{orphan}, func(user string) {
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" })
			g.wantUser("other", "it is unchanged", func(u string) bool { return u == user })
			g.wantDelivered("db")
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
		}, false},
		"RenamedByAnother": {"The former Secret of another object with the same name still holds the credential.", []spec{orphan}, func(_ string) {
			g.Delete(g.Get("db"))
			g.Create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
		}, false},
		"PartDeletedThenRenamed": {"The new object makes its own credential, and the former one is not revoked.", []spec{orphan}, func(user string) {
			g.Delete(g.Get("db"))
			g.deleteParts()
			g.Create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.wantUser("other", "the object gets its own values", func(u string) bool { return u != "" && u != user })
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
			g.deleteParts()
		}, false},
		"PartDeletedThenObject": {"If the part and then the object are deleted by hand, a credential that no Secret got is revoked.", []spec{orphan}, func(user string) {
			open := g.gate.Close(func(r *http.Request) bool { return r.Method == http.MethodPost && writesOf(true)(r) })
			p := g.parts()[0]
			g.Delete(&p)
			g.Eventually(func() string {
				if n := g.Backend.Count(fake.CallGenerate); n < 1 {
					return "no second credential was made"
				}
				return ""
			})
			g.Delete(g.Get("db"))
			g.Eventually(func() string {
				if live := g.Backend.Live(); len(live) > 1 {
					return fmt.Sprintf("live are %q, want %q alone: no Secret got the other one", live, user)
				}
				return ""
			})
			open()
		}, false},
		"AnswerLost": {"The write that stores a new credential succeeds, and its response is lost.", nil, func(user string) {
			open := g.gate.Lose(writesOf(true))
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			g.wantUser("db", "rotated", not(user))
			open()
		}, true},
		"AnswerLostTwice": {"Another rotation is requested after that.", nil, func(user string) {
			open := g.gate.Lose(writesOf(true))
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			second := g.wantUser("db", "rotated", not(user))
			open()
			testenv.Update(g.Client, g.Get("db"), testenv.Request("2"))
			g.wantUser("db", "rotated again", not(second))
		}, true},
		"AnnotationGone": {"A user removes the record from the part.", nil, func(_ string) {
			g.patchPart(`{"metadata":{"annotations":null}}`)
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "2h" })
			g.wantDelivered("db")
		}, false},
		"FinalizerGone": {"A user removes the finalizer.", nil, func(_ string) {
			g.patchPart(`{"metadata":{"finalizers":null}}`)
			g.Eventually(func() string {
				if len(g.parts()[0].Finalizers) == 0 {
					return "the finalizer is not restored"
				}
				return ""
			})
		}, false},
		"DataGone": {"A user removes the values: new ones are made.", nil, func(user string) {
			g.patchPart(`{"data":null}`)
			g.wantUser("db", "new values are made", not(user))
		}, true},
	}
	for name, tc := range cases {
		t.Log(name)
		user := g.made("db", tc.specs...)
		g.wantDelivered("db")
		g.Backend.Reset()
		tc.do(user)
		g.caughtUp()
		if s := g.Secret("db"); s == nil || (string(s.Data["username"]) != user) != tc.moved {
			t.Errorf("%s: %s\nthe Secret holds %q, before %q", name, tc.reason, g.user("db"), user)
		}
		if live := g.Backend.Live(); !slices.Contains(live, g.user("db")) {
			t.Errorf("%s: %s\nthe Secret holds %q, and live are %q", name, tc.reason, g.user("db"), live)
		}
		g.clear()
		g.wantLive()
		g.wantNoParts()
	}
}

// deleteParts deletes the parts that the garbage collector has not deleted yet.
func (g *genEnv) deleteParts() {
	g.Helper()
	for _, p := range g.parts() {
		if err := g.API.Delete(g.Ctx, &p); client.IgnoreNotFound(err) != nil {
			g.Fatal(err)
		}
	}
}

// clear deletes the object and all Secrets except the parts.
func (g *genEnv) clear() {
	g.Helper()
	if err := g.API.Delete(g.Ctx, g.generated("db")); client.IgnoreNotFound(err) != nil {
		g.Fatal(err)
	}
	for _, name := range []string{"db", "other"} {
		if err := g.API.Delete(g.Ctx, &corev1.Secret{ObjectMeta: g.Meta(name)}); err != nil && !kerrors.IsNotFound(err) {
			g.Fatal(err)
		}
	}
}

func (g *genEnv) patchPart(patch string) {
	g.Helper()
	p := g.parts()[0]
	if err := g.API.Patch(g.Ctx, &p, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		g.Fatal(err)
	}
}

// TestCredentialInSharedSecretStaysLive shares a Secret with an object that owns one of the keys. The credential in the other key must stay live
// as long as the Secret exists.
func TestCredentialInSharedSecretStaysLive(t *testing.T) {
	g := newServedEnv(t, leased)
	g.BackendOf("main").Put("db", []byte("x"))
	shared := func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.CreationPolicy, es.Spec.Target.Name = v1alpha1.CreateCreateOrMerge, "other"
	}
	g.Create(g.ExternalSecret("first", shared, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data[0].SecretKey, es.Spec.Data[0].RemoteRef.Key = "password", "db"
	}))
	g.WantReady("first", v1alpha1.ReasonSecretSynced)
	g.Create(g.generated("db", shared))
	g.WantReady("db", v1alpha1.ReasonConflict)
	user := g.wantUser("other", "it writes the free key", func(u string) bool { return u != "" })
	g.Delete(g.Get("db"))
	g.caughtUp()
	g.wantLive(user)
	g.Delete(g.Get("first"))
	g.clear()
	g.wantLive()
}

// TestManyRotationsKeepRevocationDelay rotates so many objects at the same time that they wait for each other. Each former credential must
// stay live for the revocation delay.
func TestManyRotationsKeepRevocationDelay(t *testing.T) {
	const objects = 6
	e := testenv.NewIdle(t, func(f *operator.Flags) { f.Concurrency = 2 })
	g := genEnvOf(e, func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RevocationDelay = "10h", "1h" })
	for i := range objects {
		g.Create(g.generated(fmt.Sprintf("db-%d", i)))
	}
	for i := range objects {
		g.wantDelivered(fmt.Sprintf("db-%d", i))
	}
	g.Backend.Inject(fake.Fault{Latency: 2 * time.Millisecond})
	testenv.Update(g.Client, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
	for i := range objects {
		g.wantUser(fmt.Sprintf("db-%d", i), "rotated", func(u string) bool { return strings.HasPrefix(u, "v") })
	}
	g.Eventually(func() string {
		for _, p := range g.parts() {
			if rec, _ := handoff.Of(p.Annotations); len(rec.Retired) != 1 || rec.Retired[0].Release.IsZero() {
				return "the time of a revocation is not recorded"
			}
		}
		return ""
	})
	if n := g.Backend.Count(fake.CallCleanup); n > 0 || len(g.Backend.Live()) != 2*objects {
		t.Errorf("%d credentials were revoked, %d live, want none and %d", n, len(g.Backend.Live()), 2*objects)
	}
}

// TestRotationWithSourceOfSameName reads a remote secret whose key equals the name that the status uses for the generator's
// values.
func TestRotationWithSourceOfSameName(t *testing.T) {
	g := newGenEnv(t, func(o *fakev1.FakeGenerator) { o.Spec.RotationInterval = "10m" })
	g.Server.Backend("main").Put("FakeGenerator/gen", []byte("x"))
	user := g.made("db", func(es *v1alpha1.ExternalSecret) {
		plain := g.ExternalSecret("db").Spec
		es.Spec.StoreRef, es.Spec.Data = plain.StoreRef, plain.Data
		es.Spec.Data[0].RemoteRef.Key = "FakeGenerator/gen"
	})
	g.Eventually(func() string {
		g.pass(11 * time.Minute)
		if g.user("db") == user {
			return "rotationInterval has passed, and the values are not rotated"
		}
		return ""
	})
}

// TestPartWithForeignFinalizerWaits deletes a part that has a finalizer of another controller. The operator must wait, with growing
// intervals.
func TestPartWithForeignFinalizerWaits(t *testing.T) {
	g := newGenEnv(t, leased)
	first := g.made("db")
	g.wantDelivered("db")
	g.patchPart(`{"metadata":{"finalizers":["example.com/held","` + handoff.Finalizer(fakev1.Group) + `"]}}`)
	var reads atomic.Int32
	g.gate.Close(func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
			reads.Add(1)
		}
		return false
	})
	p := g.parts()[0]
	g.Delete(&p)
	start := time.Now()
	g.Eventually(func() string {
		if n := reads.Load(); n < 10 {
			return fmt.Sprintf("%d reads", n)
		}
		return ""
	})
	// The waits double from 50 ms; events may add one or two reads.
	if took := time.Since(start); took < time.Second {
		t.Errorf("ten reads of a part with the finalizer of another controller took %s", took)
	}
	g.patchPart(`{"metadata":{"finalizers":null}}`)
	second := g.wantUser("db", "new values are made", not(first))
	g.wantLive(second)
}

// TestPushIfNotExistsKeeps requests new values while the store keeps its present ones under IfNotExists.
func TestPushIfNotExistsKeeps(t *testing.T) {
	g := newServedEnv(t, leased)
	remote := g.BackendOf("main")
	g.Create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }))
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	first := string(must(remote.Value("db-db")))
	testenv.Update(g.Client, g.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	testenv.Update(g.Client, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
	g.Eventually(func() string {
		if got := g.GetPush("db").Status.Stores[0].ObservedRefreshRequest; got != "1" {
			return "the request was not served"
		}
		return ""
	})
	g.caughtUp()
	g.WantRemote(remote, "db-db", first)
	g.wantLive(first)
}

// TestPushRotationIsNoFailure requests new values of a slow generator.
func TestPushRotationIsNoFailure(t *testing.T) {
	g := newGenEnv(t)
	g.Create(g.generatedPush("db"))
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	g.ahead.Add(int64(time.Minute))
	release := g.Backend.Inject(fake.Fault{Call: fake.CallGenerate, Hang: true})
	testenv.Update(g.Client, g.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	g.Eventually(func() string {
		if n := g.Backend.Count(fake.CallGenerate); n < 2 {
			return "no new value is made"
		}
		return ""
	})
	// When another object is in sync, the controller has also handled this one.
	g.Source("source", map[string]string{"password": "x"})
	g.Create(g.PushSecret("control"))
	g.WantPushed("control", v1alpha1.ReasonSecretSynced)
	if c := meta.FindStatusCondition(g.GetPush("db").Status.Conditions, v1alpha1.ConditionReady); c.Status == metav1.ConditionFalse {
		t.Errorf("Ready is False while a new value is made: %s", c.Message)
	}
	release()
	g.WantRemote(g.Server.Backend("main"), "db-db", "u000002")
}

// TestStopBeforePartIsWritten stops the operator between making a credential and storing it.
func TestStopBeforePartIsWritten(t *testing.T) {
	g := newGenEnv(t, leased)
	entered, proceed := make(chan struct{}, 100), make(chan struct{})
	open := g.gate.Close(func(r *http.Request) bool {
		if r.Method == http.MethodPost && writesOf(true)(r) {
			entered <- struct{}{}
			<-proceed
		}
		return false
	})
	g.Create(g.generated("db"))
	<-entered
	ended := make(chan struct{})
	go func() { defer close(ended); g.Stop() }()
	close(proceed)
	<-ended
	open()
	g.Start(testenv.Ahead(&g.ahead))
	user := g.wantUser("db", "the value is delivered", func(u string) bool { return u != "" })
	g.wantLive(user)
	if diff := cmp.Diff(1, g.Backend.Count(fake.CallGenerate)); diff != "" {
		t.Errorf("credentials that were made: -want, +got:\n%s", diff)
	}
}
