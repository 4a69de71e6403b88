// Package operatortest runs the operator of a module on a real control plane. It has the tests that all providers
// share.
//
//	var suite operatortest.Suite
//
//	func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }
package operatortest

import (
	"bytes"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Suite is the control plane of a test package, on which it starts operators. Main sets it up.
type Suite struct {
	*Plane

	mu sync.Mutex
	// refusals are the answers of the API server to objects that break a rule.
	refusals []string
	// accounts are the results of Grant.
	accounts map[grant]*rest.Config
	// end ends the operator of Start, which shared describes; nil if none runs.
	end    func() error
	shared grant
}

// grant are the arguments of Grant.
type grant struct{ namespace, name, roles string }

// Main is the body of a TestMain. The control plane serves the CRDs of common and of kinds, whose Go types add
// registers. Each rule of these Kinds must be broken by a call of Accepts in a test; the rules that all Kinds share
// are tested elsewhere.
func (s *Suite) Main(m controlplane.Runner, add func(*runtime.Scheme) error, kinds fs.FS) {
	m = ruled{m, s, kinds, []fs.FS{manifests.CRDs, fake.CRDs}}
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		var err error
		s.Plane, err = NewPlane(c, corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme, add)
		return err
	}, controlplane.WithCRDs(controlplane.Manifests(manifests.CRDs, kinds)...))
}

// For returns the client of a test. It deletes what it creates when the test ends.
func (s *Suite) For(t testing.TB) *Client {
	return &Client{TB: t, Plane: s.Plane, Ctx: t.Context(), Deletes: true}
}

// Grant creates the ClusterRoles of a manifest, and binds them to a ServiceAccount. It returns a configuration for
// that ServiceAccount. Both exist until all tests of the package have ended.
func (s *Suite) Grant(t testing.TB, namespace, name string, roles []byte) *rest.Config {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := grant{namespace, name, string(roles)}
	if account := s.accounts[key]; account != nil {
		return account
	}
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c := s.For(t)
	c.Deletes = false
	for doc := range bytes.SplitSeq(roles, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, role); err != nil {
			t.Fatal(err)
		}
		c.Create(role)
		c.Create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	}
	if s.accounts == nil {
		s.accounts = map[grant]*rest.Config{}
	}
	s.accounts[key] = account
	return account
}

// Start runs the operator of a module for the whole cluster, with only the permissions of a manifest. The tests of a
// package share it, so the name, the permissions and the module must be the same in all of them; see StartAlone.
func (s *Suite) Start(t testing.TB, name string, permissions []byte, module func(...operator.Option) *operator.Operator) {
	t.Helper()
	wants := grant{name, name, string(permissions)}
	s.mu.Lock()
	other := s.end != nil && s.shared != wants
	s.mu.Unlock()
	if other {
		t.Fatalf("operator %q: the tests of this package share one with another name or other permissions; use StartAlone", name)
	}
	account := s.Grant(t, name, name, permissions)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end, s.shared = Run(served(account, name, module)), wants
	}
}

// StartAlone runs an operator like that of Start until the test ends. It ends the one that other tests share, so none
// of them may run at the same time.
func (s *Suite) StartAlone(t testing.TB, name string, permissions []byte, module func(...operator.Option) *operator.Operator) {
	t.Helper()
	account := s.Grant(t, name, name, permissions)
	if err := s.stop(); err != nil {
		t.Errorf("operator: %s", err)
	}
	end := Run(served(account, name, module))
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("operator: %s", err)
		}
	})
}

// served returns the operator of a module with the flags of tests.
func served(account *rest.Config, name string, module func(...operator.Option) *operator.Operator) *operator.Operator {
	return module(operator.WithConfig(account), operator.WithFlags(func(f *operator.Flags) {
		f.MetricsAddress, f.ProbeAddress, f.LeaderElectNamespace = "0", "0", name
		f.RenewDeadline, f.LeaseDuration = time.Minute, 90*time.Second // The API server may answer late while other tests run.
	}))
}

// stop ends the operator of Start.
func (s *Suite) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		return nil
	}
	defer func() { s.end = nil }()
	return s.end()
}

// ExternalSecret returns an object that reads properties of a remote secret, each into the key of the same name.
func ExternalSecret(namespace, name, kind, store, key string, properties ...string) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: kind, Name: store}},
	}
	for _, p := range properties {
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: p, RemoteRef: v1alpha1.RemoteRef{Key: key, Property: p}})
	}
	return es
}

// over returns an ExternalSecret for a store; for a generator, one with all its values.
func over(c *Client, o provider.Object, namespace, name, key string, properties ...string) *v1alpha1.ExternalSecret {
	c.Helper()
	gvk, err := c.API.GroupVersionKindFor(o)
	if err != nil {
		c.Fatal(err)
	}
	// A module of another repository has a group that is not below direct-secrets.io.
	if _, ok := o.(provider.GeneratorObject); ok {
		es := Generated(namespace, name, gvk.Kind, o.GetName())
		es.Spec.DataFrom[0].SourceRef.GeneratorRef.APIVersion = gvk.GroupVersion().String()
		return es
	}
	es := ExternalSecret(namespace, name, gvk.Kind, o.GetName(), key, properties...)
	es.Spec.StoreRef.APIVersion = gvk.GroupVersion().String()
	return es
}
