package operator_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// lease reads a Lease in the namespace of presence.
func lease(c *testenv.Crowd, name string) *coordinationv1.Lease {
	c.Helper()
	l := &coordinationv1.Lease{}
	if err := c.API.Get(c.Ctx, client.ObjectKey{Namespace: c.NS, Name: name}, l); client.IgnoreNotFound(err) != nil {
		c.Fatal(err)
	}
	return l
}

// TestLeasesRefused runs a module that temporarily can neither read nor write Leases.
func TestLeasesRefused(t *testing.T) {
	c := testenv.NewCrowd(t)
	var g testenv.Gate
	open := g.Close(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") })
	c.Config.Wrap(g.Wrap)
	c.Stores()
	c.Create(c.ExternalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.Create(c.ExternalSecret("db"))
	c.WantReady("db", v1alpha1.ReasonSecretSynced)
	c.Eventually(func() string {
		if n := g.Hits.Load(); n < 20 {
			return fmt.Sprintf("%d requests for Leases were refused", n)
		}
		return ""
	})
	if got := c.Get("typo").Status.Conditions; len(got) > 0 {
		t.Errorf("a module that cannot read Leases reports a missing module: %v", got)
	}
	open()
	c.WantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestDamagedLease changes the data of modules in their Leases.
func TestDamagedLease(t *testing.T) {
	c := testenv.NewCrowd(t)
	c.Generators()
	c.Stores()
	c.Create(&fakev1.FakeStore{ObjectMeta: c.Meta("other"), Spec: fakev1.FakeStoreSpec{Backend: "main"}})
	odd := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.NS, Name: "odd", Labels: map[string]string{testenv.PresenceLabel: "true"},
		Annotations: map[string]string{testenv.MemberAnnotation: `{"kinds": "AwsSecretsManager"}`},
	}}
	if err := c.API.Create(c.Ctx, odd); err != nil {
		t.Fatal(err)
	}
	c.WaitForLeaseText("provider-fake", `"FakeStore"`)
	cases := map[string]struct {
		reason string
		damage func(*coordinationv1.Lease)
	}{
		"annotation": {"an invalid annotation is written again", func(l *coordinationv1.Lease) { l.Annotations[testenv.MemberAnnotation] = `{"module":"x",` }},
		"missing":    {"a missing annotation is written again", func(l *coordinationv1.Lease) { l.Annotations = nil }},
		"wrong":      {"a wrong annotation is written again", func(l *coordinationv1.Lease) { l.Annotations[testenv.MemberAnnotation] = `{"module":"x","name":"y"}` }},
		"label":      {"a missing label is written again", func(l *coordinationv1.Lease) { l.Labels = nil }},
		"spec":       {"the spec is written again", func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} }},
	}
	wanted := c.Member("provider-fake").Annotations[testenv.MemberAnnotation]
	name := c.Member("provider-fake").Name
	for which, tc := range cases {
		for {
			l := lease(c, name)
			tc.damage(l)
			if c.API.Update(c.Ctx, l) == nil {
				break // Otherwise it was renewed in the meantime.
			}
		}
		c.Eventually(func() string {
			l := lease(c, name)
			if l.Annotations[testenv.MemberAnnotation] != wanted || l.Labels[testenv.PresenceLabel] != "true" || l.Spec.RenewTime == nil {
				return tc.reason + ": the Lease is not repaired"
			}
			return ""
		})
		c.Create(c.ExternalSecret(which, testenv.Fills("value", "db")))
		c.WantReady(which, v1alpha1.ReasonSecretSynced)
		if got := c.EventsOf(which); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
			t.Errorf("%s: it has events %v", which, got)
		}
	}
	if err := c.API.Delete(c.Ctx, lease(c, name)); err != nil {
		t.Fatal(err)
	}
	c.WaitForLeaseText("provider-fake", `"FakeStore"`)
	c.Create(c.ExternalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.WantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestSharedDuties stops the module with the shared duties, and waits for another module to take them over.
func TestSharedDuties(t *testing.T) {
	c := testenv.NewCrowd(t)
	running := map[string]func(){"provider-fake": c.Stores(), "generator-fake": c.Generators()}
	holder := func() (name string) {
		c.Eventually(func() string {
			var list coordinationv1.LeaseList
			if err := c.API.List(c.Ctx, &list, client.InNamespace(c.NS)); err != nil {
				return err.Error()
			}
			for i := range list.Items {
				l := &list.Items[i]
				if !strings.HasPrefix(l.Name, "shared-duties.") || l.Spec.HolderIdentity == nil {
					continue
				}
				for name = range running {
					if h := c.Member(name).Spec.HolderIdentity; h != nil && *h == *l.Spec.HolderIdentity {
						return ""
					}
				}
			}
			return "no running module holds the shared duties"
		})
		return name
	}
	wantNotServed := func(name string) {
		c.Create(c.ExternalSecret(name, func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "VaultKV" }))
		c.WantReady(name, v1alpha1.ReasonProviderNotRunning)
	}
	first := holder()
	wantNotServed("first")
	sum := sha256.Sum256([]byte(c.NS))
	lease := fmt.Sprintf("%s/shared-duties.%x.direct-secrets.io", c.NS, sum[:6])
	if got := gauge(t, "directsecrets_shared_duties", lease); got != 1 {
		t.Errorf("directsecrets_shared_duties of %s is %v while the duties are held", lease, got)
	}
	running[first]()
	delete(running, first)
	if second := holder(); second == first {
		t.Fatalf("%s holds the duties after it has stopped", second)
	}
	wantNotServed("second")
	lastVersion := c.Get("first").ResourceVersion
	running[first] = map[string]func(...operator.Option) func(){"provider-fake": c.Stores, "generator-fake": c.Generators}[first]()
	wantNotServed("third")
	if got := c.Get("first").ResourceVersion; got != lastVersion {
		t.Error("the next holder has written an unchanged condition again")
	}
}

