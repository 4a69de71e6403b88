package contribution_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The modules of a modulesEnv, by their API group.
const (
	claims    = "lead.direct-secrets.io"  // Serves FakeStores.
	helps     = "other.direct-secrets.io" // Serves OtherFakeStores.
	generates = "made.direct-secrets.io"  // Serves FakeGenerators.
)

// swift has short times, so that a missing module is reported soon.
var swift = presence.Timing{
	Renew: time.Second, Duration: 8 * time.Second, GracePeriod: 2 * time.Second, Rollout: 2 * time.Second,
	Shared: 6 * time.Second, SharedDeadline: 4 * time.Second, SharedRetry: time.Second,
}

// modulesEnv is an env with up to three modules, each with its own operator.
type modulesEnv struct {
	*testenv.Env
	other *fake.Backend
	made  *fake.Backend
	stops map[string]func()
}

func newModulesEnv(t *testing.T, modules ...string) *modulesEnv {
	t.Helper()
	e := &modulesEnv{Env: testenv.NewIdle(t), stops: map[string]func(){}}
	e.other, e.made = e.Server.Backend("other"), e.Server.Backend("made")
	e.Create(&fakev1.OtherFakeStore{ObjectMeta: e.Meta("other"), Spec: fakev1.FakeStoreSpec{Backend: "other"}})
	e.Create(&fakev1.FakeGenerator{ObjectMeta: e.Meta("gen"), Spec: fakev1.FakeGeneratorSpec{Backend: "made"}})
	for _, m := range modules {
		e.begin(m)
	}
	return e
}

// begin starts the operator of a module. which is the API group, with a class behind a slash if there is one.
func (e *modulesEnv) begin(which string, opts ...operator.Option) {
	e.Helper()
	module, class, _ := strings.Cut(which, "/")
	kinds := map[string][]provider.Kind{claims: e.Server.Kinds(), helps: e.Server.OtherKinds(), generates: e.Server.GeneratorKinds()}[module]
	name, _, _ := strings.Cut(module, ".")
	e.stops[which] = e.Module(name, module, kinds, append([]operator.Option{
		operator.WithPresence(swift), operator.WithFlags(func(f *operator.Flags) { f.PresenceNamespace, f.ControllerClass = e.NS, class }),
	}, opts...)...)
}

// end stops the operator of a module.
func (e *modulesEnv) end(module string) {
	e.stops[module]()
	delete(e.stops, module)
}

// mixed returns an object that takes one key from each module.
func (e *modulesEnv) mixed(name string, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	return e.ExternalSecret(name, append([]func(*v1alpha1.ExternalSecret){func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
			SecretKey: "other", RemoteRef: v1alpha1.RemoteRef{Key: name},
			SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "OtherFakeStore", Name: "other"}},
		})
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}}}
	}}, change...)...)
}

// parts returns the parts in the namespace.
func (e *modulesEnv) parts() []corev1.Secret {
	e.Helper()
	var list corev1.SecretList
	if err := e.API.List(e.Ctx, &list, client.InNamespace(e.NS), client.MatchingLabels{v1alpha1.PartLabel: "true"}); err != nil {
		e.Fatal(err)
	}
	return list.Items
}

func (e *modulesEnv) ask(name, request string) {
	e.Helper()
	testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}, func(es *v1alpha1.ExternalSecret) {
		metav1.SetMetaDataAnnotation(&es.ObjectMeta, v1alpha1.RefreshRequestAnnotation, request)
	})
}

// wantSynced waits until an object is in sync for its present generation and request.
func (e *modulesEnv) wantSynced(name string) {
	e.Helper()
	e.Eventually(func() string {
		es := e.Get(name)
		if r := es.Annotations[v1alpha1.RefreshRequestAnnotation]; es.Status.ObservedRefreshRequest != r {
			return fmt.Sprintf("request %q is not served: %v, %v", r, es.Status.Conditions, es.Status.Parts)
		}
		return ""
	})
	e.WantReady(name, v1alpha1.ReasonSecretSynced)
}

func partOf(p corev1.Secret, uid types.UID) bool {
	rec, ok := handoff.Of(p.Annotations)
	return ok && p.Type == handoff.Type && rec.UID == uid && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].UID == uid
}

func (e *modulesEnv) remove(name string) {
	e.Helper()
	if err := e.API.Delete(e.Ctx, &v1alpha1.ExternalSecret{ObjectMeta: e.Meta(name)}); err != nil {
		e.Fatal(err)
	}
}

// reader returns the contributor of a module that reads for objects of another module.
func reader(module string) handoff.Contributor {
	return handoff.Contributor{Group: module, Purpose: v1alpha1.PartRead}
}
