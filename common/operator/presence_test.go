package operator_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

const memberAnnotation, presenceLabel = "direct-secrets.io/member", "direct-secrets.io/presence"

// quickly is a timing in which a module that stops is missing after five seconds.
var quickly = presence.Timing{
	Renew: 200 * time.Millisecond, Duration: 4 * time.Second, Settle: 500 * time.Millisecond, Rollout: time.Second,
	Shared: 2 * time.Second, SharedDeadline: 1500 * time.Millisecond, SharedRetry: 200 * time.Millisecond,
}

// crowd is an environment of several modules that know of each other.
type crowd struct {
	*env
	leases client.Client
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	e := newIdleEnv(t)
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	leases, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	e.create(&fakev1.FakeGenerator{ObjectMeta: e.meta("gen"), Spec: fakev1.FakeGeneratorSpec{Backend: "main", Prefix: "u"}})
	e.source("source", map[string]string{"password": "p"})
	e.backend.Put("db", []byte("s3cret"))
	return &crowd{env: e, leases: leases}
}

// module runs a module until the function that it returns is called, or the test ends.
func (c *crowd) module(name string, kinds []provider.Kind, more ...operator.Option) (stop func()) {
	c.Helper()
	opts := slices.Concat([]operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(c.config),
		operator.WithPresence(quickly),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect = "0", "0", false
			f.Namespaces, f.PresenceNamespace, f.LogFormat = c.ns, c.ns, "text"
			f.ProviderTimeout = 5 * time.Second
			f.Modules = presence.Catalog{{Group: "vault." + v1alpha1.Group, Kind: "VaultKV"}: "provider-vault"}
		}),
	}, withKinds(kinds...), more)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.New(name, name+"."+v1alpha1.Group, opts...).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Errorf("%s: %v", name, err)
		}
	})
	c.Cleanup(stop)
	return stop
}

func (c *crowd) stores(more ...operator.Option) (stop func()) {
	return c.module("provider-fake", c.server.Kinds(), more...)
}

func (c *crowd) generators(more ...operator.Option) (stop func()) {
	return c.module("generator-fake", c.server.GeneratorKinds(), more...)
}

// lease reads a Lease of the namespace that holds those of presence.
func (c *crowd) lease(name string) *coordinationv1.Lease {
	c.Helper()
	l := &coordinationv1.Lease{}
	if err := c.leases.Get(c.ctx, client.ObjectKey{Namespace: c.ns, Name: name}, l); client.IgnoreNotFound(err) != nil {
		c.Fatal(err)
	}
	return l
}

// tells waits until a Lease of presence tells something.
func (c *crowd) tells(name, want string) {
	c.Helper()
	c.eventually(func() string {
		if got := c.member(name).Annotations[memberAnnotation]; !strings.Contains(got, want) {
			return fmt.Sprintf("%s tells %q, want %q", name, got, want)
		}
		return ""
	})
}

// member returns the Lease of the module of a name that serves this namespace only.
func (c *crowd) member(name string) *coordinationv1.Lease {
	c.Helper()
	var list coordinationv1.LeaseList
	if err := c.leases.List(c.ctx, &list, client.InNamespace(c.ns), client.MatchingLabels{presenceLabel: "true"}); err != nil {
		c.Fatal(err)
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, name+".") {
			return &list.Items[i]
		}
	}
	return &coordinationv1.Lease{}
}

