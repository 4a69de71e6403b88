package operator

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// Timing of the Lease by which one replica leads; see k8s.io/client-go/tools/leaderelection. A replica that waits looks
// every 1 to 2.2 retry periods, so it sees the last renewal late, and then that the Lease has run out. It allows for
// both, so that after a crash another leads, and what changed meanwhile is in step, before leaseDuration is over. A
// leader that cannot renew tries for renewDeadline, from one retryPeriod after the last renewal on. So it ends three
// seconds before another replica may lead: leaseDuration - lateness - retryPeriod - renewDeadline. The answer to the
// last renewal may have taken half of renewDeadline; then half a second is left.
const (
	leaseDuration = 15 * time.Second
	lateness      = 6 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// An early lock is that of a replica which takes over before the Lease of another has run out by its own count.
type early struct{ resourcelock.Interface }

// Get returns what the Lease says.
func (e early) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := e.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != e.Identity() {
		r.LeaseDurationSeconds -= int(lateness.Seconds())
	}
	return r, raw, err
}

// namespaceFile holds the namespace of a pod; see
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lock returns the Lease by which one replica leads; nil without leader election. It emits no event,
// as the default one does at each start: a restart writes nothing but the Lease.
func (o *Operator) lock(cfg *rest.Config) (resourcelock.Interface, error) {
	if !o.flags.LeaderElect {
		return nil, nil //nolint:nilnil // No lock is a choice, not an error.
	}
	namespace := o.ownNamespace()
	if namespace == "" {
		return nil, errors.New("--leader-election-namespace must be set outside a cluster")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot name this replica")
	}
	lock, err := presence.NewLock(cfg, types.NamespacedName{Namespace: namespace, Name: o.leaseName()}, host+"_"+uuid.NewString(), renewDeadline)
	return early{lock}, errors.Wrap(err, "cannot make the lease")
}

// ownNamespace is that of the operator's Leases; empty where none is known.
func (o *Operator) ownNamespace() string {
	if o.flags.LeaderElectNamespace != "" {
		return o.flags.LeaderElectNamespace
	}
	if o.config != nil {
		return "" // A pod that runs tests is in another cluster.
	}
	raw, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// presenceNamespace is that of the Leases by which modules know of each other; empty where presence is off.
func (o *Operator) presenceNamespace() string {
	return cmp.Or(o.flags.PresenceNamespace, o.ownNamespace())
}

// self is what this operator tells of itself.
func (o *Operator) self(scheme *runtime.Scheme) (presence.Member, error) {
	m := presence.Member{
		Module: o.group, Name: o.name, Class: o.flags.ControllerClass,
		Namespaces: o.flags.namespaces(), Version: cmp.Or(o.version, presence.Version()),
	}
	for _, k := range o.kinds {
		gvk, err := apiutil.GVKForObject(k.New(), scheme)
		if err != nil {
			return presence.Member{}, errors.Wrap(err, "cannot name a Kind")
		}
		m.Kinds = append(m.Kinds, presence.Kind{Group: gvk.Group, Kind: gvk.Kind, Cluster: k.Cluster})
	}
	return m, nil
}

func (o *Operator) leaseName() string {
	if o.flags.ControllerClass == "" {
		return o.name + "." + v1alpha1.Group
	}
	return o.name + "." + o.flags.ControllerClass + "." + v1alpha1.Group
}
