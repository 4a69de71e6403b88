// Package stack runs everything that a scenario needs: a real control plane, an emulator of AWS, and modules as
// separate processes, each with only the permissions of its ServiceAccount.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// Namespace is the namespace of the modules' ServiceAccounts and Leases.
const Namespace = "direct-secrets"

// These are the credentials that the emulator accepts by default.
const (
	AccessKeyID     = "test"
	SecretAccessKey = "test"
	Region          = "eu-central-1"
)

// A Stack is a running control plane with an emulator.
type Stack struct {
	*controlplane.ControlPlane
	// Installation describes how StartModule and similar methods deploy modules.
	*Installation
	// Admin is a client with all permissions, without a cache and without a rate limit.
	Admin client.Client
	// AWS is the emulator.
	AWS *emulator.Server

	dir     string
	modules []module
	guest   *guest
}

// Options are the settings of a Stack.
type Options struct {
	// Audit enables a log of all requests to the API server.
	Audit bool
	// Output receives the output of the servers; nil discards it.
	Output io.Writer
	// ControlPlane are further options of the control plane.
	ControlPlane []controlplane.Option
	// AWS are options of the emulator.
	AWS []emulator.Option
	// Bare leaves the cluster empty: Install creates the CRDs and the permissions. Otherwise the Stack creates
	// them as the modules ship them.
	Bare bool
	// Modules are the modules whose CRDs and permissions the Stack creates; the default is all.
	Modules []string
	// Cluster is an existing cluster, for example kind; the default is a control plane that the Stack starts.
	// The cluster must not contain any object that the Stack creates. Stop deletes these objects, and
	// Namespaces, which the caller creates.
	Cluster    *rest.Config
	Namespaces []string
}

// Start starts a Stack. The caller must call Stop, which also removes its files.
func Start(ctx context.Context, o Options) (s *Stack, err error) {
	s = &Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
			s = nil
		}
	}()
	if s.dir, err = os.MkdirTemp("", "direct-secrets-"); err != nil {
		return s, err
	}
	if s.modules, err = chosen(o.Modules); err != nil {
		return s, err
	}
	if err := s.join(ctx, o); err != nil {
		return s, err
	}
	if s.AWS, err = emulator.Start(append([]emulator.Option{emulator.WithRegion(Region)}, o.AWS...)...); err != nil {
		return s, err
	}
	s.Installation = plain(s)
	if o.Bare {
		return s, nil
	}
	return s, s.grant(ctx)
}

// join starts a control plane, or uses the given cluster.
func (s *Stack) join(ctx context.Context, o Options) (err error) {
	if o.Cluster == nil {
		s.ControlPlane, err = controlplane.Start(ctx, options(s.modules, o)...)
	} else {
		s.ControlPlane, err = controlplane.Attach(o.Cluster)
	}
	if err != nil {
		return err
	}
	if s.Admin, err = client.New(s.Config(), client.Options{Scheme: Scheme()}); err != nil || o.Cluster == nil {
		return err
	}
	g, err := newGuest(s.Admin, s.modules, o.Namespaces)
	if err != nil {
		return err
	}
	if err := g.arrive(ctx); err != nil {
		return err
	}
	s.guest = g
	return s.InstallCRDs(ctx, crdsOf(s.modules)...)
}

func options(modules []module, o Options) []controlplane.Option {
	var opts []controlplane.Option
	if !o.Bare {
		opts = append(opts, controlplane.WithCRDs(crdsOf(modules)...))
	}
	if o.Audit {
		opts = append(opts, controlplane.WithAuditLog())
	}
	if o.Output != nil {
		opts = append(opts, controlplane.WithOutput(o.Output))
	}
	return append(opts, o.ControlPlane...)
}

// crdsOf returns the CRDs of common and of modules.
func crdsOf(modules []module) [][]byte {
	all := []fs.FS{manifests.CRDs}
	for _, m := range modules {
		all = append(all, m.crds)
	}
	return controlplane.Manifests(all...)
}

// Scheme returns the types that scenarios use.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	adds := []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme}
	for _, add := range append(adds, kindTypes...) {
		if err := add(scheme); err != nil {
			panic(err) // This happens only if two types have the same name.
		}
	}
	return scheme
}

// Stop stops the servers. Processes must have ended before. It returns an error if one of them has reported a
// data race or a panic.
func (s *Stack) Stop() error {
	errs := []error{s.faults()}
	if s.guest != nil {
		errs = append(errs, s.guest.disconnect())
	}
	if s.ControlPlane != nil {
		errs = append(errs, s.ControlPlane.Stop())
	}
	if s.AWS != nil {
		errs = append(errs, s.AWS.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// faults returns an error for data races, of binaries that detect them, and for panics in the logs of
// processes, even if the controller continued after it.
func (s *Stack) faults() error {
	logs, err := filepath.Glob(filepath.Join(s.dir, "*.log"))
	if err != nil || s.dir == "" {
		return err
	}
	var errs []error
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := fault.FindIndex(text); at != nil {
			errs = append(errs, fmt.Errorf("%s: %s", filepath.Base(path), text[at[0]:min(len(text), at[0]+8000)]))
		}
	}
	return errors.Join(errs...)
}

var fault = regexp.MustCompile(`(?m)^WARNING: DATA RACE|^panic: |^fatal error: |"panic: .*\[recovered\]`)

// grant gives the ServiceAccount of each module the permissions that the module ships.
func (s *Stack) grant(ctx context.Context) error {
	if err := s.CreateNamespace(ctx, Namespace); err != nil {
		return err
	}
	for _, m := range s.modules {
		if err := s.grantTo(ctx, m); err != nil {
			return fmt.Errorf("cannot grant %s its permissions: %w", m.name, err)
		}
	}
	return nil
}

func (s *Stack) grantTo(ctx context.Context, m module) error {
	for _, doc := range Documents(m.rbac) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(doc, &role); err != nil {
			return err
		}
		if err := s.Admin.Create(ctx, &role); err != nil {
			return err
		}
		if err := s.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: m.name}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// CreateNamespace creates a namespace.
func (s *Stack) CreateNamespace(ctx context.Context, name string) error {
	return client.IgnoreAlreadyExists(s.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// writeKubeconfig writes a kubeconfig to a new file, and returns its path.
func (s *Stack) writeKubeconfig(module string, raw []byte) (string, error) {
	// Each process has its own file: if one were rewritten while another process reads it, that process would
	// have no cluster.
	f, err := os.CreateTemp(s.dir, module+"-*.kubeconfig") // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(raw)
	return f.Name(), errors.Join(err, f.Close())
}
