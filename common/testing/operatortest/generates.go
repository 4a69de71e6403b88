package operatortest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

// A Generation is a working generator, with the expected values for an object.
type Generation struct {
	Generator provider.GeneratorObject
	// Namespace is the namespace of the object. The object has the name of the generator.
	Namespace string
	// Secrets are the keys whose values must not be shown anywhere else, and differ each time. Plain are the other
	// keys.
	Secrets, Plain []string
	// Service is the name and version of the server, for the published table. Unset: nothing is published.
	Service string
	// Same is true if the service returns the same values until they expire.
	Same bool
}

// Generates makes a generator create values for an object, has them replaced once, and deletes the object. After
// that, all its values must be deleted.
func (s *Suite) Generates(t *testing.T, g Generation) {
	t.Helper()
	c := s.For(t)
	c.Create(g.Generator)
	c.Eventually(func() string { return cmp.Diff("True Valid", c.Ready(g.Generator)) })
	if caps := g.Generator.StoreStatus().Capabilities; len(caps) == 0 || caps[0] != provider.CapabilityGenerate {
		t.Errorf("the generator has the capabilities %q, want %s first", caps, provider.CapabilityGenerate)
	}

	es := over(c, g.Generator, g.Namespace, g.Generator.GetName(), "")
	before := len(s.Made(t, g.Generator))
	c.Create(es)
	first := s.generated(t, g, es)
	version := versionOf(es)
	c.Refresh(es, "again")
	second := s.generated(t, g, es)
	if again := versionOf(es); again == version {
		t.Errorf("the status has the version %q both times", version)
	}
	for _, key := range g.Secrets {
		if same := first[key] == second[key]; same != g.Same {
			t.Errorf("after a refresh the value of %q is the same: %t, want %t", key, same, g.Same)
		}
	}
	if n := len(s.Made(t, g.Generator)) - before; n != 2 {
		t.Errorf("values were made %d times for one object and one refresh, want 2", n)
	}
	c.End(es)
	if !t.Failed() {
		conformance.Result{Kind: c.Kind(g.Generator), Service: g.Service, Capability: provider.CapabilityGenerate, Passed: 1}.Log(t)
	}
}

// Generated returns an ExternalSecret with all values of a generator.
func Generated(namespace, name, kind, generator string) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ExternalSecretSpec{DataFrom: []v1alpha1.DataFromEntry{
			{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: kind, Name: generator}}},
		}},
	}
}

// generated is Synced, and then checks the keys, the one part, and that values are shown nowhere else.
func (s *Suite) generated(t testing.TB, g Generation, es *v1alpha1.ExternalSecret) map[string]string {
	t.Helper()
	c := s.For(t)
	data := c.Synced(es)
	want, got := slices.Sorted(slices.Values(slices.Concat(g.Secrets, g.Plain))), []string{}
	for key := range data {
		got = append(got, key)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the keys of the Secret: -want, +got:\n%s", diff)
	}
	target := &corev1.Secret{}
	if err := s.API.Get(t.Context(), client.ObjectKeyFromObject(es), target); err != nil {
		t.Fatal(err)
	}
	c.Eventually(func() string {
		owners := [][]types.UID{}
		for _, p := range c.Parts(es) {
			owners = append(owners, []types.UID{})
			for _, o := range p.OwnerReferences {
				owners[len(owners)-1] = append(owners[len(owners)-1], o.UID)
			}
		}
		return cmp.Diff([][]types.UID{{es.UID, target.UID}}, owners)
	})
	s.hides(t, g, es, target)
	return data
}

// hides checks that values are in no status, metadata or event.
func (s *Suite) hides(t testing.TB, g Generation, es *v1alpha1.ExternalSecret, target *corev1.Secret) {
	t.Helper()
	c := s.For(t)
	events := &corev1.EventList{}
	if err := s.API.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	c.Ready(g.Generator) // This reads the generator again.
	shown := map[string]any{"the object": es, "the generator": g.Generator, "the metadata of the Secret": target.ObjectMeta, "an event": events.Items}
	for _, p := range c.Parts(es) {
		shown["the metadata of the part"] = p.ObjectMeta
	}
	for what, o := range shown {
		text := encoded(t, o)
		for _, key := range g.Secrets {
			value := target.Data[key]
			// The text has the value as JSON, without the quotes.
			plain := strings.Trim(encoded(t, string(value)), `"`)
			if strings.Contains(text, plain) || strings.Contains(text, base64.StdEncoding.EncodeToString(value)) {
				t.Errorf("%s shows the value of %q", what, key)
			}
		}
	}
}

func encoded(t testing.TB, o any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func versionOf(es *v1alpha1.ExternalSecret) string {
	if len(es.Status.Sources) != 1 {
		return ""
	}
	return es.Status.Sources[0].Version
}

// Made returns an entry for each call of Generate of the Kinds of generators, successful or not.
func (s *Suite) Made(t testing.TB, generators ...provider.GeneratorObject) []string {
	t.Helper()
	c := s.For(t)
	var kinds []string
	for _, g := range generators {
		kinds = append(kinds, c.Kind(g))
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	made := []string{}
	for _, f := range families {
		if f.GetName() != "directsecrets_provider_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["call"] == "Generate" && slices.Contains(kinds, labels["kind"]) {
				made = append(made, slices.Repeat([]string{labels["kind"]}, int(m.GetCounter().GetValue()))...)
			}
		}
	}
	return made
}

// Excludes checks that a working cluster generator makes nothing for a namespace that it does not admit.
func (s *Suite) Excludes(t *testing.T, namespace string, g provider.ClusterGeneratorObject) {
	t.Helper()
	c := s.For(t)
	c.Create(g)
	c.Eventually(func() string { return cmp.Diff("True Valid", c.Ready(g)) })
	before := s.Made(t, g)
	es := over(c, g, namespace, g.GetName(), "")
	c.Create(es)
	message := fmt.Sprintf("spec.conditions does not allow namespace %q", namespace)
	c.Eventually(func() string {
		ready := c.condition(es)
		// Two controllers must refuse: the one that makes values, and the one that writes them.
		if i := slices.IndexFunc(es.Status.Parts, func(p v1alpha1.PartStatus) bool { return strings.Contains(p.Message, message) }); i < 0 {
			return fmt.Sprintf("the parts are %+v, want one whose message has %q", es.Status.Parts, message)
		}
		return wrong("the namespace is not admitted", ready, metav1.ConditionFalse, v1alpha1.ReasonForbidden, message)
	})
	if diff := cmp.Diff(before, s.Made(t, g)); diff != "" {
		t.Errorf("values were made for a namespace that is not admitted: -want, +got:\n%s", diff)
	}
	if parts := c.Parts(es); len(parts) > 0 {
		t.Errorf("the namespace that is not admitted has %d parts", len(parts))
	}
}

// Ungated checks that with a disabled gate an object does not wait for a generator that cannot become ready, and
// reports the generator's error.
func (s *Suite) Ungated(t *testing.T, namespace string, g provider.GeneratorObject, message string) {
	t.Helper()
	c := s.For(t)
	provider.SourceSpec(g).GatingPolicy = v1alpha1.GatingDisabled
	dropRetries(g)
	c.Create(g)
	c.Eventually(func() string {
		if ready := c.condition(g); ready.Status != metav1.ConditionFalse {
			return fmt.Sprintf("Ready is %s %s %q, want it false", ready.Status, ready.Reason, ready.Message)
		}
		return ""
	})
	es := over(c, g, namespace, g.GetName(), "")
	c.Create(es)
	c.Eventually(func() string {
		return wrong("the object does not wait", c.condition(es), metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError, message)
	})
}
