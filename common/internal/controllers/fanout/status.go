package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// report enters a namespace into a status; false if nothing came of it yet.
func (r *reconciler) report(parent client.Object, namespace string, st *v1alpha1.FanOutStatus) bool {
	is, ok := r.board.get(parent, namespace)
	switch {
	case !ok:
	case is.refused != "":
		st.FailedNamespaces = append(st.FailedNamespaces, v1alpha1.NamespaceFailure{Namespace: namespace, Reason: is.refused})
	default:
		st.ProvisionedNamespaces = append(st.ProvisionedNamespaces, namespace)
	}
	return ok
}

// conclude writes the condition; pending is how many namespaces nothing came of yet.
func conclude(st *v1alpha1.FanOutStatus, generation int64, pending int, invalid string) {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, ObservedGeneration: generation, Status: metav1.ConditionFalse}
	switch made := len(st.ProvisionedNamespaces); {
	case invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, invalid
	case len(st.FailedNamespaces) > 0:
		var names []string
		for _, f := range st.FailedNamespaces[:min(len(st.FailedNamespaces), 5)] {
			names = append(names, f.Namespace)
		}
		c.Reason = v1alpha1.ReasonPartlyProvisioned
		c.Message = fmt.Sprintf("made in %d namespaces, not in %d: %s; see status.failedNamespaces", made, len(st.FailedNamespaces), strings.Join(names, ", "))
	case pending > 0:
		c.Reason = v1alpha1.ReasonPartlyProvisioned
		c.Message = fmt.Sprintf("made in %d namespaces so far, %d to go", made, pending)
	case made == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNoNamespacesMatched, "no namespace matches namespaceSelectors or namespaces"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonProvisioned, fmt.Sprintf("made in %d namespaces", made)
	}
	meta.SetStatusCondition(&st.Conditions, c)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets/status;clusterpushsecrets/status,verbs=patch,roleName=cluster

// patch writes a status that has changed.
func (r *reconciler) patch(ctx context.Context, parent client.Object, before, next *v1alpha1.FanOutStatus) error {
	if equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": parent.GetUID()},
		"status": map[string]any{
			"observedGeneration": next.ObservedGeneration, "provisionedNamespaces": next.ProvisionedNamespaces,
			"failedNamespaces": next.FailedNamespaces, "conditions": next.Conditions,
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot encode the status")
	}
	o := r.kind.Parent()
	o.SetName(parent.GetName())
	err = r.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, body))
	return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
}
