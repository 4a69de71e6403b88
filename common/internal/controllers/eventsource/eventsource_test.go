package eventsource_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// newEnv has the event source "events" over the queue of the store "store".
func newEnv(t *testing.T) *testenv.Env { return observe(testenv.NewServed(t)) }

// newOwnEnv is newEnv for a test that stops its operator or sets flags.
func newOwnEnv(t *testing.T, flags ...func(*operator.Flags)) *testenv.Env {
	return observe(testenv.New(t, flags...))
}

func observe(e *testenv.Env) *testenv.Env {
	e.Create(source(e, "events"))
	return e
}

func source(e *testenv.Env, name string) *fakev1.FakeEventSource {
	return &fakev1.FakeEventSource{ObjectMeta: e.Meta(name), Spec: fakev1.FakeEventSourceSpec{Backend: e.BackendName("main")}}
}

// seldom makes an object rely on events.
func seldom(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "24h" }

// wantEmpty waits until all messages of a queue were acknowledged.
func wantEmpty(e *testenv.Env, q *fake.Queue) {
	e.Helper()
	e.Eventually(func() string {
		if n := q.Left(); n > 0 {
			return fmt.Sprintf("%d messages are left", n)
		}
		return ""
	})
}

// TestRefreshes changes a secret, and sends an event about it.
func TestRefreshes(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("x", []byte(`{}`))
	find := func(path string) testenv.Spec {
		return func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data = nil
			es.Spec.DataFrom = []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Path: path}}}
		}
	}
	cases := map[string]struct {
		reason string
		change testenv.Spec
		event  provider.Event
		// reads is the number of reads after the event.
		reads int
	}{
		"named":      {"An object that reads the secret is refreshed.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"named"}}, 1},
		"other-name": {"A secret can have several names.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"id-1", "other-name"}}, 1},
		"place":      {"The event is about this store.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"place"}, Place: "store"}, 1},
		"extract": {"A whole secret counts like a property.", func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data, es.Spec.DataFrom = nil, []v1alpha1.DataFromEntry{{Extract: &v1alpha1.RemoteRef{Key: "extract"}}}
		}, provider.Event{Names: []string{"extract"}}, 1},
		"found":           {"A search that the secret matches counts.", find("found"), provider.Event{Names: []string{"found"}}, 1},
		"not-found":       {"A search for other secrets does not.", find("x"), provider.Event{Names: []string{"not-found"}}, 0},
		"other-secret":    {"An event about another secret costs nothing.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"other"}}, 0},
		"other-place":     {"An event about another store costs nothing.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"other-place"}, Place: "elsewhere"}, 0},
		"other-kind":      {"An event about another service costs nothing.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Kind: "VaultKV", Names: []string{"other-kind"}}, 0},
		"unnamed":         {"An event without a name costs nothing.", func(*v1alpha1.ExternalSecret) {}, provider.Event{}, 0},
		"current-version": {"A version that the object has already costs nothing.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"current-version"}, Version: "first"}, 0},
		"old-version":     {"Which version is newer is not known, so another one is read.", func(*v1alpha1.ExternalSecret) {}, provider.Event{Names: []string{"old-version"}, Version: "older"}, 1},
		"on-change":       {"The object is refreshed only when it changes.", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange }, provider.Event{Names: []string{"on-change"}}, 0},
		"created-once":    {"The object is refreshed only once.", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }, provider.Event{Names: []string{"created-once"}}, 0},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		e.Backend.Put(name, []byte(`{"password":"old"}`), fake.Version("first"))
		e.Create(e.ExternalSecret(name, seldom, tc.change))
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
		if tc.event.Version == "" {
			e.Backend.Put(name, []byte(`{"password":"new"}`))
		}
		if tc.event.Kind == "" {
			tc.event.Kind = "FakeStore"
		}
		reads := func() string {
			e.Backend.Reset()
			e.Backend.Queue.Send(provider.Message{Events: []provider.Event{tc.event}})
			wantEmpty(e, &e.Backend.Queue)
			return cmp.Diff(tc.reads, e.Backend.Reads())
		}
		if name == "current-version" { // The cache of the operator can lag behind its own status.
			e.Eventually(reads)
		} else if diff := reads(); diff != "" {
			t.Errorf("%s: %s\nreads, when the message is acknowledged: -want, +got:\n%s", name, tc.reason, diff)
		}
		want := map[int]string{0: "old", 1: "new"}[tc.reads]
		if tc.event.Version != "" {
			want = "old"
		}
		for _, v := range e.Data(name) {
			if v != want && v != fmt.Sprintf(`{"password":%q}`, want) && name != "not-found" {
				t.Errorf("%s: %s\nthe Secret has %q, want %q", name, tc.reason, v, want)
			}
		}
	}
}

// TestNamespaces sends an event about a secret that objects of two namespaces read from stores of the same name.
func TestNamespaces(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	spread(e)
	// Each event source has a queue of its own: one that is deleted can receive messages a moment longer.
	queueOf := func(kind string) string { return e.Name + "-" + kind }
	cases := []struct {
		reason string
		queue  string
		source provider.EventSourceObject
		want   map[string]string
	}{
		{
			"A namespaced event source reaches its own namespace, whatever store its objects use.", queueOf("own"),
			&fakev1.FakeEventSource{ObjectMeta: e.In("own").Meta("events"), Spec: fakev1.FakeEventSourceSpec{Backend: queueOf("own")}},
			map[string]string{"own": "first first", "admitted": "old old", "refused": "old old"},
		},
		{
			"A cluster event source reaches the namespaces that its conditions admit.", queueOf("cluster"),
			&fakev1.ClusterFakeEventSource{ObjectMeta: metav1.ObjectMeta{Name: e.Name}, Spec: fakev1.ClusterFakeEventSourceSpec{
				FakeEventSourceSpec: fakev1.FakeEventSourceSpec{Backend: queueOf("cluster")},
				ClusterEventSourceSpec: v1alpha1.ClusterEventSourceSpec{Conditions: []v1alpha1.NamespaceCondition{
					{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"class": "admitted"}}},
				}},
			}},
			map[string]string{"own": "first first", "admitted": "second second", "refused": "old old"},
		},
	}
	for i, tc := range cases {
		e.Create(tc.source)
		e.Backend.Put(e.Name, []byte([]string{"first", "second"}[i]))
		queue := &e.Server.Backend(tc.queue).Queue
		queue.Changed("", e.Name)
		e.Eventually(func() string {
			if n := queue.Left(); n > 0 {
				return fmt.Sprintf("%d messages are left", n)
			}
			return ""
		})
		if diff := cmp.Diff(tc.want, values(e)); diff != "" {
			t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
		}
		e.Delete(tc.source)
	}
}

// spread creates, in three namespaces, an object for a cluster store and one for a store of the namespace. They read the secret with
// the name of the test: other tests have event sources that reach the same namespaces.
func spread(e *testenv.ClusterEnv) {
	e.Helper()
	e.Backend.Put(e.Name, []byte("old"))
	for _, ns := range namespaces {
		e.CreateNamespace(ns, map[string]string{"class": ns})
		e.In(ns).Create(&fakev1.FakeStore{ObjectMeta: e.In(ns).Meta("store"), Spec: fakev1.FakeStoreSpec{Backend: e.Name}})
		e.CreateExternalSecret(ns, e.Name, seldom)
		e.In(ns).Create(&v1alpha1.ExternalSecret{ObjectMeta: e.In(ns).Meta("own"), Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}, RefreshInterval: "24h",
			Data: []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: e.Name}}},
		}})
		e.In(ns).WantReady("db", v1alpha1.ReasonSecretSynced)
		e.In(ns).WantReady("own", v1alpha1.ReasonSecretSynced)
	}
}