// conditionsOf returns conditions in order, without their times.
func conditionsOf(conditions []metav1.Condition) []metav1.Condition {
	out := slices.Clone(conditions)
	for i := range out {
		out[i].LastTransitionTime = metav1.Time{}
	}
	slices.SortFunc(out, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

const noFakeStore = "no running module serves FakeStore; correct the kind, or install the module that brings it"

func TestProviderNotRunning(t *testing.T) {
	c := newCrowd(t)
	c.generators()
	begun := time.Now()
	c.create(c.externalSecret("db"))
	c.create(c.pushSecret("push"))
	c.create(c.externalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.create(c.externalSecret("vault", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterVaultKV" }))
	c.create(c.externalSecret("late", func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }))

	c.wantReady("db", v1alpha1.ReasonProviderNotRunning)
	if took := time.Since(begun); took < quickly.Settle {
		t.Errorf("it was said after %s, which is before a module may have come", took)
	}
	want := []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonProviderNotRunning, Message: noFakeStore, ObservedGeneration: 1},
		{Type: "Stalled", Status: "True", Reason: v1alpha1.ReasonProviderNotRunning, Message: noFakeStore, ObservedGeneration: 1},
	}
	es := c.get("db")
	if diff := cmp.Diff(want, conditionsOf(es.Status.Conditions)); diff != "" {
		t.Errorf("conditions: -want, +got:\n%s", diff)
	}
	if es.Status.ObservedGeneration != 0 {
		t.Errorf("observedGeneration is %d, though nobody has looked at the spec", es.Status.ObservedGeneration)
	}
	if got := c.wantPushed("push", v1alpha1.ReasonProviderNotRunning); got != noFakeStore {
		t.Errorf("of the PushSecret it says %q", got)
	}
	for name, want := range map[string]string{
		"typo":  "no running module serves AwsSecretsManager; correct the kind, or install the module that brings it",
		"vault": "no running module serves ClusterVaultKV; set provider-vault.enabled=true in the chart",
	} {
		if got := c.wantReady(name, v1alpha1.ReasonProviderNotRunning).Message; got != want {
			t.Errorf("%s: message is %q, want %q", name, got, want)
		}
	}
	if got := c.get("late").Status.Conditions; len(got) > 0 {
		t.Errorf("a suspended object has conditions %v", got)
	}
	update(c.env, c.get("late"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false })
	c.wantReady("late", v1alpha1.ReasonProviderNotRunning)
	versions := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"db", "typo", "vault"} {
			out[name] = c.get(name).ResourceVersion
		}
		return out
	}
	said := versions()
	another := c.module("another", nil) // Whoever comes, all objects are looked at again.
	c.tells("another", `"another"`)
	c.create(c.externalSecret("after"))
	c.wantReady("after", v1alpha1.ReasonProviderNotRunning)
	if diff := cmp.Diff(said, versions()); diff != "" {
		t.Errorf("what says it already was written again: -before, +after:\n%s", diff)
	}
	another()

	c.stores()
	c.wantReady("db", v1alpha1.ReasonSecretSynced)
	c.wantSecret("db", "value", "s3cret")
	if got := c.wantPushed("push", v1alpha1.ReasonSecretSynced); got != "all stores are in step" {
		t.Errorf("of the PushSecret it says %q", got)
	}
	want = []metav1.Condition{{Type: "Ready", Status: "True", Reason: v1alpha1.ReasonSecretSynced, Message: "the Secret is in step", ObservedGeneration: 1}}
	if diff := cmp.Diff(want, conditionsOf(c.get("db").Status.Conditions)); diff != "" {
		t.Errorf("conditions once the module runs: -want, +got:\n%s", diff)
	}
	if got := len(c.getPush("push").Status.Conditions); got != 1 {
		t.Errorf("the PushSecret has %d conditions, want Ready only", got)
	}
	c.wantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestModuleGone stops a module, and looks at what is said of objects that it has served.
func TestModuleGone(t *testing.T) {
	c := newCrowd(t)
	c.generators()
	stop := c.stores()
	interval := func(d string) spec {
		return func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = v1alpha1.Duration(d) }
	}
	cases := map[string]struct {
		reason string
		spec   spec
		// change is made after the module has stopped.
		change spec
		want   string
	}{
		"hourly":    {reason: "what is not due is in step", spec: interval("1h"), want: v1alpha1.ReasonSecretSynced},
		"once":      {reason: "so is what is never due", spec: func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }, want: v1alpha1.ReasonSecretSynced},
		"due":       {reason: "what is due is not", spec: interval("5s"), want: v1alpha1.ReasonProviderNotRunning},
		"changed":   {reason: "a change is not served", spec: interval("1h"), change: fills("other", "db"), want: v1alpha1.ReasonProviderNotRunning},
		"requested": {reason: "nor is a request", spec: interval("1h"), change: request("now"), want: v1alpha1.ReasonProviderNotRunning},
		"suspended": {reason: "who asked for nothing misses nothing", spec: interval("1h"), change: func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }, want: v1alpha1.ReasonSecretSynced},
		"labelled":  {reason: "a change of other things matters to nobody", spec: interval("1h"), change: func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} }, want: v1alpha1.ReasonSecretSynced},
	}
	for name, tc := range cases {
		c.create(c.externalSecret(name, fills("value", "db"), tc.spec))
	}
	c.create(c.pushSecret("hourly"))
	c.create(c.pushSecret("changed"))
	for name := range cases {
		c.wantReady(name, v1alpha1.ReasonSecretSynced)
	}
	c.wantPushed("hourly", v1alpha1.ReasonSecretSynced)
	c.wantPushed("changed", v1alpha1.ReasonSecretSynced)
	stop()
	stopped := time.Now()
	for name, tc := range cases {
		if tc.change != nil {
			update(c.env, c.get(name), tc.change)
		}
	}
	update(c.env, c.getPush("changed"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })

	c.create(c.externalSecret("new", fills("value", "db")))
	c.wantReady("new", v1alpha1.ReasonProviderNotRunning)
	if took := time.Since(stopped); took < quickly.Duration-2*quickly.Renew {
		t.Errorf("it was said %s after the module had stopped; a Lease counts for %s", took, quickly.Duration)
	}
	c.wantPushed("changed", v1alpha1.ReasonProviderNotRunning)
	for name, tc := range cases {
		c.eventually(func() string {
			got := meta.FindStatusCondition(c.get(name).Status.Conditions, v1alpha1.ConditionReady)
			if got.Reason != tc.want {
				return fmt.Sprintf("%s: %s: Ready is %s, want %s", name, tc.reason, got.Reason, tc.want)
			}
			return ""
		})
	}
	if got := c.getPush("hourly").Status.Conditions[0].Reason; got != v1alpha1.ReasonSecretSynced {
		t.Errorf("the PushSecret that is in step has %s", got)
	}

	c.stores()
	for name := range cases {
		if name != "suspended" {
			c.wantReady(name, v1alpha1.ReasonSecretSynced)
		}
	}
	c.wantReady("suspended", v1alpha1.ReasonSuspended)
	c.wantReady("new", v1alpha1.ReasonSecretSynced)
	c.wantPushed("changed", v1alpha1.ReasonSecretSynced)
	for name, tc := range cases {
		spoken := slices.Contains(c.eventsOf(name), v1alpha1.ReasonProviderNotRunning)
		if spoken != (tc.want == v1alpha1.ReasonProviderNotRunning) {
			t.Errorf("%s: %s: there is an event: %t", name, tc.reason, spoken)
		}
	}
}

