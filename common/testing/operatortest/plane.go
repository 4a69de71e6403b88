package operatortest

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Plane is a control plane with a client.
type Plane struct {
	Cluster *controlplane.ControlPlane
	// API has all permissions.
	API client.WithWatch
}

// NewPlane returns a control plane with a client for the types that add registers.
func NewPlane(c *controlplane.ControlPlane, add ...func(*runtime.Scheme) error) (*Plane, error) {
	scheme := runtime.NewScheme()
	for _, add := range add {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	api, err := client.NewWithWatch(c.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Plane{Cluster: c, API: api}, nil
}

// Run runs an operator until the returned function is called.
func Run(o *operator.Operator) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}
