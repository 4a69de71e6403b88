package fanout

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// always holds the duties, as two overlapping holders both believe.
type always struct{}

func (always) Held() bool    { return true }
func (always) OnHeld(func()) {}

// keyOf encodes a request as a key in the queue of a simulation.
func keyOf(r request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: r.parent}
}

func requestOf(key types.NamespacedName) request { return request{key.Name, key.Namespace} }

// simulatedQueue is the queue of a simulated operator.
type simulatedQueue struct {
	workqueue.TypedRateLimitingInterface[request]
	op *simulation.Operator
}

func (q simulatedQueue) Add(r request)                       { q.op.Enqueue(keyOf(r)) }
func (q simulatedQueue) AddAfter(r request, _ time.Duration) { q.op.Enqueue(keyOf(r)) }

func into(q simulatedQueue, f handler.TypedEventHandler[client.Object, request]) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ simulation.Requests) { f.Create(ctx, e, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ simulation.Requests) { f.Update(ctx, e, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ simulation.Requests) { f.Delete(ctx, e, q) },
	}
}

// simulated runs the fan-out of ClusterExternalSecrets in an operator of a simulation. change can disable parts of
// it.
func simulated(change ...func(*reconciler)) func(*simulation.Operator) {
	return func(op *simulation.Operator) {
		k := externalSecrets()
		if err := op.Cache.IndexField(op.Context, k.newChild(), ownerIndex, func(o client.Object) []string {
			if ref := k.parentOf(o); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		}); err != nil {
			panic(err)
		}
		q := simulatedQueue{op: op}
		r := &reconciler{
			kinds: k, client: op.Live, cache: op.Cache, events: simulation.Silent{}, duties: always{}, board: &board{}, now: time.Now,
			add: func(r request, _ int, _ time.Duration) { q.Add(r) },
		}
		for _, f := range change {
			f(r)
		}
		op.Reconcile = func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return r.Reconcile(ctx, requestOf(req.NamespacedName))
		}
		op.Cache.Watch(k.newParent(), nil, nil, into(q, kit.OnEvent(r.onParent)))
		op.Cache.Watch(k.newChild(), nil, nil, into(q, kit.OnEvent(r.onChild)))
		op.Cache.Watch(resolve.NamespaceMetadata(), nil, nil, into(q, kit.OnEvent(r.onNamespace)))
	}
}

// rename changes the name of a parent's children.
func rename(leaders, crashes int, change ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		run.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: simulation.Namespace}})
		parent := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.ClusterExternalSecretSpec{
			ExternalSecretName: "old",
			NamespaceChoice:    v1alpha1.NamespaceChoice{Namespaces: []string{simulation.Namespace}},
			ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
				StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "main"},
				Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}},
			},
		}}
		run.Add(parent)
		for _, name := range []string{"A", "B"}[:leaders] {
			run.Operator(name, simulated(change...))
		}
		child := func(name string) *v1alpha1.ExternalSecret {
			es := &v1alpha1.ExternalSecret{}
			if run.User().Get(context.Background(), simulation.Name(name), es) != nil {
				return nil
			}
			return es
		}
		k := externalSecrets()
		becomesReady := func(name string) simulation.Step {
			return simulation.Step{Label: name + " becomes Ready", When: func() bool { return child(name) != nil }, Do: func() error {
				es := child(name)
				status.Conclude(&es.Status.Conditions, es.Generation, status.Good(v1alpha1.ReasonSecretSynced, "in sync"))
				return run.User().Status().Update(context.Background(), es, client.FieldOwner("operator"))
			}}
		}
		run.Script("user", becomesReady("old"), simulation.Step{Label: "rename the children", Do: func() error {
			return simulation.Update(run, parent.DeepCopy(), func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "new" })
		}}, becomesReady("new"))
		made := false
		run.Digest = func() string { return fmt.Sprint(made) }
		run.Check = func() error {
			is := child("old") != nil
			if next := child("new"); made && !is && (next == nil || !k.ready(next)) {
				return errors.New("the old child is deleted, and the new one is not Ready")
			}
			made = made || is
			return nil
		}
		run.Final = func() error {
			if child("old") != nil || child("new") == nil {
				return errors.Errorf("at the end the old child exists: %t, the new one: %t", child("old") != nil, child("new") != nil)
			}
			return nil
		}
	}
}

// TestInterleavings explores the interleavings of a rename.
func TestInterleavings(t *testing.T) {
	for name, build := range map[string]func(*simulation.Run){"Rename": rename(1, 1), "RenameTwoLeaders": rename(2, 0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.Holds(t, build, bounds)
		})
	}
}

// TestFindsFaults disables a guard, and expects the simulation to find a failing run.
func TestFindsFaults(t *testing.T) {
	simulation.Breaks(t, rename(1, 0, func(r *reconciler) {
		r.conditions = func(child client.Object) []metav1.Condition {
			return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: child.GetGeneration()}}
		}
	}))
}
