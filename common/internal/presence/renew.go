package presence

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewer renews the Lease of an operator. Each replica has one, and skips a renewal if another replica has renewed the
// Lease recently.
type renewer struct {
	// client reads and writes live.
	client   client.Client
	self     Member
	timing   Timing
	identity string
	key      client.ObjectKey
	// elected is closed when this replica becomes the leader.
	elected <-chan struct{}
	log     logr.Logger
	// fields knows which fields the CRDs miss.
	fields *fieldCheck

	// version is the resourceVersion of the Lease at the last check.
	version string
}

// NeedLeaderElection is false: a module is present while any of its replicas runs.
func (r *renewer) NeedLeaderElection() bool { return false }

// Start renews the Lease until ctx ends.
func (r *renewer) Start(ctx context.Context) error {
	elected := r.elected
	for {
		wait := r.timing.Renew
		if err := r.renew(ctx); err != nil && ctx.Err() == nil {
			r.log.Error(err, "cannot renew the presence Lease of this module", "lease", r.key.String())
			wait /= 4
		}
		select {
		case <-ctx.Done():
			return nil
		case <-elected:
			elected = nil // The new leader publishes its own Member at once.
		case <-time.After(wait):
		}
	}
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,roleName=leases

// renew renews the Lease, unless another replica has done so since the last check. While replicas differ, as in a
// rollout, the Lease has the Member of the leader.
func (r *renewer) renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := r.client.Get(ctx, r.key, lease)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the Lease")
	}
	absent := err != nil
	seen := r.version
	r.version = lease.ResourceVersion
	member := lease.Annotations[memberAnnotation]
	mine, err := encode(r.self)
	if err != nil {
		return err
	}
	missing := lease.Annotations[MissingFieldsAnnotation]
	if _, ok := Decode(lease); r.isLeader() || !ok {
		member, missing = mine, r.fields.result(missing)
	}
	if !absent && seen != "" && seen != lease.ResourceVersion &&
		member == lease.Annotations[memberAnnotation] && missing == lease.Annotations[MissingFieldsAnnotation] {
		return nil
	}
	r.fill(lease, member, missing)
	if absent {
		err = r.client.Create(ctx, lease)
	} else {
		err = r.client.Update(ctx, lease)
	}
	if kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) {
		return nil // Another replica was faster.
	}
	if err == nil {
		r.version = lease.ResourceVersion
	}
	return errors.Wrap(err, "cannot write the Lease")
}

func (r *renewer) fill(lease *coordinationv1.Lease, member, missing string) {
	lease.Namespace, lease.Name = r.key.Namespace, r.key.Name
	metav1.SetMetaDataLabel(&lease.ObjectMeta, Label, "true")
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, memberAnnotation, member)
	delete(lease.Annotations, MissingFieldsAnnotation)
	if missing != "" {
		lease.Annotations[MissingFieldsAnnotation] = missing
	}
	now, seconds := metav1.NowMicro(), int32(max(1, r.timing.Duration/time.Second))
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &r.identity, &now, &seconds
}

func (r *renewer) isLeader() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}