var namespaces = []string{"own", "admitted", "refused"}

// values returns the values of both objects in each namespace.
func values(e *testenv.ClusterEnv) map[string]string {
	e.Helper()
	got := map[string]string{}
	for _, ns := range namespaces {
		got[ns] = e.In(ns).Data("db")["value"] + " " + e.In(ns).Data("own")["value"]
	}
	return got
}

// TestBurst sends many events about one secret at once.
func TestBurst(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("old"))
	for i := range 10 {
		e.Create(e.ExternalSecret(fmt.Sprintf("db-%d", i), seldom, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = "db" }))
	}
	for i := range 10 {
		e.WantReady(fmt.Sprintf("db-%d", i), v1alpha1.ReasonSecretSynced)
	}
	e.Backend.Reset()
	start := time.Now()
	for i := range 100 {
		e.Backend.Put("db", fmt.Appendf(nil, "new-%02d", i))
		e.Backend.Queue.Changed("", "db")
	}
	wantEmpty(e, &e.Backend.Queue)
	for i := range 10 {
		e.WantSecret(fmt.Sprintf("db-%d", i), "value", "new-99")
	}
	// The first event is one read, and those of each following second are one. A busy machine takes longer to receive them.
	if n, most := e.Backend.ReadsOf("db"), 2+int(time.Since(start)/time.Second); n > most {
		t.Errorf("100 events about one secret are %d reads, want at most %d", n, most)
	}
}

