package simulation

import (
	"context"
	"encoding/base64"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// Namespace is the namespace of all objects of a scenario.
const Namespace = "shop"

// project returns the Kinds of the project and their scheme, once, because creating them takes long.
var project = sync.OnceValues(func() (*runtime.Scheme, *Kinds) {
	klog.SetLogger(logr.Discard()) // Silent watches cause log lines after minutes.
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, fakev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	kinds, err := NewKinds(controlplane.Manifests(fake.CRDs, manifests.CRDs)...)
	if err != nil {
		panic(err) // The CRDs are part of the program.
	}
	return scheme, kinds
})

// NewProjectServer returns an empty server of the project's Kinds.
func NewProjectServer() *APIServer { return NewAPIServer(project()) }

// Scheme returns the scheme of the project's Kinds.
func Scheme() *runtime.Scheme {
	s, _ := project()
	return s
}

// Add stores an object as a user does, before anything else happens.
func (r *Run) Add(o client.Object) {
	if err := r.User().Create(context.Background(), o, client.FieldOwner("user")); err != nil {
		panic(err)
	}
}

// User returns the client of a user, whose requests are executed at once.
func (r *Run) User() client.Client { return NewClient(r.Server, AtOnce) }

// Name returns the key of an object of a scenario.
func Name(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: name}
}

// Meta returns the metadata of an object of a scenario.
func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name}
}

// FakeStore returns a store over the run's Store.
func FakeStore(name string) *fakev1.FakeStore { return &fakev1.FakeStore{ObjectMeta: Meta(name)} }

// Update changes an object as a user does.
func Update[O client.Object](r *Run, o O, change func(O)) error {
	c := r.User()
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	change(o)
	return c.Update(context.Background(), o, client.FieldOwner("user"))
}

// Secret returns the value of a key in a Secret, and whether the Secret exists.
func (r *Run) Secret(name, key string) (string, bool) {
	o := r.Server.objects[Key{"Secret", Name(name)}]
	if o == nil {
		return "", false
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(text)
	return string(raw), err == nil
}

// NewWatches returns watches without events: scripts must contain the changes instead. Watches that an operator adds
// must be removed when it stops.
func NewWatches() *watch.Watches { return watch.New(blind{}) }

// blind is a client whose watches have no events.
type blind struct {
	metadata.Interface
	metadata.Getter
}

func (b blind) Resource(schema.GroupVersionResource) metadata.Getter { return b }

func (b blind) Namespace(string) metadata.ResourceInterface { return b }

func (b blind) Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
	return apiwatch.NewFake(), nil
}

// Silent drops events.
type Silent struct{}

var _ events.EventRecorder = Silent{}

// Eventf implements events.EventRecorder.
func (Silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
