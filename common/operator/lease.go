package operator

import (
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// renewDeadline is that of controller-runtime's leader election.
const renewDeadline = 10 * time.Second

// namespaceFile holds the namespace of a pod; see
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lock returns the Lease by which one replica leads; nil without leader election. It emits no event,
// as the default one does at each start: a restart writes nothing but the Lease.
func (o *Operator) lock(cfg *rest.Config) (resourcelock.Interface, error) {
	if !o.flags.LeaderElect {
		return nil, nil //nolint:nilnil // No lock is a choice, not an error.
	}
	namespace := o.flags.LeaderElectNamespace
	if namespace == "" {
		raw, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, errors.New("--leader-election-namespace must be set outside a cluster")
		}
		namespace = strings.TrimSpace(string(raw))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot name this replica")
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, o.leaseName(),
		resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()}, cfg, renewDeadline)
	return lock, errors.Wrap(err, "cannot make the lease")
}

func (o *Operator) leaseName() string {
	if o.flags.ControllerClass == "" {
		return o.name + "." + v1alpha1.Group
	}
	return o.name + "." + o.flags.ControllerClass + "." + v1alpha1.Group
}
