package fanout

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// conclude writes the conditions; pending is the number of namespaces without a result yet.
func conclude(st *v1alpha1.FanOutStatus, generation int64, pending int, invalid string) {
	status.Conclude(&st.Conditions, generation, verdict(st, pending, invalid))
}

// verdict returns the summary of all namespaces. Failed namespaces are retried; an invalid spec needs a change by the
// user.
func verdict(st *v1alpha1.FanOutStatus, pending int, invalid string) status.Verdict {
	made := len(st.ProvisionedNamespaces)
	switch {
	case invalid != "":
		return status.Stalled(v1alpha1.ReasonInvalidSpec, invalid)
	case len(st.FailedNamespaces) > 0:
		var names []string
		for _, f := range st.FailedNamespaces[:min(len(st.FailedNamespaces), 5)] {
			names = append(names, f.Namespace)
		}
		return status.Failed(v1alpha1.ReasonPartlyProvisioned,
			fmt.Sprintf("created in %d namespaces, failed in %d: %s; see status.failedNamespaces", made, len(st.FailedNamespaces), strings.Join(names, ", ")))
	case pending > 0:
		return status.Failed(v1alpha1.ReasonPartlyProvisioned, fmt.Sprintf("created in %d namespaces, %d more to come", made, pending))
	case made == 0:
		return status.Good(v1alpha1.ReasonNoNamespacesMatched, "no namespace matches spec.namespaceSelectors or spec.namespaces")
	}
	return status.Good(v1alpha1.ReasonProvisioned, fmt.Sprintf("created in %d namespaces", made))
}

// report adds the result of a namespace to a status.
func report(st *v1alpha1.FanOutStatus, namespace string, is result) {
	if is.refused != "" {
		st.FailedNamespaces = append(st.FailedNamespaces, v1alpha1.NamespaceFailure{Namespace: namespace, Reason: is.refused})
		return
	}
	st.ProvisionedNamespaces = append(st.ProvisionedNamespaces, namespace)
}