// TestSharedDutiesOfStoppedOperators starts with shared duties that are held by a module that no longer runs. Their next
// holder must also write the conditions of objects that existed before.
func TestSharedDutiesOfStoppedOperators(t *testing.T) {
	c := testenv.NewCrowd(t)
	sum := sha256.Sum256([]byte(c.NS))
	stopped, now := "dead", metav1.NowMicro()
	seconds := int32(testenv.Quickly.Shared / time.Second)
	duties := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.NS, Name: fmt.Sprintf("shared-duties.%x.direct-secrets.io", sum[:6])},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &stopped, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now},
	}
	if err := c.API.Create(c.Ctx, duties); err != nil {
		t.Fatal(err)
	}
	c.Create(c.ExternalSecret("db"))
	c.Generators()
	c.WantReady("db", v1alpha1.ReasonProviderNotRunning)
	if err := c.API.Get(c.Ctx, client.ObjectKeyFromObject(duties), duties); err != nil {
		t.Fatal(err)
	}
	if *duties.Spec.HolderIdentity == stopped {
		t.Error("a module without the shared duties has written a condition")
	}
}

// gauge returns the value of a metric's series with a label value.
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

// TestReplicas runs two replicas of different versions. Their Lease has the data of the leader, and both replicas
// renew it.
func TestReplicas(t *testing.T) {
	c := testenv.NewCrowd(t)
	elect := func(f *operator.Flags) { f.LeaderElect, f.LeaderElectNamespace = true, c.NS }
	older := c.Stores(operator.WithFlags(elect), operator.WithVersion("v0.1.0"))
	c.WaitForLeaseText("provider-fake", `"version":"v0.1.0"`)
	leader := func() string {
		if h := lease(c, "provider-fake."+v1alpha1.Group).Spec.HolderIdentity; h != nil {
			return *h
		}
		return ""
	}
	c.Eventually(func() string {
		if leader() == "" {
			return "nobody leads"
		}
		return ""
	})
	c.Stores(operator.WithFlags(elect), operator.WithVersion("v0.2.0"))
	holders := map[string]bool{}
	c.Eventually(func() string {
		l := c.Member("provider-fake")
		if got := l.Annotations[testenv.MemberAnnotation]; !strings.Contains(got, `"v0.1.0"`) {
			t.Errorf("a standby replica has written %s", got)
		}
		if holders[*l.Spec.HolderIdentity] = true; len(holders) < 2 {
			return "only one replica has renewed the Lease"
		}
		return ""
	})
	begun, name := time.Now(), c.Member("provider-fake").Name
	const renewals = 20
	c.Eventually(func() string {
		log, err := c.Cluster.ReadAuditLog(begun)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range log {
			if e.IsWrite() && e.ObjectRef.Resource == "leases" && e.ObjectRef.Namespace == c.NS && e.ObjectRef.Name == name {
				n++
			}
		}
		if n < renewals {
			return fmt.Sprintf("the Lease was renewed %d times", n)
		}
		return ""
	})
	if took := time.Since(begun); took < renewals*testenv.Quickly.Renew*7/10 {
		t.Errorf("%d renewals took %s: a replica must not renew the Lease right after another one", renewals, took)
	}
	older()
	c.WaitForLeaseText("provider-fake", `"version":"v0.2.0"`)
}
