package generation

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestSpecHash pins the hash: if an upgrade changed it, every value would be replaced.
func TestSpecHash(t *testing.T) {
	base := func() *fakev1.FakeGenerator {
		return &fakev1.FakeGenerator{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gen", UID: "1", Generation: 1},
			Spec:       fakev1.FakeGeneratorSpec{Backend: "main", Prefix: "u", Auth: &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "c", Key: "k"}}},
		}
	}
	const pinned = "91d484225f5c7228"
	cases := map[string]struct {
		reason string
		change func(*fakev1.FakeGenerator)
		same   bool
	}{
		"Same": {"Nothing has changed.", func(*fakev1.FakeGenerator) {}, true},
		"Metadata": {"Metadata does not affect the values.", func(g *fakev1.FakeGenerator) {
			g.Name, g.UID, g.Generation, g.Labels = "other", "2", 7, map[string]string{"a": "b"}
		}, true},
		"Status": {"The status does not affect the values.", func(g *fakev1.FakeGenerator) { g.Status.Capabilities = []string{"Generate"} }, true},
		"SourceSpec": {"The fields of every store and generator do not affect the values.", func(g *fakev1.FakeGenerator) {
			g.Spec.Controller, g.Spec.ValidationInterval, g.Spec.GatingPolicy = "x", "1h", "Disabled"
		}, true},
		"Rotation": {"The fields of every generator do not affect the values.", func(g *fakev1.FakeGenerator) {
			g.Spec.RotationInterval, g.Spec.KeepPrevious, g.Spec.RevocationDelay = "1h", true, "1h"
		}, true},
		"Own":    {"The fields of its own Kind affect the values.", func(g *fakev1.FakeGenerator) { g.Spec.Prefix = "v" }, false},
		"Unset":  {"A field that is unset affects the values.", func(g *fakev1.FakeGenerator) { g.Spec.Prefix = "" }, false},
		"Nested": {"A nested field affects the values.", func(g *fakev1.FakeGenerator) { g.Spec.Auth.SecretRef.Key = "other" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := base()
			tc.change(g)
			got, err := specHash(g)
			if err != nil {
				t.Fatal(err)
			}
			if (got == pinned) != tc.same {
				t.Errorf("\n%s\nspecHash(): %s, want the same as %s: %t", tc.reason, got, pinned, tc.same)
			}
		})
	}
	cluster := &fakev1.ClusterFakeGenerator{Spec: fakev1.ClusterFakeGeneratorSpec{
		FakeGeneratorSpec:    base().Spec,
		ClusterGeneratorSpec: v1alpha1.ClusterGeneratorSpec{Conditions: []v1alpha1.NamespaceCondition{{Namespaces: []string{"a"}}}},
		ScopeSpec:            v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace},
	}}
	if got, err := specHash(cluster); err != nil || got != pinned {
		t.Errorf("specHash() of the cluster twin: %s, %v, want %s: the namespaces that it serves do not affect the values", got, err, pinned)
	}
}

// TestShared pins the fields that specHash leaves out: if an upgrade removed one, values would be replaced.
func TestShared(t *testing.T) {
	want := []string{
		"authenticationScope", "conditions", "controller", "gatingPolicy", "keepPrevious", "retrySettings",
		"revocationDelay", "rotationInterval", "validationInterval",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(shared))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
