package scenarios

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/presence"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordcrds "github.com/direct-secrets/direct-secrets/generator-password/apis/crds"
	awscrds "github.com/direct-secrets/direct-secrets/provider-aws/apis/crds"
	gcpcrds "github.com/direct-secrets/direct-secrets/provider-gcp/apis/crds"
	vaultcrds "github.com/direct-secrets/direct-secrets/provider-vault/apis/crds"
)

// TestHints holds what is said of Kinds that no module serves against the Kinds that the modules bring.
func TestHints(t *testing.T) {
	brought := map[string][]schema.GroupKind{}
	for module, crds := range map[string][][]byte{
		stack.ProviderAWS: awscrds.All(), stack.ProviderVault: vaultcrds.All(),
		stack.ProviderGCP: gcpcrds.All(), stack.GeneratorPassword: passwordcrds.All(),
	} {
		for _, raw := range crds {
			var crd struct {
				Spec struct {
					Group string
					Names struct{ Kind string }
				}
			}
			must(t, yaml.Unmarshal(raw, &crd))
			brought[module] = append(brought[module], schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
		}
	}
	known := presence.Known()
	for _, kinds := range []map[string][]schema.GroupKind{brought, known} {
		for _, k := range kinds {
			slices.SortFunc(k, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
		}
	}
	if diff := gocmp.Diff(brought, known); diff != "" {
		t.Errorf("Kinds of the modules: -brought, +known:\n%s", diff)
	}
	for module, kinds := range brought {
		for _, k := range kinds {
			for _, apiVersion := range []string{"", k.Group + "/v1"} {
				hint := presence.Hint(&v1alpha1.StoreRef{APIVersion: apiVersion, Kind: k.Kind})
				if want := "serves " + k.Kind + "; set " + module + ".enabled=true in the chart"; !strings.HasSuffix(hint, want) {
					t.Errorf("of %s it is said %q, want %q", k, hint, want)
				}
			}
		}
	}
}
