package testenv

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// ClusterEnv is a cluster store with its own backend, and namespaces whose names start with its name. One operator
// serves all tests of a package. It needs the whole cluster, so these tests have a control plane of their own.
type ClusterEnv struct {
	// Client is the client for cluster objects.
	*Client
	Name    string
	Server  *fake.Server
	Backend *fake.Backend
	// EventsURL is where the operator receives events.
	EventsURL string
}

// everywhere is the operator for the whole cluster, and its provider.
var everywhere struct {
	once   sync.Once
	server *fake.Server
	events string
	end    func() error
}

// Receiving returns a flag by which an operator receives events, and the URL for that, which ends in a slash.
func Receiving(t testing.TB) (set func(*operator.Flags), url string) {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + ports[0]
	return func(f *operator.Flags) { f.EventReceiverAddress = address }, "http://" + address + "/events/"
}

// wideServed returns the control plane on which one operator serves all namespaces.
func wideServed(t *testing.T) *Plane {
	t.Helper()
	p := wide.get(t)
	everywhere.once.Do(func() {
		everywhere.server = fake.NewServer()
		receive, url := Receiving(t)
		everywhere.events = url
		everywhere.end = operatortest.Run(operatorOf("provider-fake", fakev1.Group, p.Cluster.Config(), kindsOf(everywhere.server), operator.WithFlags(receive), operator.WithFlags(func(f *operator.Flags) {
			f.ProviderTimeout, f.ConfigMapTargets = 5*time.Second, true
		})))
	})
	return p
}

// deletePushes deletes the PushSecrets of a namespace when the test ends, because the removals of other tests wait for them.
func deletePushes(t testing.TB, c *Client) {
	t.Cleanup(func() {
		if err := c.API.DeleteAllOf(context.Background(), &v1alpha1.PushSecret{}, client.InNamespace(c.NS)); err != nil {
			t.Error(err)
		}
	})
}

// NewCluster creates a cluster store.
func NewCluster(t *testing.T, spec v1alpha1.ClusterStoreSpec, change ...func(*fakev1.ClusterFakeStore)) *ClusterEnv {
	t.Helper()
	t.Parallel()
	p := wideServed(t)
	name := nameOf(t)
	e := &ClusterEnv{Client: NewClient(t, p, ""), Name: name, Server: everywhere.server, Backend: everywhere.server.Backend(name), EventsURL: everywhere.events}
	s := &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: fakev1.ClusterFakeStoreSpec{
		FakeStoreSpec: fakev1.FakeStoreSpec{Backend: name}, ClusterStoreSpec: spec,
	}}
	for _, f := range change {
		f(s)
	}
	e.Create(s)
	return e
}

// runs counts the runs of each test, because cluster objects of a former run still exist.
var runs struct {
	sync.Mutex
	of map[string]int
}

// nameOf returns a name for the cluster objects of a test.
func nameOf(t *testing.T) string {
	t.Helper()
	name := "s" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	runs.Lock()
	defer runs.Unlock()
	if runs.of == nil {
		runs.of = map[string]int{}
	}
	if runs.of[name]++; runs.of[name] > 1 {
		name = fmt.Sprintf("%s-%d", name, runs.of[name])
	}
	return name
}

// Namespaced returns the full name of a namespace of this test.
func (e *ClusterEnv) Namespaced(name string) string { return e.Name + "-" + name }

// CreateNamespace creates a namespace for this test.
func (e *ClusterEnv) CreateNamespace(name string, labels map[string]string) {
	e.Helper()
	e.Namespace(e.Namespaced(name), labels)
	deletePushes(e.TB, e.In(name))
}

// In returns the client of a namespace of this test.
func (e *ClusterEnv) In(namespace string) *Client {
	return &Client{e.Client.In(e.Namespaced(namespace))}
}

// CreateExternalSecret creates an ExternalSecret "db" that reads a key of the store.
func (e *ClusterEnv) CreateExternalSecret(namespace, key string, change ...Spec) {
	e.Helper()
	es := externalSecret(e.In(namespace).Meta("db"), v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: e.Name}, key, change...)
	e.Create(es)
}

// Pushes returns the spec of a PushSecret that pushes a Secret of its namespace to <namespace>/db.
func (e *ClusterEnv) Pushes() v1alpha1.PushSecretSpec {
	return v1alpha1.PushSecretSpec{
		StoreRefs: []v1alpha1.PushStoreRef{{Kind: "ClusterFakeStore", Name: e.Name}},
		Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
		Data:      []v1alpha1.PushData{PushData("password", "${namespace}/db", "")},
	}
}

// CreatePushSecret creates a PushSecret "db".
func (e *ClusterEnv) CreatePushSecret(namespace string, change ...func(*v1alpha1.PushSecretSpec)) {
	e.Helper()
	ps := &v1alpha1.PushSecret{ObjectMeta: e.In(namespace).Meta("db"), Spec: e.Pushes()}
	for _, f := range change {
		f(&ps.Spec)
	}
	e.Create(ps)
}

// WantUntouched fails if a secret was read after a time.
func (e *ClusterEnv) WantUntouched(since time.Time) {
	e.Helper()
	for _, r := range e.Backend.Calls(fake.CallGet, fake.CallGetBatch, fake.CallFind) {
		if r.Time.After(since) {
			e.Errorf("the provider was called: %+v", r)
		}
	}
}
