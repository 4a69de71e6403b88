// Package operatortest runs the operator of a module on a real control plane: what the tests of all
// providers have in common.
//
//	var suite operatortest.Suite
//
//	func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }
package operatortest

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// maxCRD is the size in bytes that a CustomResourceDefinition may have.
const maxCRD = 60_000

// A Suite is the control plane of a test package. Main fills it.
type Suite struct {
	Cluster *controlplane.ControlPlane
	// API has all rights.
	API client.Client
}

// Main is the body of a TestMain. The control plane serves the ExternalSecret and the Kinds of kinds,
// whose Go types add registers.
func (s *Suite) Main(m controlplane.Runner, add func(*runtime.Scheme) error, kinds fs.FS) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme, add} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		var err error
		s.Cluster = c
		s.API, err = client.New(c.Config(), client.Options{Scheme: scheme})
		return err
	}, controlplane.WithCRDs(controlplane.Manifests(manifests.CRDs, kinds)...))
}

// Create creates an object. It goes when the test ends, unless it is a namespace: those never go on a
// control plane without their controller.
func (s *Suite) Create(t testing.TB, o client.Object, opts ...client.CreateOption) {
	t.Helper()
	if err := s.API.Create(t.Context(), o, opts...); err != nil {
		t.Fatalf("create %T %s: %s", o, o.GetName(), err)
	}
	if _, ok := o.(*corev1.Namespace); ok || len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
		return
	}
	t.Cleanup(func() {
		if err := s.API.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %T %s: %s", o, o.GetName(), err)
		}
	})
}

// Namespace creates a namespace.
func (s *Suite) Namespace(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// Secret creates a Secret, for example one that holds a credential.
func (s *Suite) Secret(t testing.TB, namespace, name string, data map[string]string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	s.Create(t, secret)
	return secret
}

// Grant makes the ClusterRoles of a manifest and binds them to a ServiceAccount, as which the
// configuration that it returns acts.
func (s *Suite) Grant(t testing.TB, namespace, name string, roles []byte) *rest.Config {
	t.Helper()
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(roles, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, role); err != nil {
			t.Fatal(err)
		}
		s.Create(t, role)
		s.Create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	}
	return account
}

// Start runs the operator of a module until the test ends, over the whole cluster. It has the rights of
// a manifest and no others.
func (s *Suite) Start(t testing.TB, name string, rights []byte, module func(...operator.Option) *operator.Operator) {
	t.Helper()
	account := s.Grant(t, name, name, rights)
	run(t, module(operator.WithConfig(account), operator.WithFlags(func(f *operator.Flags) {
		f.MetricsAddress, f.ProbeAddress, f.LeaderElectNamespace = "0", "0", name
	})))
}

// run runs an operator until the test ends.
func run(t testing.TB, o *operator.Operator) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("operator: %s", err)
		}
	})
}

// Data returns what a Secret holds; nothing if there is none.
func (s *Suite) Data(t testing.TB, namespace, name string) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.API.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for k, v := range secret.Data {
		texts[k] = string(v)
	}
	return texts
}

// Ready reads a store or an ExternalSecret and returns status and reason of its Ready condition, for
// example "True Valid".
func (s *Suite) Ready(t testing.TB, o client.Object) string {
	t.Helper()
	c := s.condition(t, o)
	return string(c.Status) + " " + c.Reason
}

// Says is Ready with the message of the condition behind it.
func (s *Suite) Says(t testing.TB, o client.Object) string {
	t.Helper()
	c := s.condition(t, o)
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

// condition reads a store or an ExternalSecret and returns its Ready condition.
func (s *Suite) condition(t testing.TB, o client.Object) metav1.Condition {
	t.Helper()
	if err := s.API.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	var conditions []metav1.Condition
	switch o := o.(type) {
	case provider.Object:
		conditions = o.StoreStatus().Conditions
	case *v1alpha1.ExternalSecret:
		conditions = o.Status.Conditions
	case *v1alpha1.PushSecret:
		conditions = o.Status.Conditions
	}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Reason: "no condition"}
}

// ExternalSecret returns one that keeps some properties of a remote secret, each under its own name.
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

// over returns an ExternalSecret over a store; one that takes all if that is a generator.
func (s *Suite) over(t testing.TB, o provider.Object, namespace, name, key string, properties ...string) *v1alpha1.ExternalSecret {
	t.Helper()
	if _, ok := o.(provider.GeneratorObject); ok {
		return Generated(namespace, name, s.Kind(t, o), o.GetName())
	}
	return ExternalSecret(namespace, name, s.Kind(t, o), o.GetName(), key, properties...)
}

// Kind returns the Kind of an object.
func (s *Suite) Kind(t testing.TB, o client.Object) string {
	t.Helper()
	gvk, err := s.API.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	return gvk.Kind
}

// Accepts checks that the API server takes an object, or where want is not empty, that it refuses it
// with a message that contains want. The object is not kept.
func (s *Suite) Accepts(t testing.TB, reason string, o client.Object, want string) {
	t.Helper()
	switch err := s.API.Create(t.Context(), o, client.DryRunAll); {
	case want == "" && err != nil:
		t.Errorf("%s\n%T: error %v, want none", reason, o, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s\n%T: error %v, want %q", reason, o, err, want)
	}
}

// Examples checks that the API server takes each document of a manifest, in the namespace default; a
// field that it does not know is an error. The objects are not kept.
func (s *Suite) Examples(t testing.TB, manifest []byte) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	strict := client.WithFieldValidation(s.API, metav1.FieldValidationStrict)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() != "" {
			o.SetNamespace("default")
		}
		if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), err)
		}
	}
}

// CheckCRDs checks what every CustomResourceDefinition of the project has to keep to.
func CheckCRDs(t testing.TB, kinds fs.FS) {
	t.Helper()
	for _, crd := range controlplane.Manifests(kinds) {
		if len(crd) > maxCRD {
			t.Errorf("a CRD has %d bytes, and at most %d are allowed", len(crd), maxCRD)
		}
		if bytes.Contains(crd, []byte(" default: ")) {
			t.Error("a CRD has a default: it would show as drift in what persons and tools applied")
		}
	}
}