// TestDelivery checks when a message is acknowledged.
func TestDelivery(t *testing.T) {
	t.Parallel()
	t.Run("Failed", func(t *testing.T) {
		e := newEnv(t)
		e.Backend.Put("db", []byte("old"))
		e.Create(e.ExternalSecret("db", seldom))
		e.WantReady("db", v1alpha1.ReasonSecretSynced)
		end := e.Backend.Inject(fake.Fault{Call: fake.CallGet, Err: provider.NewError(provider.Throttled, "slow down")})
		defer e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Err: provider.NewError(provider.Throttled, "slow down")})()
		e.Backend.Put("db", []byte("new"))
		e.Backend.Queue.Changed("", "db")
		wantEmpty(e, &e.Backend.Queue)
		if c := e.Get("db").Status.Conditions; c[0].Reason != v1alpha1.ReasonSecretSyncedError {
			t.Errorf("the message is acknowledged while the status shows %+v", c)
		}
		end()
		e.Backend.ClearFaults()
		e.WantSecret("db", "value", "new")
	})
	t.Run("Stopped", func(t *testing.T) {
		e := newOwnEnv(t)
		e.Backend.Queue.Hold = time.Second
		e.Backend.Put("db", []byte("old"))
		e.Create(e.ExternalSecret("db", seldom))
		e.WantReady("db", v1alpha1.ReasonSecretSynced)
		reads := e.Backend.Reads()
		open := e.Backend.Inject(fake.Fault{Call: fake.CallGet, Hang: true})
		openBatch := e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Hang: true})
		e.Backend.Put("db", []byte("new"))
		e.Backend.Queue.Changed("", "db")
		e.Eventually(func() string {
			if e.Backend.Reads() == reads {
				return "nothing is read"
			}
			return ""
		})
		e.Stop()
		open()
		openBatch()
		if n := e.Backend.Queue.Left(); n != 1 {
			t.Errorf("%d messages are left while the Secret is not written", n)
		}
		e.Start()
		wantEmpty(e, &e.Backend.Queue)
		e.WantSecret("db", "value", "new")
	})
}

// TestQueueFails sends messages that are no events. Then the queue refuses to deliver.
func TestQueueFails(t *testing.T) {
	e := newEnv(t)
	for range 3 {
		e.Backend.Queue.Send(provider.Message{Malformed: "it is not JSON"})
	}
	wantEmpty(e, &e.Backend.Queue)
	e.Eventually(func() string {
		s := source(e, "events")
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		return cmp.Diff([]int64{3, 0, 3}, []int64{s.Status.ReceivedEvents.ReceivedEvents, s.Status.MatchedEvents, s.Status.MalformedEvents})
	})
	e.Want(source(e, "events"), v1alpha1.ReasonStoreValid)
	e.Backend.Queue.Refuse(provider.NewError(provider.Denied, "receiving messages: access denied; grant sqs:ReceiveMessage"))
	c := e.Want(source(e, "events"), v1alpha1.ReasonStoreAuthFailed)
	if diff := cmp.Diff("receiving messages: access denied; grant sqs:ReceiveMessage", c.Message); diff != "" {
		t.Errorf("the message of Ready: -want, +got:\n%s", diff)
	}
	e.Backend.Queue.Refuse(nil)
	e.Want(source(e, "events"), v1alpha1.ReasonStoreValid)

	// An event source is named where a store is needed.
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef = &v1alpha1.StoreRef{Kind: "FakeEventSource", Name: "events"}
	}))
	e.Eventually(func() string { return cmp.Diff("False InvalidSpec", e.Ready(e.Get("db"))) })
}

