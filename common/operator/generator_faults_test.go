package operator_test

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
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// caughtUp waits until the operator has looked at all parts, and has revoked what it would revoke: a credential of
// another object, made and let go after all that the test did, is gone.
func (g *genEnv) caughtUp() {
	g.Helper()
	g.pass(0)
	name := "control-" + randomName()
	user := g.made(name)
	g.wantDelivered(name)
	g.delete(g.get(name))
	g.eventually(func() string {
		if slices.Contains(g.backend.Live(), user) {
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
		g.server.Backend("main").Put("db", []byte("x"))
		return func(es *v1alpha1.ExternalSecret) {
			plain := g.externalSecret("db").Spec
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
			update(g.env, g.get("db"), func(es *v1alpha1.ExternalSecret) { change(es); es.Spec.Suspend = true })
			g.wantReady("db", v1alpha1.ReasonSuspended)
		}, false},
		"DroppedAfterOnce": {"By CreatedOnce the Secret stays as it is, whatever the spec says now.", []spec{once}, func(g *genEnv, _ string) {
			update(g.env, g.get("db"), reads(g))
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
		}, false},
		"None": {"A Secret that is written no more keeps what it holds.", nil, func(g *genEnv, _ string) {
			update(g.env, g.get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateNone })
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
			update(g.env, g.get("db"), request("1"))
			g.eventually(func() string {
				if g.get("db").Status.ObservedRefreshRequest != "1" {
					return "the request was not served"
				}
				return ""
			})
		}, false},
		"Renamed": {"A Secret that spec.target.name has left behind holds it still.", []spec{orphan}, func(g *genEnv, user string) {
			update(g.env, g.get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" })
			g.wantUser("other", "it is what it was", func(u string) bool { return u == user })
			g.wantDelivered("db")
			g.delete(g.get("db"))
			g.delete(g.secret("other"))
		}, false},
		"RenamedByAnother": {"So does one that another object of the name does not write any more.", []spec{orphan}, func(g *genEnv, _ string) {
			g.delete(g.get("db"))
			g.create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
			g.delete(g.get("db"))
			g.delete(g.secret("other"))
		}, false},
		"PartDeletedThenRenamed": {"Nor is it revoked with what that object made for itself.", []spec{orphan}, func(g *genEnv, user string) {
			g.delete(g.get("db"))
			for _, p := range g.parts() { // As the garbage collector does where it is first.
				g.delete(&p)
			}
			g.create(g.generated("db", orphan, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "other" }))
			g.wantUser("other", "the object makes its own", func(u string) bool { return u != "" && u != user })
			g.delete(g.get("db"))
			g.delete(g.secret("other"))
			for _, p := range g.parts() {
				g.delete(&p)
			}
		}, false},
		"PartDeletedThenObject": {"A part that was deleted by hand leaves its credential to the next one, or to nobody.", []spec{orphan}, func(g *genEnv, user string) {
			open := g.gate.close(func(r *http.Request) bool { return r.Method == http.MethodPost && writesOf(true)(r) })
			p := g.parts()[0]
			g.delete(&p)
			g.eventually(func() string {
				if n := g.backend.Count(fake.CallGenerate); n < 2 {
					return "no other was made"
				}
				return ""
			})
			g.delete(g.get("db"))
			g.eventually(func() string {
				if live := g.backend.Live(); len(live) > 1 {
					return fmt.Sprintf("live are %q, want %q alone: the other reached nobody", live, user)
				}
				return ""
			})
			open()
		}, false},
		"AnswerLost": {"The write that keeps a new credential succeeds, and its answer is lost.", nil, func(g *genEnv, user string) {
			open := g.gate.lose(writesOf(true))
			update(g.env, g.get("db"), request("1"))
			g.wantUser("db", "rotated", not(user))
			open()
		}, true},
		"AnswerLostTwice": {"Another rotation is asked for after that.", nil, func(g *genEnv, user string) {
			open := g.gate.lose(writesOf(true))
			update(g.env, g.get("db"), request("1"))
			second := g.wantUser("db", "rotated", not(user))
			open()
			update(g.env, g.get("db"), request("2"))
			g.wantUser("db", "rotated again", not(second))
		}, true},
		"AnnotationGone": {"Somebody takes the part's record away.", nil, func(g *genEnv, _ string) {
			g.patchPart(`{"metadata":{"annotations":null}}`)
			update(g.env, g.get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "2h" })
			g.wantDelivered("db")
		}, false},
		"FinalizerGone": {"Somebody takes the finalizer off.", nil, func(g *genEnv, _ string) {
			g.patchPart(`{"metadata":{"finalizers":null}}`)
			g.eventually(func() string {
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
			if s := g.secret("db"); s == nil || (string(s.Data["username"]) != user) != tc.moved {
				t.Errorf("%s\nthe Secret holds %q, before %q", tc.reason, g.user("db"), user)
			}
			if live := g.backend.Live(); !slices.Contains(live, g.user("db")) {
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
	if err := api.Delete(g.ctx, g.generated("db")); client.IgnoreNotFound(err) != nil {
		g.Fatal(err)
	}
	for _, name := range []string{"db", "other"} {
		if err := api.Delete(g.ctx, &corev1.Secret{ObjectMeta: g.meta(name)}); err != nil && !kerrors.IsNotFound(err) {
			g.Fatal(err)
		}
	}
}

func (g *genEnv) patchPart(patch string) {
	g.Helper()
	p := g.parts()[0]
	if err := api.Patch(g.ctx, &p, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		g.Fatal(err)
	}
}

// TestYielded shares a Secret with an object that holds one of the keys. The credential that it did write lives as
// long as the Secret.
func TestYielded(t *testing.T) {
	g := newGenEnv(t, leased)
	g.server.Backend("main").Put("db", []byte("x"))
	shared := func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.CreationPolicy, es.Spec.Target.Name = v1alpha1.CreateCreateOrMerge, "other"
	}
	g.create(g.externalSecret("first", shared, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data[0].SecretKey, es.Spec.Data[0].RemoteRef.Key = "password", "db"
	}))
	g.wantReady("first", v1alpha1.ReasonSecretSynced)
	g.create(g.generated("db", shared))
	g.wantReady("db", v1alpha1.ReasonConflict)
	user := g.wantUser("other", "it writes what is free", func(u string) bool { return u != "" })
	g.delete(g.get("db"))
	g.caughtUp()
	g.wantLive(user)
	g.delete(g.get("first"))
	g.clear()
	g.wantLive()
}

// TestManyRotate rotates so many at once that they wait for each other. Each former credential lives for as long as
// the generator says.
func TestManyRotate(t *testing.T) {
	const objects = 60
	g := newGenEnv(t, func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RevocationDelay = "10h", "1h" })
	for i := range objects {
		g.create(g.generated(fmt.Sprintf("db-%d", i)))
	}
	for i := range objects {
		g.wantDelivered(fmt.Sprintf("db-%d", i))
	}
	g.backend.Inject(fake.Fault{Latency: 2 * time.Millisecond})
	update(g.env, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
	for i := range objects {
		g.wantUser(fmt.Sprintf("db-%d", i), "rotated", func(u string) bool { return strings.HasPrefix(u, "v") })
	}
	g.eventually(func() string {
		for _, p := range g.parts() {
			if rec, _ := handoff.Of(p.Annotations); len(rec.Retired) != 1 || rec.Retired[0].Release.IsZero() {
				return "the time of a revocation is not noted"
			}
		}
		return ""
	})
	if n := g.backend.Count(fake.CallCleanup); n > 0 || len(g.backend.Live()) != 2*objects {
		t.Errorf("%d credentials were revoked, %d live, want none and %d", n, len(g.backend.Live()), 2*objects)
	}
}

// TestImmutableComesBack deletes an immutable Secret, as somebody does who wants it made anew, after a refresh was
// asked for.
func TestImmutableComesBack(t *testing.T) {
	g := newGenEnv(t)
	user := g.made("db", func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true })
	g.wantDelivered("db")
	update(g.env, g.get("db"), request("1"))
	g.delete(g.secret("db"))
	g.wantUser("db", "it comes back as it was", func(u string) bool { return u == user })
}

// TestSourceOfTheSameName reads a remote secret whose key is what the status calls the values of the generator.
func TestSourceOfTheSameName(t *testing.T) {
	g := newGenEnv(t, func(o *fakev1.FakeGenerator) { o.Spec.RotationInterval = "10m" })
	g.server.Backend("main").Put("FakeGenerator/gen", []byte("x"))
	user := g.made("db", func(es *v1alpha1.ExternalSecret) {
		plain := g.externalSecret("db").Spec
		es.Spec.StoreRef, es.Spec.Data = plain.StoreRef, plain.Data
		es.Spec.Data[0].RemoteRef.Key = "FakeGenerator/gen"
	})
	g.eventually(func() string {
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
	g.gate.close(func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
			reads.Add(1)
		}
		return false
	})
	p := g.parts()[0]
	g.delete(&p)
	start := time.Now()
	g.eventually(func() string {
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
	remote := g.server.Backend("main")
	g.create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }))
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	first := string(must(remote.Value("db-db")))
	update(g.env, g.getPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	update(g.env, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
	g.eventually(func() string {
		if got := g.getPush("db").Status.Stores[0].ObservedRefreshRequest; got != "1" {
			return "the request was not served"
		}
		return ""
	})
	g.caughtUp()
	g.wantRemote(remote, "db-db", first)
	g.wantLive(first)
}

// TestPushRotationIsNoFailure asks for another value of a generator that takes its time.
func TestPushRotationIsNoFailure(t *testing.T) {
	g := newGenEnv(t)
	g.create(g.generatedPush("db"))
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	g.ahead.Add(int64(time.Minute))
	release := g.backend.Inject(fake.Fault{Call: fake.CallGenerate, Hang: true})
	update(g.env, g.getPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	g.eventually(func() string {
		if n := g.backend.Count(fake.CallGenerate); n < 2 {
			return "no other value is made"
		}
		return ""
	})
	// Another object of the same loop is in step after it.
	g.source("source", map[string]string{"password": "x"})
	g.create(g.pushSecret("control"))
	g.wantPushed("control", v1alpha1.ReasonSecretSynced)
	if c := meta.FindStatusCondition(g.getPush("db").Status.Conditions, v1alpha1.ConditionReady); c.Status == metav1.ConditionFalse {
		t.Errorf("Ready is False while another value is made: %s", c.Message)
	}
	release()
	g.wantRemote(g.server.Backend("main"), "db-db", "u000002")
}

// TestEndsWhileKeeping has the operator end between making a credential and keeping it.
func TestEndsWhileKeeping(t *testing.T) {
	g := newGenEnv(t, leased)
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	open := g.gate.close(func(r *http.Request) bool {
		if r.Method == http.MethodPost && writesOf(true)(r) {
			entered <- struct{}{}
			<-leave
		}
		return false
	})
	g.create(g.generated("db"))
	<-entered
	ended := make(chan struct{})
	go func() { defer close(ended); g.stop() }()
	close(leave)
	<-ended
	open()
	g.startBy(&g.ahead)
	user := g.wantUser("db", "it arrives", func(u string) bool { return u != "" })
	g.wantLive(user)
	if diff := cmp.Diff(1, g.backend.Count(fake.CallGenerate)); diff != "" {
		t.Errorf("credentials that were made: -want, +got:\n%s", diff)
	}
}
