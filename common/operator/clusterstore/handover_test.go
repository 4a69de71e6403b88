package clusterstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/crds"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controlplane"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/presence"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/fake"
	fakecrds "github.com/direct-secrets/direct-secrets/common/store/fake/apis/crds"
	fakev1 "github.com/direct-secrets/direct-secrets/common/store/fake/apis/v1alpha1"
)

// shift is a cluster of its own, in which modules share duties.
type shift struct {
	*testing.T
	cluster *controlplane.ControlPlane
	api     client.Client
}

func newShift(t *testing.T) *shift {
	t.Helper()
	c, err := controlplane.Start(t.Context(), controlplane.WithCRDs(append(fakecrds.All(), crds.All()...)...), controlplane.WithAuditLog())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	own, err := client.New(c.Config(), client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &shift{T: t, cluster: c, api: own}
}

// module runs an operator over all namespaces until the function that it returns is called, or the test ends.
func (s *shift) module(name string, kinds []store.Kind) (stop func()) {
	s.Helper()
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(s.cluster.Config()),
		operator.WithPresence(presence.Timing{
			Renew: 200 * time.Millisecond, Duration: 4 * time.Second, Shared: 4 * time.Second, SharedDeadline: 3 * time.Second, SharedRetry: 200 * time.Millisecond,
		}),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect, f.LogFormat = "0", "0", false, "text"
			f.PresenceNamespace = metav1.NamespaceDefault
		}),
	}
	for _, k := range kinds {
		opts = append(opts, operator.WithStore(k))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.New(name, name+"."+v1alpha1.Group, opts...).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("%s: %v", name, err)
		}
	})
	s.Cleanup(stop)
	return stop
}

func (s *shift) create(o client.Object) {
	s.Helper()
	if err := s.api.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

func (s *shift) namespace(name string) {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "shop"}}})
}

// meddle changes the child in a namespace.
func (s *shift) meddle(namespace string) {
	s.Helper()
	es := &v1alpha1.ExternalSecret{}
	controlplane.Eventually(s, func() string {
		if err := s.api.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, es); err != nil {
			return err.Error()
		}
		es.Spec.Suspend, es.Labels["made"] = true, "by-hand"
		if err := s.api.Update(s.Context(), es); err != nil {
			return err.Error()
		}
		return ""
	})
}

// unheld has nobody hold the shared duties while f runs.
func (s *shift) unheld(f func()) {
	s.Helper()
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	lease.SetNamespace(metav1.NamespaceDefault)
	lease.SetName("shared-duties." + v1alpha1.Group)
	hold := func(by string) {
		body := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":600,"renewTime":%q}}`, by, time.Now().UTC().Format(metav1.RFC3339Micro))
		if err := s.api.Patch(s.Context(), lease, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			s.Fatal(err)
		}
	}
	hold("the test")
	controlplane.Eventually(s, func() string {
		families, err := metrics.Registry.Gather()
		if err != nil {
			return err.Error()
		}
		for _, family := range families {
			if family.GetName() == "directsecrets_shared_duties" && family.GetMetric()[0].GetGauge().GetValue() != 0 {
				return "a module still holds the duties"
			}
		}
		return ""
	})
	f()
	hold("")
}

// wantChild waits until the child in a namespace is as it is to be.
func (s *shift) wantChild(namespace string) {
	s.Helper()
	controlplane.Eventually(s, func() string {
		es := &v1alpha1.ExternalSecret{}
		if err := s.api.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, es); err != nil {
			return err.Error()
		}
		if es.Spec.Suspend || es.Labels["made"] != "true" {
			return fmt.Sprintf("%s: suspended is %t, labels are %v", namespace, es.Spec.Suspend, es.Labels)
		}
		return ""
	})
}

