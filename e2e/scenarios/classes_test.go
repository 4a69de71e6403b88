//go:build long

package scenarios

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// TestTwoReleasesInOneNamespace runs provider-aws of two releases with different classes. Both are leaders, and
// each serves its own stores in the same namespace.
func TestTwoReleasesInOneNamespace(t *testing.T) {
	t.Parallel()
	const operators = "classes-operators"
	ns := namespace(t, "classes")
	leaders := map[string]bool{}
	for _, class := range []string{"blue", "green"} {
		must(t, shared.AWSStore(t.Context(), ns, class, func(s *awsv1.AWSSecretsManager) { s.Spec.Controller = class }))
		i, err := upgrade(t.Context(), shared, "team-"+class, operators, stack.Values{"global": stack.Values{
			"scope": stack.Values{"namespaces": []string{ns}}, "controllerClass": class, "crds": stack.Values{"enabled": false},
		}})
		must(t, err)
		p, err := i.StartModule(t.Context(), stack.ProviderAWS)
		must(t, err)
		t.Cleanup(func() { must(t, p.Stop()) })
		eventually(t, func() string {
			yes, err := p.IsLeader()
			if leaders[class] = yes; err != nil || !yes {
				return "release team-" + class + " does not lead"
			}
			return ""
		})
	}
	if diff := cmp.Diff(map[string]bool{"blue": true, "green": true}, leaders); diff != "" {
		t.Errorf("neither waits for the other: -want, +got:\n%s", diff)
	}
	for class := range leaders {
		shared.AWS.Put(ns+"/"+class, []byte("of "+class))
		es := pair(ns, class, ns+"/"+class, ns+"/"+class)
		es.Spec.StoreRef.Name = class
		must(t, shared.Admin.Create(t.Context(), es))
		wantValue(t, ns, class, "a", "of "+class)
		wantReady(t, ns, class, v1alpha1.ReasonSecretSynced)
	}
}
