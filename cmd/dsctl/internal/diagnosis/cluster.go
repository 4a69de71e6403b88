package diagnosis

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// clusterRules are about the installation and the user.
var clusterRules = []func(*snapshot.Snapshot) []Finding{notInstalled, noOperator, expiredOperators, skewedOperators, notAllowed}

func notInstalled(s *snapshot.Snapshot) []Finding {
	for _, k := range s.Kinds {
		if k.Group == v1alpha1.Group && k.Kind == snapshot.ExternalSecret {
			return nil
		}
	}
	return []Finding{{
		Severity: Error, Object: snapshot.Ref{Kind: "CustomResourceDefinition", Name: "externalsecrets." + v1alpha1.Group}, Reason: ReasonNotInstalled,
		Message: "the cluster has no Kind ExternalSecret of " + v1alpha1.Group, Fix: "install the chart, see docs/install.md; or choose another cluster: --context",
	}}
}

func noOperator(s *snapshot.Snapshot) []Finding {
	if !s.OperatorsKnown || len(s.Kinds) == 0 || len(s.Operators) > 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Object: snapshot.Ref{Kind: "Lease"}, Reason: ReasonOperatorAbsent,
		Message: "no operator has reported that it runs", Fix: "enable the modules in the chart; modules without --presence-namespace do not report",
	}}
}

func expiredOperators(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for _, o := range s.Operators {
		if !o.Expired {
			continue
		}
		all = append(all, Finding{
			Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: o.Lease.Namespace, Name: o.Lease.Name}, Reason: ReasonOperatorAbsent,
			Message: fmt.Sprintf("%s last reported at %s", o.Name, o.Renewed.UTC().Format("2006-01-02T15:04:05Z")),
			Fix:     fmt.Sprintf("see why it does not run: kubectl get pods -n %s; if it was removed on purpose: kubectl delete lease -n %[1]s %s", o.Lease.Namespace, o.Lease.Name),
		})
	}
	return all
}

func skewedOperators(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for i, a := range s.Operators {
		for _, b := range s.Operators[i+1:] {
			if a.Expired || b.Expired || !inspect.Skewed(a.Version, b.Version) {
				continue
			}
			all = append(all, Finding{
				Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: a.Lease.Namespace, Name: a.Lease.Name}, Reason: v1alpha1.ReasonVersionSkew,
				Message: fmt.Sprintf("%s is built with common %s and %s with common %s: objects that use both are not synced", a.Name, a.Version, b.Name, b.Version),
				Fix:     "upgrade the older module, so that their minor versions differ by one at most",
			})
		}
	}
	return all
}

// notAllowed finds what the user may not do, and so could not be checked.
func notAllowed(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for _, r := range s.Refused {
		where := "in all namespaces"
		can := fmt.Sprintf("kubectl auth can-i %s %s", r.Verb, r.Resource)
		if r.Namespace != "" {
			where = "in namespace " + r.Namespace
			can += " -n " + r.Namespace
		} else {
			can += " -A"
		}
		all = append(all, Finding{
			Severity: Warning, Object: snapshot.Ref{Kind: "Permission", Name: strings.Join([]string{r.Verb, r.Resource}, " ")}, Reason: ReasonNotAllowed,
			Message: fmt.Sprintf("you are not allowed to %s %s %s, which is needed %s", r.Verb, r.Resource, where, r.Purpose),
			Fix:     "have a Role with this permission bound to you, or choose a namespace with -n; to check: " + can,
		})
	}
	return all
}