// wantMade waits until the status names these namespaces.
func (s *shift) wantMade(namespaces ...string) {
	s.Helper()
	controlplane.Eventually(s, func() string {
		p := &v1alpha1.ClusterExternalSecret{}
		if err := s.api.Get(s.Context(), client.ObjectKey{Name: "db"}, p); err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Sprintf("the conditions are %+v", p.Status.Conditions)
		}
		return cmp.Diff(namespaces, p.Status.ProvisionedNamespaces)
	})
}

// wantWrites says who wrote children since a time, and how often.
func (s *shift) wantWrites(since time.Time, want map[string]int) {
	s.Helper()
	events, err := s.cluster.ReadAuditLog(since)
	if err != nil {
		s.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range events {
		if !e.IsWrite() || e.ResponseStatus.Code >= 300 || e.ObjectRef.Resource != "externalsecrets" || e.ObjectRef.Subresource != "" {
			continue
		}
		if module, ours := strings.CutPrefix(e.UserAgent, "direct-secrets/"); ours {
			got[module+" "+e.Verb]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("writes of children: -want, +got:\n%s", diff)
	}
}

// wantUnread fails if a module read the child in one of these namespaces live since a time.
func (s *shift) wantUnread(since time.Time, namespaces ...string) {
	s.Helper()
	events, err := s.cluster.ReadAuditLog(since)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		if e.Verb == "get" && e.ObjectRef.Resource == "externalsecrets" && slices.Contains(namespaces, e.ObjectRef.Namespace) && e.UserAgent == "direct-secrets/generators" {
			s.Errorf("%s read %s/%s", e.UserAgent, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	}
}

// TestFanOutHandover has two modules share the duties of fan-out. One of them serves no store, and so keeps little of
// the children in memory. Only who holds the duties writes; when it stops, the other goes on where it was, and
// writes nothing that is in step.
func TestFanOutHandover(t *testing.T) {
	t.Parallel()
	s := newShift(t)
	fakes := fake.NewServer()
	fakes.Backend("main").Put("db", []byte("one"))
	s.create(&fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: fakev1.ClusterFakeStoreSpec{FakeStoreSpec: fakev1.FakeStoreSpec{Backend: "main"}}})
	s.namespace("one")
	s.namespace("two")
	stopGenerators := s.module("generators", fakes.GeneratorKinds())
	start := time.Now()
	s.create(&v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.ClusterExternalSecretSpec{
		ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "store"},
			Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}},
		},
		ExternalSecretMetadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"made": "true"}},
		NamespaceChoice:        v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "shop"}}}},
	}})
	s.wantMade("one", "two")
	stopStores := s.module("stores", fakes.Kinds())
	secret := func(namespace string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, &corev1.Secret{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	secret("one")
	s.meddle("one")
	s.wantChild("one")
	s.wantWrites(start, map[string]int{"generators create": 2, "generators update": 1})

	// To look at a namespace again costs no read.
	start = time.Now()
	for _, ns := range []string{"one", "two"} {
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"looked-at":"again"}}}`))
		if err := s.api.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, label); err != nil {
			t.Fatal(err)
		}
	}
	s.namespace("extra")
	s.wantMade("extra", "one", "two")
	s.wantWrites(start, map[string]int{"generators create": 1})
	s.wantUnread(start, "one", "two")

	stopGenerators()
	start = time.Now()
	s.namespace("three")
	s.wantMade("extra", "one", "three", "two")
	secret("three")
	s.meddle("two")
	s.wantChild("two")
	s.wantWrites(start, map[string]int{"stores create": 1, "stores update": 1})

	stopGenerators = s.module("generators", fakes.GeneratorKinds())
	stopStores()
	start = time.Now()
	s.meddle("three")
	s.wantChild("three")
	s.namespace("four")
	s.wantMade("extra", "four", "one", "three", "two")
	s.wantWrites(start, map[string]int{"generators create": 1, "generators update": 1})

	// What happens while nobody holds the duties is seen by who takes them up.
	start = time.Now()
	s.unheld(func() { s.meddle("four") })
	s.wantChild("four")
	s.wantWrites(start, map[string]int{"generators update": 1})
	stopGenerators()
}
