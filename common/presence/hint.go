package presence

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// brought holds the modules of this project: the value of the chart that switches one on, its API group, and
// the Kinds that it brings. Each Kind has a twin whose name begins with Cluster.
var brought = []struct {
	value, group string
	kinds        []string
}{
	{"provider-aws", "aws." + v1alpha1.Group, []string{"AWSSecretsManager", "AWSParameterStore", "ECRAuthorizationToken", "STSSessionToken"}},
	{"provider-vault", "vault." + v1alpha1.Group, []string{"VaultKV", "VaultDynamicSecret"}},
	{"provider-gcp", "gcp." + v1alpha1.Group, []string{"GCPSecretManager", "GCPAccessToken"}},
	{"generator-password", "generator." + v1alpha1.Group, []string{"Password"}},
}

// Hint says that nobody serves a reference, and what to do about it.
func Hint(ref *v1alpha1.StoreRef) string {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	kind := strings.TrimPrefix(ref.Kind, "Cluster")
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
