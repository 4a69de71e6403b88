package fanout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// shift is a separate cluster, in which modules share duties.
type shift struct{ *testenv.Env }

func newShift(t *testing.T) *shift {
	t.Helper()
	t.Parallel()
	return &shift{testenv.On(t, testenv.StartPlane(t), "")}
}

// module runs an operator over all namespaces until the function that it returns is called, or the test ends.
func (s *shift) module(name string, kinds []provider.Kind) (stop func()) {
	s.Helper()
	return s.Module(name, name+"."+v1alpha1.Group, kinds, operator.WithPresence(presence.Timing{
		Renew: 200 * time.Millisecond, Duration: 4 * time.Second, Shared: 4 * time.Second, SharedDeadline: 3 * time.Second, SharedRetry: 200 * time.Millisecond,
	}), operator.WithFlags(func(f *operator.Flags) { f.PresenceNamespace = metav1.NamespaceDefault }))
}

func (s *shift) namespace(name string) {
	s.Helper()
	s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "shop"}}})
}

// changeChild changes the child in a namespace, as a user does.
func (s *shift) changeChild(namespace string) {
	s.Helper()
	es := &v1alpha1.ExternalSecret{}
	s.Eventually(func() string {
		if err := s.API.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: "db"}, es); err != nil {
			return err.Error()
		}
		es.Spec.Suspend, es.Labels["made"] = true, "by-hand"
		if err := s.API.Update(s.Ctx, es); err != nil {
			return err.Error()
		}
		return ""
	})
}

// unheld runs f while no module holds the shared duties.
func (s *shift) unheld(f func()) {
	s.Helper()
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	lease.SetNamespace(metav1.NamespaceDefault)
	lease.SetName("shared-duties." + v1alpha1.Group)
	hold := func(by string) {
		body := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":600,"renewTime":%q}}`, by, time.Now().UTC().Format(metav1.RFC3339Micro))
		if err := s.API.Patch(s.Ctx, lease, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			s.Fatal(err)
		}
	}
	hold("the test")
	s.Eventually(func() string {
		families, err := metrics.Registry.Gather()
		if err != nil {
			return err.Error()
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				of := client.ObjectKeyFromObject(lease).String()
				if family.GetName() == "directsecrets_shared_duties" && m.GetLabel()[0].GetValue() == of && m.GetGauge().GetValue() != 0 {
					return "a module still holds the duties"
				}
			}
		}
		return ""
	})
	f()
	hold("")
}

// wantChild waits until the child in a namespace is restored.
func (s *shift) wantChild(namespace string) {
	s.Helper()
	s.Eventually(func() string {
		es := &v1alpha1.ExternalSecret{}
		if err := s.API.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: "db"}, es); err != nil {
			return err.Error()
		}
		if es.Spec.Suspend || es.Labels["made"] != "true" {
			return fmt.Sprintf("%s: suspended is %t, labels are %v", namespace, es.Spec.Suspend, es.Labels)
		}
		return ""
	})
}

// wantMade waits until the parent is Ready and its status lists these namespaces.
func (s *shift) wantMade(namespaces ...string) {
	s.Helper()
	s.Eventually(func() string {
		p := &v1alpha1.ClusterExternalSecret{}
		if err := s.API.Get(s.Ctx, client.ObjectKey{Name: "db"}, p); err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Sprintf("the conditions are %+v", p.Status.Conditions)
		}
		return cmp.Diff(namespaces, p.Status.ProvisionedNamespaces)
	})
}

