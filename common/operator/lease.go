package operator

import (
	"cmp"
	"context"
	"net/netip"
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

// The default timing of the leader's Lease; see k8s.io/client-go/tools/leaderelection. A standby replica checks the Lease
// every 1 to 2.2 retry periods, so it sees the last renewal late, and then the expiry late. lateness compensates for
// both. So after a crash another replica leads, and has processed the changes since then, within leaseDuration.
//
// A leader that cannot renew tries for renewDeadline, starting one retryPeriod after the last renewal. So it stops
// three seconds (margin) before another replica can lead: leaseDuration - lateness - retryPeriod - renewDeadline. If the
// answer to the last renewal took as long as requestTimeout, half a second is left.
//
// A rollout can change the times. So a standby replica calculates with those of the leader: the duration is in the
// Lease, and the retry period at the end of the holder's identity.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
	margin        = 3 * time.Second
)

// lateness is how much later than a Lease ends a standby replica would lead.
func lateness(retryPeriod time.Duration) time.Duration { return 6 * retryPeriod }

// checkTiming returns an error if a leader could still be active when another replica leads, or if a Lease could not be
// written with these times.
func (l *leases) checkTiming() error {
	least := l.RenewDeadline + l.RetryPeriod + lateness(l.RetryPeriod) + margin
	switch {
	case l.RetryPeriod < 100*time.Millisecond:
		return errors.Errorf("--leader-election-retry-period is %s; it must be at least 100ms", l.RetryPeriod)
	case l.RenewDeadline < 2*l.RetryPeriod:
		return errors.Errorf("--leader-election-renew-deadline is %s; it must be at least twice --leader-election-retry-period, %s", l.RenewDeadline, 2*l.RetryPeriod)
	case l.LeaseDuration < least:
		return errors.Errorf("--leader-election-lease-duration is %s; it must be at least %s, which is --leader-election-renew-deadline + 7 * --leader-election-retry-period + %s", l.LeaseDuration, least, margin)
	}
	return nil
}

// requestTimeout returns the timeout of one request for the Lease. A leader counts renewDeadline from an answer, and
// the others count the duration from the write, which has whole seconds.
func (l *leases) requestTimeout() time.Duration {
	spare := l.LeaseDuration.Truncate(time.Second) - lateness(l.RetryPeriod) - l.RetryPeriod - l.RenewDeadline
	return min(presence.RequestTimeout(l.RenewDeadline), spare-500*time.Millisecond)
}

// identity returns the identity of a replica in the Lease. receiver is where it receives events; it can be invalid.
func (l *leases) identity(replica string, receiver netip.AddrPort) string {
	if receiver.IsValid() {
		replica += "_" + receiver.String()
	}
	return replica + "_" + l.RetryPeriod.String()
}

// early is the lock of a replica that takes over before the Lease of another one has expired by its own duration.
type early struct{ resourcelock.Interface }

// Get returns the Lease's record, with a shorter duration if another replica holds it.
func (e early) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := e.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != e.Identity() {
		r.LeaseDurationSeconds -= int(holderLateness(r).Seconds())
	}
	return r, raw, err
}

// holderLateness returns the lateness for which the holder of a Lease has made its duration longer; 0 if that is
// unknown, as for a holder of an earlier version, or if checkTiming would refuse it.
func holderLateness(r *resourcelock.LeaderElectionRecord) time.Duration {
	period, err := time.ParseDuration(r.HolderIdentity[strings.LastIndex(r.HolderIdentity, "_")+1:])
	times := leases{LeaseDuration: time.Duration(r.LeaseDurationSeconds+1) * time.Second, RenewDeadline: 2 * period, RetryPeriod: period}
	if err != nil || period > times.LeaseDuration || times.checkTiming() != nil {
		return 0
	}
	return lateness(period)
}

// namespaceFile has the namespace of a pod; see
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lock returns the Lease for leader election; nil without leader election. It emits no events, unlike the default
// lock, which emits one at each start: a restart writes only the Lease.
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
		return nil, errors.Wrap(err, "cannot determine the name of this replica")
	}
	identity := o.flags.identity(host+"_"+uuid.NewString(), o.flags.receiverAddress())
	lock, err := presence.NewLock(cfg, types.NamespacedName{Namespace: namespace, Name: o.leaseName()}, identity, o.flags.requestTimeout())
	return early{lock}, errors.Wrap(err, "cannot create the leader election Lease")
}

// ownNamespace returns the namespace of the operator's Leases; empty if it is unknown.
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

// presenceNamespace returns the namespace of the Leases by which modules find each other; empty if presence is off.
func (o *Operator) presenceNamespace() string {
	return cmp.Or(o.flags.PresenceNamespace, o.ownNamespace())
}

// self returns the data of this operator for its Lease.
func (o *Operator) self(scheme *runtime.Scheme) (presence.Member, error) {
	m := presence.Member{
		Module: o.group, Name: o.name, Class: o.flags.ControllerClass,
		Namespaces: o.flags.namespaces(), Version: cmp.Or(o.version, presence.Version()),
	}
	m.Common = presence.WorksWith(m.Version)
	for _, k := range o.kinds {
		gvk, err := apiutil.GVKForObject(k.New(), scheme)
		if err != nil {
			return presence.Member{}, errors.Wrap(err, "cannot determine the Kind of a type")
		}
		m.Kinds = append(m.Kinds, presence.Kind{Group: gvk.Group, Kind: gvk.Kind, Cluster: k.Cluster})
	}
	return m, nil
}

// leaseName returns the name of the Lease for leader election. The chart names it after the release and the module,
// because no upgrade of a release changes these: neither a changed class, nor changed namespaces or object names.
func (o *Operator) leaseName() string {
	if o.flags.LeaderElectID != "" {
		return o.flags.LeaderElectID
	}
	if o.flags.ControllerClass == "" {
		return o.name + "." + v1alpha1.Group
	}
	return o.name + "." + o.flags.ControllerClass + "." + v1alpha1.Group
}