// TestModuleRestarts checks that a module which is back soon was never called missing.
func TestModuleRestarts(t *testing.T) {
	c := newCrowd(t)
	c.generators()
	stop := c.stores()
	c.create(c.externalSecret("db"))
	c.wantReady("db", v1alpha1.ReasonSecretSynced)
	for i := range 3 {
		stop()
		name := fmt.Sprintf("db%d", i)
		c.create(c.externalSecret(name, fills("value", "db")))
		update(c.env, c.get("db"), request(name))
		stop = c.stores()
		c.wantReady(name, v1alpha1.ReasonSecretSynced)
	}
	for _, name := range []string{"db", "db0", "db1", "db2"} {
		if got := c.eventsOf(name); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
			t.Errorf("%s has events %v", name, got)
		}
	}
}

// TestLeasesRefused runs a module that can neither read nor write Leases for a while.
func TestLeasesRefused(t *testing.T) {
	c := newCrowd(t)
	var g gate
	open := g.close(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") })
	c.config = rest.CopyConfig(config)
	c.config.Wrap(g.wrap)
	c.stores()
	c.create(c.externalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.create(c.externalSecret("db"))
	c.wantReady("db", v1alpha1.ReasonSecretSynced)
	c.eventually(func() string {
		if n := g.hits.Load(); n < 20 {
			return fmt.Sprintf("%d requests for Leases were refused", n)
		}
		return ""
	})
	if got := c.get("typo").Status.Conditions; len(got) > 0 {
		t.Errorf("who sees nobody says of somebody that he is missing: %v", got)
	}
	open()
	c.wantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestDamagedLease spoils what modules tell of themselves.
func TestDamagedLease(t *testing.T) {
	c := newCrowd(t)
	c.generators()
	c.stores()
	c.create(&fakev1.FakeStore{ObjectMeta: c.meta("other"), Spec: fakev1.FakeStoreSpec{Backend: "main"}})
	odd := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.ns, Name: "odd", Labels: map[string]string{presenceLabel: "true"},
		Annotations: map[string]string{memberAnnotation: `{"kinds": "AwsSecretsManager"}`},
	}}
	if err := c.leases.Create(c.ctx, odd); err != nil {
		t.Fatal(err)
	}
	c.tells("provider-fake", `"FakeStore"`)
	cases := map[string]struct {
		reason string
		damage func(*coordinationv1.Lease)
	}{
		"annotation": {"what it tells is told again", func(l *coordinationv1.Lease) { l.Annotations[memberAnnotation] = `{"module":"x",` }},
		"gone":       {"also where nothing is left of it", func(l *coordinationv1.Lease) { l.Annotations = nil }},
		"lies":       {"and where it says something else", func(l *coordinationv1.Lease) { l.Annotations[memberAnnotation] = `{"module":"x","name":"y"}` }},
		"label":      {"without its label nobody sees it", func(l *coordinationv1.Lease) { l.Labels = nil }},
		"spec":       {"its spec is written anew", func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} }},
	}
	wanted := c.member("provider-fake").Annotations[memberAnnotation]
	name := c.member("provider-fake").Name
	for which, tc := range cases {
		for {
			l := c.lease(name)
			tc.damage(l)
			if c.leases.Update(c.ctx, l) == nil {
				break // Otherwise it was renewed meanwhile.
			}
		}
		c.eventually(func() string {
			l := c.lease(name)
			if l.Annotations[memberAnnotation] != wanted || l.Labels[presenceLabel] != "true" || l.Spec.RenewTime == nil {
				return tc.reason + ": the Lease is not mended"
			}
			return ""
		})
		c.create(c.externalSecret(which, fills("value", "db")))
		c.wantReady(which, v1alpha1.ReasonSecretSynced)
		if got := c.eventsOf(which); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
			t.Errorf("%s: it has events %v", which, got)
		}
	}
	if err := c.leases.Delete(c.ctx, c.lease(name)); err != nil {
		t.Fatal(err)
	}
	c.tells("provider-fake", `"FakeStore"`)
	c.create(c.externalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.wantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestSharedDuties stops the module that speaks for objects of others, and waits for the next one to speak.
func TestSharedDuties(t *testing.T) {
	c := newCrowd(t)
	running := map[string]func(){"provider-fake": c.stores(), "generator-fake": c.generators()}
	holder := func() (name string) {
		c.eventually(func() string {
			var list coordinationv1.LeaseList
			if err := c.leases.List(c.ctx, &list, client.InNamespace(c.ns)); err != nil {
				return err.Error()
			}
			for i := range list.Items {
				l := &list.Items[i]
				if !strings.HasPrefix(l.Name, "shared-duties.") || l.Spec.HolderIdentity == nil {
					continue
				}
				for name = range running {
					if h := c.member(name).Spec.HolderIdentity; h != nil && *h == *l.Spec.HolderIdentity {
						return ""
					}
				}
			}
			return "no module that runs holds the shared duties"
		})
		return name
	}
	unserved := func(name string) {
		c.create(c.externalSecret(name, func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "VaultKV" }))
		c.wantReady(name, v1alpha1.ReasonProviderNotRunning)
	}
	first := holder()
	unserved("first")
	sum := sha256.Sum256([]byte(c.ns))
	lease := fmt.Sprintf("%s/shared-duties.%x.direct-secrets.io", c.ns, sum[:6])
	if got := gauge(t, "directsecrets_shared_duties", lease); got != 1 {
		t.Errorf("directsecrets_shared_duties of %s is %v while the duties are held", lease, got)
	}
	running[first]()
	delete(running, first)
	if second := holder(); second == first {
		t.Fatalf("%s holds the duties after it has stopped", second)
	}
	unserved("second")
	said := c.get("first").ResourceVersion
	running[first] = map[string]func(...operator.Option) func(){"provider-fake": c.stores, "generator-fake": c.generators}[first]()
	unserved("third")
	if got := c.get("first").ResourceVersion; got != said {
		t.Error("the next one has written again what was said")
	}
}