// TestNoRemoteChanges receives nothing, because that changes the queue.
func TestNoRemoteChanges(t *testing.T) {
	e := newOwnEnv(t, func(f *operator.Flags) { f.NoRemoteChanges = true })
	e.Backend.Put("db", []byte("old"))
	e.Create(e.ExternalSecret("db", seldom))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Queue.Changed("", "db")
	c := e.Want(source(e, "events"), v1alpha1.ReasonStoreValid)
	if want := "the spec is valid; the operator runs with --no-remote-changes, so it receives no messages"; c.Message != want {
		t.Errorf("the message of Ready is %q, want %q", c.Message, want)
	}
	if n := e.Backend.Queue.Left(); n != 1 {
		t.Errorf("%d messages are left, want 1", n)
	}
}

// TestPushes sends an event about a secret that a PushSecret has written.
func TestPushes(t *testing.T) {
	e := newEnv(t)
	e.Source("source", map[string]string{"password": "ours"})
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.PushSecret)
		// edit changes the remote secret, and returns its version.
		edit func(b *fake.Backend) string
		want string
		// compared is true if the remote secret is read.
		compared bool
	}{
		"edited":        {"The value of another client is replaced.", func(*v1alpha1.PushSecret) {}, func(b *fake.Backend) string { return b.Put("edited", []byte("edited")) }, "ours", true},
		"unversioned":   {"Without a version, the secret is compared.", func(*v1alpha1.PushSecret) {}, func(*fake.Backend) string { return "" }, "ours", true},
		"echo":          {"The event of an own push costs nothing.", func(*v1alpha1.PushSecret) {}, func(b *fake.Backend) string { v := b.Versions("echo"); return v[len(v)-1] }, "ours", false},
		"if-not-exists": {"The value of another client stays.", func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }, func(b *fake.Backend) string { return b.Put("if-not-exists", []byte("edited")) }, "edited", false},
		"suspended":     {"The object is suspended.", func(ps *v1alpha1.PushSecret) { ps.Annotations = map[string]string{"suspend": "soon"} }, func(b *fake.Backend) string { return b.Put("suspended", []byte("edited")) }, "edited", false},
	}
	for name, tc := range cases {
		ps := e.PushSecret(name, tc.change, func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "24h" })
		e.Create(ps)
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		e.WantRemote(e.Backend, name, "ours")
		if ps.Annotations["suspend"] != "" {
			testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
			e.WantPushed(name, v1alpha1.ReasonSuspended)
		}
		version := tc.edit(e.Backend)
		e.Backend.Reset()
		e.Backend.Queue.Changed(version, name)
		wantEmpty(e, &e.Backend.Queue)
		if compared := e.Backend.Count(fake.CallObserve) > 0; compared != tc.compared {
			t.Errorf("%s: %s\ncompared: %t, want %t", name, tc.reason, compared, tc.compared)
		}
		e.WantRemote(e.Backend, name, tc.want)
	}
}

// TestSyncWindow sends an event while the sync windows of an object are closed. The message is acknowledged, and the secret is read
// when they open, also by the next process.
func TestSyncWindow(t *testing.T) {
	var ahead atomic.Int64
	e := testenv.NewIdle(t)
	start := func() { e.Start(testenv.Ahead(&ahead), operator.WithRandom(func() float64 { return 0 })) }
	start()
	e.Create(source(e, "events"))
	opens := time.Now().Add(6 * time.Hour).Truncate(time.Minute)
	e.Backend.Put("db", []byte("old"))
	e.Create(e.ExternalSecret("db", seldom, func(es *v1alpha1.ExternalSecret) { es.Spec.SyncWindows = testenv.Opens(opens) }))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Put("db", []byte("new"))
	e.Backend.Queue.Changed("", "db")
	wantEmpty(e, &e.Backend.Queue)
	if problem := testenv.SameTime(opens, e.Get("db").Status.NextWindowTime); problem != "" {
		t.Errorf("the message is acknowledged, but status.nextWindowTime does not show that a refresh waits: %s", problem)
	}
	if got := e.Data("db")["value"]; got != "old" {
		t.Errorf("the Secret has %q before the window", got)
	}
	e.Stop()
	ahead.Store(int64(time.Until(opens.Add(-2 * time.Second))))
	start()
	e.Eventually(func() string {
		if got := e.Data("db")["value"]; got != "new" {
			return fmt.Sprintf("the Secret has %q after the opening", got)
		}
		return testenv.SameTime(time.Time{}, e.Get("db").Status.NextWindowTime)
	})
}
