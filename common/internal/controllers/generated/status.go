package generated

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
)

// contributor is this operator, as it generates values for objects.
func (r *Reconciler) contributor() handoff.Contributor {
	return handoff.Contributor{Group: r.opts.Module, Class: r.opts.ControllerClass, Purpose: v1alpha1.PartGenerated}
}

// tell records the part in the status of the object, if the status does not say so already. m is nil if
// there is none.
func (p *pass) tell(ctx context.Context, m metav1.Object, anew bool) error {
	if isNil(m) {
		m = nil // Not a nil pointer in an interface.
	}
	told, err := handoff.Recorder{Client: p.client, Contributor: p.contributor()}.Tell(ctx, p.req.kind, p.user.Object, p.user.parts,
		handoff.Said{Part: m, Anew: anew, Class: p.failure.Class, Message: p.failure.Message}, p.obj.told)
	p.obj.told = told
	return err
}