// TestSharedDutiesOfTheDead starts where somebody who is no more holds the shared duties: who comes to hold them
// speaks for the objects that were there before.
func TestSharedDutiesOfTheDead(t *testing.T) {
	c := newCrowd(t)
	sum := sha256.Sum256([]byte(c.ns))
	dead, now := "dead", metav1.NowMicro()
	seconds := int32(quickly.Shared / time.Second)
	duties := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: fmt.Sprintf("shared-duties.%x.direct-secrets.io", sum[:6])},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &dead, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now},
	}
	if err := c.leases.Create(c.ctx, duties); err != nil {
		t.Fatal(err)
	}
	c.create(c.externalSecret("db"))
	c.generators()
	c.wantReady("db", v1alpha1.ReasonProviderNotRunning)
	if err := c.leases.Get(c.ctx, client.ObjectKeyFromObject(duties), duties); err != nil {
		t.Fatal(err)
	}
	if *duties.Spec.HolderIdentity == dead {
		t.Error("somebody has spoken who does not hold the shared duties")
	}
}

// gauge returns the value of the series of a metric that has a label of a value.
func gauge(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					return m.GetGauge().GetValue()
				}
			}
		}
	}
	t.Fatalf("there is no metric %s of %s", name, label)
	return 0
}

// TestNamespacesOfMembers runs a module of stores beside one of generators, which serve different namespaces.
func TestNamespacesOfMembers(t *testing.T) {
	c := newCrowd(t)
	elsewhere := newSerialEnv(t)
	elsewhere.backend = c.backend
	elsewhere.create(elsewhere.store("s", "main"))
	both := func(f *operator.Flags) { f.Namespaces = c.ns + "," + elsewhere.ns }
	only := func(f *operator.Flags) { f.Namespaces = elsewhere.ns }
	c.generators(operator.WithFlags(both))
	c.stores(operator.WithFlags(only))

	c.create(c.externalSecret("db"))
	elsewhere.create(elsewhere.externalSecret("db"))
	elsewhere.wantReady("db", v1alpha1.ReasonSecretSynced)
	if got := c.wantReady("db", v1alpha1.ReasonProviderNotRunning).Message; got != noFakeStore {
		t.Errorf("message is %q", got)
	}
	// A module with chosen namespaces says by itself that it serves no cluster Kind, and nobody contradicts.
	elsewhere.create(elsewhere.externalSecret("cluster", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterFakeStore" }))
	elsewhere.create(elsewhere.externalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	elsewhere.wantReady("typo", v1alpha1.ReasonProviderNotRunning)
	elsewhere.wantReady("cluster", v1alpha1.ReasonForbidden)
	if got := elsewhere.eventsOf("cluster"); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
		t.Errorf("the object of the cluster Kind has events %v", got)
	}
}

// TestReplicas runs two replicas of different versions: what their Lease tells is what the leader tells, and it
// is renewed by both.
func TestReplicas(t *testing.T) {
	c := newCrowd(t)
	elect := func(f *operator.Flags) { f.LeaderElect, f.LeaderElectNamespace = true, c.ns }
	older := c.stores(operator.WithFlags(elect), operator.WithVersion("v0.1.0"))
	c.tells("provider-fake", `"version":"v0.1.0"`)
	leader := func() string {
		if h := c.lease("provider-fake." + v1alpha1.Group).Spec.HolderIdentity; h != nil {
			return *h
		}
		return ""
	}
	c.eventually(func() string {
		if leader() == "" {
			return "nobody leads"
		}
		return ""
	})
	c.stores(operator.WithFlags(elect), operator.WithVersion("v0.2.0"))
	holders := map[string]bool{}
	c.eventually(func() string {
		l := c.member("provider-fake")
		if got := l.Annotations[memberAnnotation]; !strings.Contains(got, `"v0.1.0"`) {
			t.Errorf("a replica that does not lead tells %s", got)
		}
		if holders[*l.Spec.HolderIdentity] = true; len(holders) < 2 {
			return "one replica alone has renewed the Lease"
		}
		return ""
	})
	begun, name := time.Now(), c.member("provider-fake").Name
	const renewals = 20
	c.eventually(func() string {
		log, err := cluster.ReadAuditLog(begun)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range log {
			if e.IsWrite() && e.ObjectRef.Resource == "leases" && e.ObjectRef.Namespace == c.ns && e.ObjectRef.Name == name {
				n++
			}
		}
		if n < renewals {
			return fmt.Sprintf("the Lease was renewed %d times", n)
		}
		return ""
	})
	if took := time.Since(begun); took < renewals*quickly.Renew*7/10 {
		t.Errorf("%d renewals took %s: what one replica has renewed another has renewed again", renewals, took)
	}
	older()
	c.tells("provider-fake", `"version":"v0.2.0"`)
}
