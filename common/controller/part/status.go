package part

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/controller/partstatus"
	"github.com/direct-secrets/direct-secrets/common/part"
)

// module is the name under which this operator records its parts.
func (r *Reconciler) module() string { return part.ModuleName(r.opts.Module, r.opts.ControllerClass) }

// tell records the part in the status of the object, if the status does not say so already. m is nil if
// there is none.
func (p *pass) tell(ctx context.Context, m metav1.Object, anew bool) error {
	if isNil(m) {
		m = nil // Not a nil pointer in an interface.
	}
	told, err := partstatus.Recorder{Client: p.client, Module: p.module()}.Tell(ctx, p.req.kind, p.user.Object, p.user.parts,
		partstatus.Said{Part: m, Anew: anew, Message: p.message}, p.obj.told)
	p.obj.told = told
	return err
}
