package fanout

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// conclude writes the conditions; pending is how many namespaces nothing came of yet.
func conclude(st *v1alpha1.FanOutStatus, generation int64, pending int, invalid string) {
	status.Conclude(&st.Conditions, generation, verdict(st, pending, invalid))
}

// verdict says what has come of all namespaces. What failed in some is tried again; only a person can fix the spec.
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
			fmt.Sprintf("made in %d namespaces, not in %d: %s; see status.failedNamespaces", made, len(st.FailedNamespaces), strings.Join(names, ", ")))
	case pending > 0:
		return status.Failed(v1alpha1.ReasonPartlyProvisioned, fmt.Sprintf("made in %d namespaces so far, %d to go", made, pending))
	case made == 0:
		return status.Good(v1alpha1.ReasonNoNamespacesMatched, "no namespace matches namespaceSelectors or namespaces")
	}
	return status.Good(v1alpha1.ReasonProvisioned, fmt.Sprintf("made in %d namespaces", made))
}

// report enters what came of a namespace into a status.
func report(st *v1alpha1.FanOutStatus, namespace string, is result) {
	if is.refused != "" {
		st.FailedNamespaces = append(st.FailedNamespaces, v1alpha1.NamespaceFailure{Namespace: namespace, Reason: is.refused})
		return
	}
	st.ProvisionedNamespaces = append(st.ProvisionedNamespaces, namespace)
}
