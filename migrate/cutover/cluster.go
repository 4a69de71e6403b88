package cutover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const clusterKind = "ClusterExternalSecret"

// IsCluster reports whether an object makes ExternalSecrets in many namespaces.
func IsCluster(from *unstructured.Unstructured) bool { return from.GetKind() == clusterKind }

// A child is an ExternalSecret that a ClusterExternalSecret of External Secrets Operator made.
type child struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Secret    string    `json:"secret"`
	SecretUID types.UID `json:"secretUID"`
}

// String returns the namespace and the name.
func (c child) String() string { return c.Namespace + "/" + c.Name }

// children returns what a ClusterExternalSecret of External Secrets Operator made. complete is false if a Secret does not exist.
func (c *Cutover) children(ctx context.Context, from *unstructured.Unstructured) (all []child, complete bool, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(from.GroupVersionKind().GroupVersion().WithKind("ExternalSecretList"))
	if err := c.Client.List(ctx, list); err != nil {
		return nil, false, fmt.Errorf("cannot list the ExternalSecrets that it makes: %w", err)
	}
	for i := range list.Items {
		es := &list.Items[i]
		if !slices.ContainsFunc(es.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == from.GetUID() }) {
			continue
		}
		secret := &corev1.Secret{}
		if absent, err := c.get(ctx, target(es), secret); absent || err != nil {
			return nil, false, err
		}
		all = append(all, child{es.GetNamespace(), es.GetName(), secret.Name, secret.UID})
	}
	slices.SortFunc(all, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return all, true, nil
}

// clusterState is what a cluster holds of a ClusterExternalSecret.
type clusterState struct {
	// from is the object of External Secrets Operator, to that of direct-secrets; nil if there is none.
	from    *unstructured.Unstructured
	to      *v1alpha1.ClusterExternalSecret
	journal entry
	// children are the states in the namespaces, in the order of the journal.
	children []state
}

// decideCluster decides on the next step for a ClusterExternalSecret.
func (m *move) decideCluster(ctx context.Context) (decision, error) {
	s, err := m.observeCluster(ctx)
	if err != nil {
		return decision{}, err
	}
	next, why := s.next(m.Options)
	for i, c := range s.children {
		if was := m.data[m.journal.Children[i].String()]; next == stepDone && was != nil && !reflect.DeepEqual(was, c.secret.Data) {
			next, why = stepGiveBack, "the data of the Secret in "+m.journal.Children[i].Namespace+" changed meanwhile"
		}
	}
	return decision{next, why, func(ctx context.Context) error { return m.takeCluster(ctx, next, s) }}, nil
}

// observeCluster reads the state of a ClusterExternalSecret.
func (m *move) observeCluster(ctx context.Context) (clusterState, error) {
	s := clusterState{to: &v1alpha1.ClusterExternalSecret{}, journal: m.journal}
	from, err := m.readFrom(ctx, m.unit.From)
	s.from = from
	absent, toErr := m.get(ctx, m.name, s.to)
	if absent {
		s.to = nil
	}
	if err := errors.Join(err, toErr); err != nil {
		return s, err
	}
	for _, c := range m.journal.Children {
		es := &unstructured.Unstructured{}
		es.SetGroupVersionKind(m.unit.From.GroupVersionKind().GroupVersion().WithKind("ExternalSecret"))
		es.SetNamespace(c.Namespace)
		es.SetName(c.Name)
		one := &move{Cutover: m.Cutover, name: client.ObjectKeyFromObject(es), unit: Unit{From: es, To: m.unit.To}, journal: entry{Secret: c.Secret, SecretUID: c.SecretUID}}
		state, err := one.observe(ctx)
		if err != nil {
			return s, err
		}
		s.children = append(s.children, state)
	}
	return s, nil
}

// next decides on the next step, and says why it is to wait or to stop.
func (s clusterState) next(o Options) (step, string) {
	switch {
	case s.to == nil && s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case s.to == nil:
		return stepCreate, ""
	case s.to.Annotations[fromAnnotation] != string(s.journal.UID):
		return stepGiveBack, "a ClusterExternalSecret of direct-secrets with this name exists already; delete it first"
	}
	planning := s.to.Spec.ExternalSecretSpec.Target.CreationPolicy == v1alpha1.CreateNone
	ready := meta.FindStatusCondition(s.to.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case planning && s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case !planning && s.from != nil && !letGo(s.from):
		return stepGiveBack, "the object of External Secrets Operator was changed back; suspend the tool that manages it"
	case ready == nil || s.to.Status.ObservedGeneration != s.to.Generation:
		return stepWait, "no operator of direct-secrets has reconciled it; check that a module is installed"
	case ready.Status != metav1.ConditionTrue && ready.Reason != v1alpha1.ReasonNoNamespacesMatched:
		return stepWait, fmt.Sprintf("direct-secrets cannot make its ExternalSecrets: %s: %s", ready.Reason, ready.Message)
	}
	for _, n := range s.to.Status.ProvisionedNamespaces {
		if !slices.ContainsFunc(s.journal.Children, func(c child) bool { return c.Namespace == n }) {
			return stepGiveBack, "direct-secrets would write a Secret in the namespace " + n + ", too"
		}
	}
	return s.nextOfChildren(o, planning)
}

