package generated_test

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
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// caughtUp waits until the operator has looked at all parts, and has revoked what it would revoke: a credential of
// another object, made and let go after all that the test did, is gone.
func (g *genEnv) caughtUp() {
	g.Helper()
	g.pass(0)
	name := "control-" + testenv.RandomName()
	user := g.made(name)
	g.wantDelivered(name)
	g.Delete(g.Get(name))
	g.Eventually(func() string {
		if slices.Contains(g.Backend.Live(), user) {
			return "the credential of an object that is gone lives"
		}
		return ""
	})
}

// TestInUse does what makes a credential look as if nobody held it. What a Secret holds must live (newGenEnv sees
// to that); when all is gone nothing may be left.
func TestInUse(t *testing.T) {
	t.Parallel()
	orphan := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateOrphan }
	once := func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }
	reads := func(g *genEnv) func(*v1alpha1.ExternalSecret) {
		g.Server.Backend("main").Put("db", []byte("x"))
		return func(es *v1alpha1.ExternalSecret) {
			plain := g.ExternalSecret("db").Spec
			es.Spec.StoreRef, es.Spec.Data, es.Spec.DataFrom = plain.StoreRef, plain.Data, nil
		}
	}
	cases := map[string]struct {
		reason string
		specs  []spec
		do     func(g *genEnv, user string)
		// moved is true if the Secret gets another credential by it.
		moved bool
	}{
		"SuspendedAndDropped": {"A spec that names the generator no more is not in force while it is suspended.", nil, func(g *genEnv, _ string) {
			change := reads(g)
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { change(es); es.Spec.Suspend = true })
			g.WantReady("db", v1alpha1.ReasonSuspended)
		}, false},
		"DroppedAfterOnce": {"By CreatedOnce the Secret stays as it is, whatever the spec says now.", []spec{once}, func(g *genEnv, _ string) {
			testenv.Update(g.Client, g.Get("db"), reads(g))
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
		}, false},
		"None": {"A Secret that is written no more keeps what it holds.", nil, func(g *genEnv, _ string) {
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
		"Renamed": {"A Secret that spec.target.name has left behind holds it still.", []spec{orphan}, func(g *genEnv, user string) {
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" })
			g.wantUser("other", "it is what it was", func(u string) bool { return u == user })
			g.wantDelivered("db")
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
		}, false},
		"RenamedByAnother": {"So does one that another object of the name does not write any more.", []spec{orphan}, func(g *genEnv, _ string) {
			g.Delete(g.Get("db"))
			g.Create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
		}, false},
		"PartDeletedThenRenamed": {"Nor is it revoked with what that object made for itself.", []spec{orphan}, func(g *genEnv, user string) {
			g.Delete(g.Get("db"))
			for _, p := range g.parts() { // As the garbage collector does where it is first.
				g.Delete(&p)
			}
			g.Create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.wantUser("other", "the object makes its own", func(u string) bool { return u != "" && u != user })
			g.Delete(g.Get("db"))
			g.Delete(g.Secret("other"))
			for _, p := range g.parts() {
				g.Delete(&p)
			}
		}, false},
		"PartDeletedThenObject": {"A part that was deleted by hand leaves its credential to the next one, or to nobody.", []spec{orphan}, func(g *genEnv, user string) {
			open := g.gate.Close(func(r *http.Request) bool { return r.Method == http.MethodPost && writesOf(true)(r) })
			p := g.parts()[0]
			g.Delete(&p)
			g.Eventually(func() string {
				if n := g.Backend.Count(fake.CallGenerate); n < 2 {
					return "no other was made"
				}
				return ""
			})
			g.Delete(g.Get("db"))
			g.Eventually(func() string {
				if live := g.Backend.Live(); len(live) > 1 {
					return fmt.Sprintf("live are %q, want %q alone: the other reached nobody", live, user)
				}
				return ""
			})
			open()
		}, false},
		"AnswerLost": {"The write that keeps a new credential succeeds, and its answer is lost.", nil, func(g *genEnv, user string) {
			open := g.gate.Lose(writesOf(true))
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			g.wantUser("db", "rotated", not(user))
			open()
		}, true},
		"AnswerLostTwice": {"Another rotation is asked for after that.", nil, func(g *genEnv, user string) {
			open := g.gate.Lose(writesOf(true))
			testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
			second := g.wantUser("db", "rotated", not(user))
			open()
			testenv.Update(g.Client, g.Get("db"), testenv.Request("2"))
			g.wantUser("db", "rotated again", not(second))
		}, true},
		"AnnotationGone": {"Somebody takes the part's record away.", nil, func(g *genEnv, _ string) {
			g.patchPart(`{"metadata":{"annotations":null}}`)
			testenv.Update(g.Client, g.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "2h" })
			g.wantDelivered("db")
		}, false},
		"FinalizerGone": {"Somebody takes the finalizer off.", nil, func(g *genEnv, _ string) {
			g.patchPart(`{"metadata":{"finalizers":null}}`)
			g.Eventually(func() string {
				if len(g.parts()[0].Finalizers) == 0 {
					return "the finalizer does not come back"
				}
				return ""
			})
		}, false},
		"DataGone": {"Somebody takes the values away: others are made.", nil, func(g *genEnv, user string) {
			g.patchPart(`{"data":null}`)
			g.wantUser("db", "others are made", not(user))
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGenEnv(t, leased)
			user := g.made("db", tc.specs...)
			g.wantDelivered("db")
			tc.do(g, user)
			g.caughtUp()
			if s := g.Secret("db"); s == nil || (string(s.Data["username"]) != user) != tc.moved {
				t.Errorf("%s\nthe Secret holds %q, before %q", tc.reason, g.user("db"), user)
			}
			if live := g.Backend.Live(); !slices.Contains(live, g.user("db")) {
				t.Errorf("%s\nthe Secret holds %q, and live are %q", tc.reason, g.user("db"), live)
			}
			g.clear()
			g.wantLive()
			g.wantNoParts()
		})
	}
}

