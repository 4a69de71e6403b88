// Package testenv is shared by the test suites of the controllers and of the operator: a control plane, operators
// with a fake provider, and functions that wait for expected states. Only tests import it.
package testenv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// A Plane is a control plane with the project's Kinds.
type Plane = operatortest.Plane

// StartPlane starts a control plane for one test.
func StartPlane(t *testing.T) *Plane {
	t.Helper()
	p, err := startPlane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func startPlane(ctx context.Context) (*Plane, error) {
	c, err := controlplane.Start(ctx, controlplane.WithCRDs(controlplane.Manifests(fake.CRDs, manifests.CRDs)...), controlplane.WithAuditLog())
	if err != nil {
		return nil, err
	}
	return operatortest.NewPlane(c, corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme, fakev1.AddToScheme)
}

// A lazy plane starts when the first test needs it, so a package starts only the planes that its selected tests use.
type lazy struct {
	once  sync.Once
	plane *Plane
	err   error
}

func (l *lazy) get(t *testing.T) *Plane {
	t.Helper()
	l.once.Do(func() { l.plane, l.err = startPlane(context.Background()) })
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.plane
}

// shared is the control plane on which each test has its own namespace and operators. wide is the one on which one
// operator serves all namespaces.
var shared, wide lazy

// Shared returns the control plane that the tests of a package share.
func Shared(t *testing.T) *Plane {
	t.Helper()
	return shared.get(t)
}

// Main is the body of a TestMain. It runs the tests of a package, and stops the shared control planes.
func Main(m controlplane.Runner) {
	ctrl.SetLogger(logr.Discard()) // This must precede tests that start planes at the same time.
	code := m.Run()
	var errs []error
	if everywhere.end != nil {
		errs = append(errs, everywhere.end())
	}
	for _, l := range []*lazy{&shared, &wide} {
		if l.plane != nil {
			errs = append(errs, l.plane.Cluster.Stop())
		}
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "cannot stop what tests have shared:", err)
		code = 1
	}
	os.Exit(code)
}

// RandomName returns a unique name.
func RandomName() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