// wantWrites checks which modules wrote children since a time, and how often.
func (s *shift) wantWrites(since time.Time, want map[string]int) {
	s.Helper()
	events, err := s.Cluster.ReadAuditLog(since)
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

// wantUnread fails if the module "generators" read the child in one of these namespaces live since a time.
func (s *shift) wantUnread(since time.Time, namespaces ...string) {
	s.Helper()
	events, err := s.Cluster.ReadAuditLog(since)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		if e.Verb == "get" && e.ObjectRef.Resource == "externalsecrets" && slices.Contains(namespaces, e.ObjectRef.Namespace) && e.UserAgent == "direct-secrets/generators" {
			s.Errorf("%s read %s/%s", e.UserAgent, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	}
}

// reads returns how often modules read an object live since a time.
func (s *shift) reads(since time.Time, resource, name string) (n int) {
	s.Helper()
	events, err := s.Cluster.ReadAuditLog(since)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		if e.Verb == "get" && e.ObjectRef.Resource == resource && e.ObjectRef.Name == name && strings.HasPrefix(e.UserAgent, "direct-secrets/") {
			n++
		}
	}
	return n
}

// TestFanOutHandover has two modules that share the duties of fan-out. One of them serves no store, so its cache has
// reduced children. Only the holder of the duties writes. When it stops, the other module continues, and does not
// write children that are in sync.
func TestFanOutHandover(t *testing.T) {
	s := newShift(t)
	fakes := fake.NewServer()
	fakes.Backend("main").Put("db", []byte("one"))
	s.Create(&fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: fakev1.ClusterFakeStoreSpec{FakeStoreSpec: fakev1.FakeStoreSpec{Backend: "main"}}})
	s.namespace("one")
	s.namespace("two")
	stopGenerators := s.module("generators", fakes.GeneratorKinds())
	start := time.Now()
	s.Create(&v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.ClusterExternalSecretSpec{
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
		s.Eventually(func() string {
			if err := s.API.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, &corev1.Secret{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	secret("one")
	s.changeChild("one")
	s.wantChild("one")
	s.wantWrites(start, map[string]int{"generators create": 2, "generators update": 1})

	// Reconciling a namespace again causes no read.
	start = time.Now()
	for _, ns := range []string{"one", "two"} {
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"looked-at":"again"}}}`))
		if err := s.API.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, label); err != nil {
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
	s.changeChild("two")
	s.wantChild("two")
	s.wantWrites(start, map[string]int{"stores create": 1, "stores update": 1})

	stopGenerators = s.module("generators", fakes.GeneratorKinds())
	stopStores()
	start = time.Now()
	s.changeChild("three")
	s.wantChild("three")
	s.namespace("four")
	s.wantMade("extra", "four", "one", "three", "two")
	s.wantWrites(start, map[string]int{"generators create": 1, "generators update": 1})

	// The next holder of the duties notices changes that happened while no module held them.
	start = time.Now()
	s.unheld(func() { s.changeChild("four") })
	s.wantChild("four")
	s.wantWrites(start, map[string]int{"generators update": 1})
	stopGenerators()
}

// TestFanOutStaleCache has a module whose cache is behind. It must not delete or overwrite a child based on the cache
// alone.
func TestFanOutStaleCache(t *testing.T) {
	s := newShift(t)
	fakes := fake.NewServer()
	lags := map[string]*testenv.Lag{}
	for _, resource := range []string{"namespaces", "clusterexternalsecrets"} {
		lags[resource] = testenv.NewLag(resource)
		s.Config.Wrap(lags[resource].Wrap)
	}
	s.module("generators", fakes.GeneratorKinds())
	s.namespace("shared")
	parent := func(name string, change func(*v1alpha1.ClusterExternalSecretSpec)) {
		t.Helper()
		p := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Eventually(func() string {
			if err := client.IgnoreNotFound(s.API.Get(t.Context(), client.ObjectKeyFromObject(p), p)); err != nil {
				return err.Error()
			}
			change(&p.Spec)
			write := s.API.Update
			if p.UID == "" {
				write = func(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
					return s.API.Create(ctx, o)
				}
			}
			if err := write(t.Context(), p); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	child := func(namespace string) *v1alpha1.ExternalSecret {
		t.Helper()
		es := &v1alpha1.ExternalSecret{}
		s.Eventually(func() string {
			if err := s.API.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, es); err != nil {
				return err.Error()
			}
			return ""
		})
		return es
	}
	key := func(key string) func(*v1alpha1.ClusterExternalSecretSpec) {
		return func(spec *v1alpha1.ClusterExternalSecretSpec) { spec.ExternalSecretSpec.Data[0].RemoteRef.Key = key }
	}
	cases := map[string]struct {
		reason string
		// behind is the resource whose changes the module does not see. moveOn makes such changes, and one that
		// starts a pass over the child.
		behind string
		moveOn func(ns string)
		// live is the resource, and object the name, of the live read that shows the module that its cache is behind.
		live, object string
		// key is the remote key of the child at the end.
		key string
	}{
		"Namespace": {
			reason: "The namespace has got the label that the parent selects.",
			behind: "namespaces", live: "namespaces", object: "case-namespace", key: "first",
			moveOn: func(ns string) {
				label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"env":"prod"}}}`))
				if err := s.API.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, label); err != nil {
					t.Fatal(err)
				}
				parent(ns, func(spec *v1alpha1.ClusterExternalSecretSpec) {
					spec.NamespaceSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"env": "prod"}}}
				})
			},
		},
		"Left": {
			reason: "The parent selects the namespace by name, and no longer by its label.",
			behind: "clusterexternalsecrets", live: "clusterexternalsecrets", object: "case-left", key: "first",
			moveOn: func(ns string) {
				parent(ns, func(spec *v1alpha1.ClusterExternalSecretSpec) {
					spec.NamespaceSelectors, spec.Namespaces = nil, []string{ns}
				})
				label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"other"}}}`))
				if err := s.API.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, label); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Spec": {
			reason: "Another holder of the duties has written the child for a later generation of the parent.",
			behind: "clusterexternalsecrets", live: "clusterexternalsecrets", object: "case-spec", key: "second",
			moveOn: func(ns string) {
				parent(ns, key("second"))
				es := child(ns)
				es.Spec.Data[0].RemoteRef.Key = "second"
				if err := s.API.Update(t.Context(), es); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		ns := "case-" + strings.ToLower(name)
		s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"team": ns}}})
		parent(ns, func(spec *v1alpha1.ClusterExternalSecretSpec) {
			*spec = v1alpha1.ClusterExternalSecretSpec{
				ExternalSecretName: "db",
				ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
					StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "store"},
					Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: "first"}}},
				},
				NamespaceChoice: v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"team": ns}}}},
			}
		})
		was := child(ns).UID
		wantSame := func() {
			t.Helper()
			is := &v1alpha1.ExternalSecret{}
			if err := s.API.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "db"}, is); err != nil {
				t.Fatalf("\n%s\n%s: %v", tc.reason, name, err)
			}
			if got := is.Spec.Data[0].RemoteRef.Key; is.UID != was || got != tc.key {
				t.Fatalf("\n%s\n%s: the child has the uid %s and reads %s, want %s and %s", tc.reason, name, is.UID, got, was, tc.key)
			}
		}
		l := lags[tc.behind]
		start := time.Now()
		func() {
			l.Hold(true)
			defer l.Hold(false)
			tc.moveOn(ns)
			// Two reads show that the module wanted to write, did not, and retried.
			s.Eventually(func() string {
				wantSame()
				if n := s.reads(start, tc.live, tc.object); n < 2 {
					return fmt.Sprintf("%s: the module has read %s %s %d times", name, tc.live, tc.object, n)
				}
				return ""
			})
		}()
		s.Eventually(func() string {
			p := &v1alpha1.ClusterExternalSecret{}
			if err := s.API.Get(t.Context(), client.ObjectKey{Name: ns}, p); err != nil {
				return err.Error()
			}
			if p.Status.ObservedGeneration != p.Generation || !slices.Equal(p.Status.ProvisionedNamespaces, []string{ns}) {
				return fmt.Sprintf("%s: the status is %+v", name, p.Status)
			}
			return ""
		})
		wantSame()
	}
}

// laterCRDs returns the CRDs of a later version, in which the specs of children have one more field.
func laterCRDs(t *testing.T) [][]byte {
	t.Helper()
	paths := map[string][]string{
		"ExternalSecret": nil, "ClusterExternalSecret": {"externalSecretSpec", "properties"},
		"PushSecret": nil, "ClusterPushSecret": {"pushSecretSpec", "properties"},
	}
	var all [][]byte
	for _, manifest := range controlplane.Manifests(manifests.CRDs) {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
			t.Fatal(err)
		}
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		field := slices.Concat([]string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}, paths[kind], []string{"later", "type"})
		if err := unstructured.SetNestedField(versions[0].(map[string]any), "string", field...); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(crd.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
	}
	return all
}

// TestFanOutLaterCRDs installs the CRDs of a later version. A field that the module does not know is copied to the
// children, kept when they are restored, and follows the parent.
func TestFanOutLaterCRDs(t *testing.T) {
	s := newShift(t)
	if err := s.Cluster.InstallCRDs(t.Context(), laterCRDs(t)...); err != nil {
		t.Fatal(err)
	}
	s.module("generators", fake.NewServer().GeneratorKinds())
	spec := map[string]map[string]any{
		"ExternalSecret": {
			"storeRef": map[string]any{"kind": "ClusterFakeStore", "name": "store"},
			"data":     []any{map[string]any{"secretKey": "value", "remoteRef": map[string]any{"key": "db"}}},
		},
		"PushSecret": {
			"storeRefs": []any{map[string]any{"kind": "ClusterFakeStore", "name": "store"}},
			"selector":  map[string]any{"secret": map[string]any{"name": "db"}},
			"data":      []any{map[string]any{"match": map[string]any{"secretKey": "value", "remoteRef": map[string]any{"remoteKey": "db"}}}},
		},
	}
	object := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		u.SetName("db")
		return u
	}
	patch := func(o client.Object, body string) {
		t.Helper()
		if err := s.API.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	s.namespace("one")
	start := time.Now()
	for kind, field := range map[string]string{"ExternalSecret": "externalSecret", "PushSecret": "pushSecret"} {
		child := object(kind)
		child.SetNamespace("one")
		wantLater := func(value string) {
			t.Helper()
			s.Eventually(func() string {
				if err := s.API.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
					return err.Error()
				}
				is, _, _ := unstructured.NestedString(child.Object, "spec", "later")
				return cmp.Diff([]string{value, "true"}, []string{is, child.GetLabels()["made"]})
			})
		}
		spec[kind]["later"] = "1"
		// A CRD takes effect after a moment.
		s.Eventually(func() string {
			probe := object(kind)
			probe.SetNamespace("one")
			probe.Object["spec"] = runtime.DeepCopyJSON(spec[kind])
			if err := s.API.Create(t.Context(), probe, client.DryRunAll); err != nil {
				return err.Error()
			}
			parent := object("Cluster" + kind)
			parent.Object["spec"] = map[string]any{
				field + "Spec": runtime.DeepCopyJSON(spec[kind]), field + "Metadata": map[string]any{"labels": map[string]any{"made": "true"}},
				"namespaces": []any{"one"},
			}
			if err := s.API.Create(t.Context(), parent, client.DryRunAll); err != nil {
				return err.Error()
			}
			_, ofParent, _ := unstructured.NestedString(parent.Object, "spec", field+"Spec", "later")
			if _, ofChild, _ := unstructured.NestedString(probe.Object, "spec", "later"); !ofParent || !ofChild {
				return "the API server does not know the field yet"
			}
			parent.SetResourceVersion("")
			parent.SetUID("")
			s.Create(parent)
			return ""
		})
		wantLater("1")
		patch(child, `{"metadata":{"labels":{"made":"by-hand"}}}`)
		wantLater("1")
		patch(object("Cluster"+kind), fmt.Sprintf(`{"spec":{%q:{"later":"2"}}}`, field+"Spec"))
		wantLater("2")
	}
	s.wantWrites(start, map[string]int{"generators create": 1, "generators update": 2})
}