// clear deletes the object and all Secrets but the parts.
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

// TestYielded shares a Secret with an object that holds one of the keys. The credential that it did write lives as
// long as the Secret.
func TestYielded(t *testing.T) {
	g := newGenEnv(t, leased)
	g.Server.Backend("main").Put("db", []byte("x"))
	shared := func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.CreationPolicy, es.Spec.Target.Name = v1alpha1.CreateCreateOrMerge, "other"
	}
	g.Create(g.ExternalSecret("first", shared, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data[0].SecretKey, es.Spec.Data[0].RemoteRef.Key = "password", "db"
	}))
	g.WantReady("first", v1alpha1.ReasonSecretSynced)
	g.Create(g.generated("db", shared))
	g.WantReady("db", v1alpha1.ReasonConflict)
	user := g.wantUser("other", "it writes what is free", func(u string) bool { return u != "" })
	g.Delete(g.Get("db"))
	g.caughtUp()
	g.wantLive(user)
	g.Delete(g.Get("first"))
	g.clear()
	g.wantLive()
}

// TestManyRotate rotates so many at once that they wait for each other. Each former credential lives for as long as
// the generator says.
func TestManyRotate(t *testing.T) {
	const objects = 60
	g := newGenEnv(t, func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RevocationDelay = "10h", "1h" })
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
				return "the time of a revocation is not noted"
			}
		}
		return ""
	})
	if n := g.Backend.Count(fake.CallCleanup); n > 0 || len(g.Backend.Live()) != 2*objects {
		t.Errorf("%d credentials were revoked, %d live, want none and %d", n, len(g.Backend.Live()), 2*objects)
	}
}

// TestImmutableComesBack deletes an immutable Secret, as somebody does who wants it made anew, after a refresh was
// asked for.
func TestImmutableComesBack(t *testing.T) {
	g := newGenEnv(t)
	user := g.made("db", func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true })
	g.wantDelivered("db")
	testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
	g.Delete(g.Secret("db"))
	g.wantUser("db", "it comes back as it was", func(u string) bool { return u == user })
}

// TestSourceOfTheSameName reads a remote secret whose key is what the status calls the values of the generator.
func TestSourceOfTheSameName(t *testing.T) {
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
			return "rotationInterval has passed, and nothing is rotated"
		}
		return ""
	})
}

// TestForeignFinalizer has somebody else hold a part that is deleted. The operator waits, and asks ever less often.
func TestForeignFinalizer(t *testing.T) {
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
	// The waits double from 50 ms; besides there is an event or two.
	if took := time.Since(start); took < time.Second {
		t.Errorf("ten reads of a part that waits for somebody else took %s", took)
	}
	g.patchPart(`{"metadata":{"finalizers":null}}`)
	second := g.wantUser("db", "others are made", not(first))
	g.wantLive(second)
}

// TestPushIfNotExistsKeeps asks for another value where the store keeps the one that it has.
func TestPushIfNotExistsKeeps(t *testing.T) {
	g := newGenEnv(t, leased)
	remote := g.Server.Backend("main")
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

// TestPushRotationIsNoFailure asks for another value of a generator that takes its time.
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
			return "no other value is made"
		}
		return ""
	})
	// Another object of the same loop is in step after it.
	g.Source("source", map[string]string{"password": "x"})
	g.Create(g.PushSecret("control"))
	g.WantPushed("control", v1alpha1.ReasonSecretSynced)
	if c := meta.FindStatusCondition(g.GetPush("db").Status.Conditions, v1alpha1.ConditionReady); c.Status == metav1.ConditionFalse {
		t.Errorf("Ready is False while another value is made: %s", c.Message)
	}
	release()
	g.WantRemote(g.Server.Backend("main"), "db-db", "u000002")
}

// TestEndsWhileKeeping has the operator end between making a credential and keeping it.
func TestEndsWhileKeeping(t *testing.T) {
	g := newGenEnv(t, leased)
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	open := g.gate.Close(func(r *http.Request) bool {
		if r.Method == http.MethodPost && writesOf(true)(r) {
			entered <- struct{}{}
			<-leave
		}
		return false
	})
	g.Create(g.generated("db"))
	<-entered
	ended := make(chan struct{})
	go func() { defer close(ended); g.Stop() }()
	close(leave)
	<-ended
	open()
	g.Start(testenv.Ahead(&g.ahead))
	user := g.wantUser("db", "it arrives", func(u string) bool { return u != "" })
	g.wantLive(user)
	if diff := cmp.Diff(1, g.Backend.Count(fake.CallGenerate)); diff != "" {
		t.Errorf("credentials that were made: -want, +got:\n%s", diff)
	}
}
