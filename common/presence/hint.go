package presence

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// twin begins the names of cluster Kinds.
const twin = "Cluster"

// brought holds the modules of this project: the value of the chart that switches one on, its API group, and
// the Kinds that it brings. Each Kind has a cluster twin.
var brought = []struct {
	value, group string
	kinds        []string
}{
	{"provider-aws", "aws." + v1alpha1.Group, []string{"AWSSecretsManager", "AWSParameterStore", "ECRAuthorizationToken", "STSSessionToken"}},
	{"provider-vault", "vault." + v1alpha1.Group, []string{"VaultKV", "VaultDynamicSecret"}},
	{"provider-gcp", "gcp." + v1alpha1.Group, []string{"GCPSecretManager", "GCPAccessToken"}},
	{"generator-password", "generator." + v1alpha1.Group, []string{"Password"}},
}

// Known returns the Kinds that Hint knows, by the value of the chart, so that a test can hold them against those
// that there are.
func Known() map[string][]schema.GroupKind {
	out := map[string][]schema.GroupKind{}
	for _, m := range brought {
		for _, k := range m.kinds {
			out[m.value] = append(out[m.value], schema.GroupKind{Group: m.group, Kind: k}, schema.GroupKind{Group: m.group, Kind: twin + k})
		}
	}
	return out
}

// Hint says that nobody serves a reference, and what to do about it.
func Hint(ref *v1alpha1.StoreRef) string {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	kind := strings.TrimPrefix(ref.Kind, twin)
	for _, m := range brought {
		if group != "" && group != m.group {
			continue
		}
		for _, k := range m.kinds {
			if k == kind {
				return fmt.Sprintf("no running module serves %s; set %s.enabled=true in the chart", ref.Kind, m.value)
			}
		}
		if group != "" {
			return fmt.Sprintf("no running module serves %s of %s; correct the kind, or install a version of %s that has it", ref.Kind, group, m.value)
		}
	}
	if group != "" {
		return fmt.Sprintf("no running module serves %s of %s; correct apiVersion and kind, or install the module that brings it", ref.Kind, group)
	}
	return fmt.Sprintf("no running module serves %s; correct the kind, or install the module that brings it", ref.Kind)
}