// urgent orders the steps of children: the first of these that one of them needs comes next.
var urgent = []step{stepGiveBack, stepWait, stepStopESO, stepRelease, stepAdopt, stepDone}

// nextOfChildren decides on the next step by those that the ExternalSecrets need.
func (s clusterState) nextOfChildren(o Options, planning bool) (step, string) {
	next, why := stepDone, ""
	if planning {
		next = stepAdopt
	}
	for i, c := range s.children {
		one, reason := c.nextAsChild(o, planning)
		if slices.Index(urgent, one) < slices.Index(urgent, next) {
			next, why = one, reason
			if reason != "" {
				why = s.journal.Children[i].Namespace + ": " + reason
			}
		}
	}
	switch {
	case next == stepStopESO && letGo(s.from):
		return stepWait, "External Secrets Operator has not changed its ExternalSecrets; check that it runs"
	case next == stepAdopt && !letGo(s.from):
		return stepStopESO, "" // It has made none.
	}
	return next, why
}

// nextAsChild decides on the next step that an ExternalSecret needs which a ClusterExternalSecret makes.
func (s state) nextAsChild(o Options, planning bool) (step, string) {
	switch {
	case s.secret == nil:
		return stepGiveBack, "the Secret was deleted meanwhile"
	case s.secret.UID != s.journal.SecretUID:
		return stepGiveBack, "the Secret was created again meanwhile"
	case s.to == nil:
		return stepWait, "direct-secrets has not made the ExternalSecret"
	case planning != (s.to.Spec.Target.CreationPolicy == v1alpha1.CreateNone):
		return stepWait, "direct-secrets has not changed the ExternalSecret"
	case planning:
		return s.planned(o)
	}
	return s.adopted()
}

// takeCluster takes a step for a ClusterExternalSecret.
func (m *move) takeCluster(ctx context.Context, next step, s clusterState) error {
	switch next {
	case stepCreate:
		return m.create(ctx, m.plan())
	case stepStopESO:
		return m.StopESO(ctx, s.from)
	case stepRelease:
		for i, c := range s.children {
			if !c.held() {
				continue
			}
			if m.data == nil {
				m.data = map[string]map[string][]byte{}
			}
			m.data[m.journal.Children[i].String()] = c.secret.Data
			if err := m.release(ctx, c.secret, c.name); err != nil {
				return err
			}
		}
		return nil
	case stepAdopt:
		return m.patchFields(ctx, s.to, fieldsOf(m.final(), planned(m.unit.To)...))
	}
	return fmt.Errorf("step %d is not to be taken", next)
}

// deleteCluster deletes the ClusterExternalSecret of direct-secrets, and the ExternalSecrets that it made, without their Secrets. A call
// that was stopped is continued: such an ExternalSecret has no owner any more.
func (c *Cutover) deleteCluster(ctx context.Context, e entry) error {
	to := &v1alpha1.ClusterExternalSecret{}
	err := c.deleteObject(ctx, e, to, func(ctx context.Context) error {
		return c.Client.Delete(ctx, to, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &to.UID})
	})
	if err != nil {
		return err
	}
	name, _, _ := unstructured.NestedString(e.Object.Object, "spec", "externalSecretName")
	name = cmp.Or(name, e.Object.GetName())
	err = wait.PollUntilContextTimeout(ctx, pollInterval, c.Timeout, true, func(ctx context.Context) (bool, error) {
		left, err := c.deleteOrphans(ctx, name)
		return left == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New("the ExternalSecrets of direct-secrets are still being deleted; run the command again")
	}
	return err
}

// deleteOrphans deletes ExternalSecrets of a name that a ClusterExternalSecret had made, without their Secrets. It returns how many there
// were.
func (c *Cutover) deleteOrphans(ctx context.Context, name string) (left int, err error) {
	list := &v1alpha1.ExternalSecretList{}
	if err := c.Client.List(ctx, list); err != nil {
		return 0, fmt.Errorf("cannot list ExternalSecrets: %w", err)
	}
	for i := range list.Items {
		es := &list.Items[i]
		if _, made := es.Annotations[v1alpha1.FanOutAnnotation]; !made || es.Name != name || metav1.GetControllerOf(es) != nil {
			continue
		}
		left++
		if es.DeletionTimestamp == nil {
			err := c.Client.Delete(ctx, es, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &es.UID})
			if client.IgnoreNotFound(err) != nil && !kerrors.IsConflict(err) {
				return left, err
			}
		}
	}
	return left, nil
}

// returnSecrets returns the Secrets of a ClusterExternalSecret to External Secrets Operator.
func (c *Cutover) returnSecrets(ctx context.Context, e entry) error {
	for _, of := range e.Children {
		if err := c.returnSecretOf(ctx, of); err != nil && !kerrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
