package presence

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Releasing a lock is an update; a Lease is never deleted.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,roleName=leases

// NewLock returns a lock on a Lease. identity is the name of the holder, and timeout that of one request. The lock has a
// client for Leases only, because the client of client-go's lock has one per API group, which needs memory. It emits no
// events.
func NewLock(cfg *rest.Config, key types.NamespacedName, identity string, timeout time.Duration) (resourcelock.Interface, error) {
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	cfg.Timeout = timeout
	c, err := coordinationv1client.NewForConfig(cfg)
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Client:     c,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, errors.Wrap(err, "cannot create a client for Leases")
}

// RequestTimeout returns the timeout of one request of a lock, for a holder that stops after deadline without a
// renewal.
func RequestTimeout(deadline time.Duration) time.Duration { return max(deadline/2, time.Second) }
