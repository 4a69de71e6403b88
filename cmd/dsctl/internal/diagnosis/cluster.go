package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// clusterRules check the installation and the user's permissions.
var clusterRules = []func(*snapshot.Snapshot) []Finding{notInstalled, noOperator, expiredOperators, skewedOperators, olderCRDs, notAllowed}

func notInstalled(s *snapshot.Snapshot) []Finding {
	for _, k := range s.Kinds {
		if k.Group == v1alpha1.Group && k.Kind == snapshot.ExternalSecret {
			return nil
		}
	}
	return []Finding{{
		Severity: Error, Object: snapshot.Ref{Kind: "CustomResourceDefinition", Name: "externalsecrets." + v1alpha1.Group}, Reason: ReasonNotInstalled,
		Message: "the cluster has no Kind ExternalSecret of " + v1alpha1.Group, Fix: "install the chart, see docs/start/install.md; or choose another cluster: --context",
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
			Message: fmt.Sprintf("%s last renewed its Lease at %s", o.Name, o.Renewed.UTC().Format("2006-01-02T15:04:05Z")),
			Fix:     fmt.Sprintf("see why it does not run: kubectl get pods -n %s; if it was removed on purpose: kubectl delete lease -n %[1]s %s", o.Lease.Namespace, o.Lease.Name),
		})
	}
	return all
}

func skewedOperators(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for i, a := range s.Operators {
		for _, b := range s.Operators[i+1:] {
			if a.Expired || b.Expired || !inspect.Skewed(a.Operator, b.Operator) {
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

// olderCRDs reports CRDs that do not have fields that hold objects back.
func olderCRDs(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for _, o := range s.Operators {
		if o.Expired || o.MissingFields == "" {
			continue
		}
		all = append(all, Finding{
			Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: o.Lease.Namespace, Name: o.Lease.Name}, Reason: v1alpha1.ReasonVersionSkew,
			Message: fmt.Sprintf("the CRDs are older than %s and do not have %s: objects that set these fields are not held back", o.Name, o.MissingFields),
			Fix:     "upgrade the CRDs to the version of the module, and set the fields again",
		})
	}
	return all
}

// notAllowed reports requests that the user is not allowed to make, so that objects could not be checked. It
// returns one finding for all resources with the same verb and namespace. It is an error only if ExternalSecrets or
// PushSecrets could not be listed.
func notAllowed(s *snapshot.Snapshot) []Finding {
	type request struct{ verb, namespace, purpose string }
	var order []request
	resources := map[request][]string{}
	for _, r := range s.Refused {
		q := request{r.Verb, r.Namespace, r.Purpose}
		if resources[q] == nil {
			order = append(order, q)
		}
		resources[q] = append(resources[q], r.Resource)
	}
	var all []Finding
	for _, q := range order {
		where, can := "in the cluster", fmt.Sprintf("kubectl auth can-i %s %s", q.verb, resources[q][0])
		if q.namespace != "" {
			where, can = "in namespace "+q.namespace, can+" -n "+q.namespace
		}
		f := Finding{
			Severity: Warning, Object: snapshot.Ref{Kind: "Permission", Namespace: q.namespace, Name: q.verb}, Reason: ReasonNotAllowed,
			Message: fmt.Sprintf("you are not allowed to %s %s %s, which is needed %s", q.verb, strings.Join(resources[q], ", "), where, q.purpose),
			Fix:     "ask for a Role with this permission; to check a permission: " + can,
		}
		if q.verb == "list" && slices.ContainsFunc(resources[q], isChecked) {
			f.Severity = Error
		}
		all = append(all, f)
	}
	return all
}

// isChecked reports whether a resource is one that every user of doctor expects to be checked.
func isChecked(resource string) bool {
	return resource == "externalsecrets."+v1alpha1.Group || resource == "pushsecrets."+v1alpha1.Group
}
