package cutover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func isPush(from *unstructured.Unstructured) bool { return from.GetKind() == "PushSecret" }

// refusedPush says why a converted PushSecret is not moved; "" if it is.
func refusedPush(to *unstructured.Unstructured) string {
	_, generates, _ := unstructured.NestedMap(to.Object, "spec", "selector", "generatorRef")
	switch {
	case generates:
		return "a generator supplies its value, and direct-secrets would generate and push a new one; the guide on moving says how to move that"
	case deletes(to) && field(to, "updatePolicy") == string(v1alpha1.UpdateIfNotExists):
		return "with updatePolicy IfNotExists it may name remote secrets that External Secrets Operator did not create, and deletionPolicy Delete would delete them; set deletionPolicy None"
	case field(to, "adoptionPolicy") == string(v1alpha1.AdoptionRefuse):
		return "adoptionPolicy Refuse would leave its remote secrets alone"
	}
	return ""
}

// deletes reports whether a PushSecret deletes the remote secrets that it created.
func deletes(to *unstructured.Unstructured) bool {
	return field(to, "deletionPolicy") == string(v1alpha1.PushDeletionDelete)
}

// pushState is what a cluster holds of a PushSecret.
type pushState struct {
	// from is the object of External Secrets Operator, to that of direct-secrets; nil if there is none.
	from *unstructured.Unstructured
	to   *v1alpha1.PushSecret
	// final is the object that takes over.
	final   *unstructured.Unstructured
	journal entry
}

// decidePush decides on the next step for a PushSecret.
func (m *move) decidePush(ctx context.Context) (decision, error) {
	from, err := m.readFrom(ctx, m.unit.From)
	if err != nil {
		return decision{}, err
	}
	s := pushState{from: from, to: &v1alpha1.PushSecret{}, final: m.final(), journal: m.journal}
	absent, err := m.get(ctx, m.name, s.to)
	if err != nil {
		return decision{}, err
	}
	if absent {
		s.to = nil
	}
	next, why := s.next()
	return decision{next, why, func(ctx context.Context) error { return m.takePush(ctx, next, s) }}, nil
}

// next decides on the next step, and says why it is to wait or to stop.
func (s pushState) next() (step, string) {
	switch {
	case s.to == nil && s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case s.to == nil:
		return stepCreate, ""
	case s.to.Annotations[fromAnnotation] != string(s.journal.UID):
		return stepGiveBack, "a PushSecret of direct-secrets with this name exists already; delete it first"
	case s.to.Spec.DryRun:
		return s.planned()
	}
	return s.adopted()
}

// planned decides during the dry run.
func (s pushState) planned() (step, string) {
	ready := meta.FindStatusCondition(s.to.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case ready == nil || ready.ObservedGeneration != s.to.Generation:
		return stepWait, "no operator of direct-secrets has reconciled it; check that its module is installed"
	case ready.Reason != v1alpha1.ReasonDryRun:
		return stepWait, fmt.Sprintf("direct-secrets cannot plan it: %s: %s", ready.Reason, ready.Message)
	}
	if d := pushDiffers(s.to.Status.Stores); d != "" {
		return stepGiveBack, "direct-secrets would change remote secrets: " + d
	}
	switch {
	case !letGo(s.from):
		return stepStopESO, ""
	case !finished(s.from):
		return stepWait, "External Secrets Operator has not made its last push; check that it runs"
	}
	return stepAdopt, ""
}

// pushDiffers names what a push would do; "" if that is nothing.
func pushDiffers(stores []v1alpha1.PushStoreStatus) string {
	var all []string
	for _, s := range stores {
		if s.Difference == nil {
			all = append(all, s.Kind+" "+s.Name+" was not compared")
			continue
		}
		for _, e := range s.Difference.Entries {
			if e.Action != v1alpha1.PushKeep && e.Action != v1alpha1.PushOwn {
				all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s in %s %s, property %s", e.Action, e.RemoteKey, s.Kind, s.Name, e.Property), ", property "))
			}
		}
		if s.Difference.Truncated {
			all = append(all, "others in "+s.Kind+" "+s.Name)
		}
	}
	return strings.Join(all, "; ")
}

// pushFinalizer is on each PushSecret whose remote secrets External Secrets Operator deletes with it.
const pushFinalizer = "pushsecret.externalsecrets.io/finalizer"

// finished reports whether External Secrets Operator has seen that it is to push nothing any more. It pushes each new
// version of the object once. Its status names the generation that it pushed last.
func finished(from *unstructured.Unstructured) bool {
	pushed, _, _ := unstructured.NestedString(from.Object, "status", "syncedResourceVersion")
	return strings.HasPrefix(pushed, fmt.Sprintf("%d-", from.GetGeneration())) && !slices.Contains(from.GetFinalizers(), pushFinalizer)
}

// adopted decides once direct-secrets may write.
func (s pushState) adopted() (step, string) {
	if s.from != nil && !letGo(s.from) {
		return stepGiveBack, "the object of External Secrets Operator was changed back; suspend the tool that manages it"
	}
	ready := meta.FindStatusCondition(s.to.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != s.to.Generation:
		return stepWait, "no operator of direct-secrets has reconciled it"
	case ready.Status != metav1.ConditionTrue:
		return stepWait, fmt.Sprintf("direct-secrets cannot take it over: %s: %s", ready.Reason, ready.Message)
	case string(s.to.Spec.AdoptionPolicy) != field(s.final, "adoptionPolicy"):
		return stepFinish, ""
	}
	return stepDone, s.kept()
}

// kept names the remote secrets that direct-secrets pushes and never deletes, although deletionPolicy is Delete; "" if
// there are none.
func (s pushState) kept() string {
	if !deletes(s.final) {
		return ""
	}
	var keys []string
	for _, store := range s.to.Status.Stores {
		for _, e := range store.Entries {
			if !e.Created && !slices.Contains(keys, e.RemoteKey) {
				keys = append(keys, e.RemoteKey)
			}
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return "deletionPolicy Delete does not delete these, because they have the mark of another PushSecret: " + strings.Join(keys, ", ")
}

// takePush takes a step for a PushSecret.
func (m *move) takePush(ctx context.Context, next step, s pushState) error {
	switch next {
	case stepCreate:
		plan := m.owning()
		_ = unstructured.SetNestedField(plan.Object, true, "spec", "dryRun") // It is the path of a mapping.
		return m.create(ctx, plan)
	case stepStopESO:
		return m.StopESO(ctx, s.from)
	case stepAdopt:
		return m.patchFields(ctx, s.to, map[string]any{"spec.dryRun": nil})
	case stepFinish:
		return m.patchFields(ctx, s.to, fieldsOf(s.final, "spec.adoptionPolicy"))
	}
	return fmt.Errorf("step %d is not to be taken", next)
}

// owning returns the PushSecret that takes over the remote secrets which External Secrets Operator created, if it has to
// delete them one day.
func (m *move) owning() *unstructured.Unstructured {
	o := m.final()
	if deletes(o) {
		_ = unstructured.SetNestedField(o.Object, string(v1alpha1.AdoptionOwn), "spec", "adoptionPolicy")
	}
	return o
}

// deletePush deletes the PushSecret of direct-secrets without its remote secrets, and waits until it no longer exists.
func (c *Cutover) deletePush(ctx context.Context, e entry) error {
	to := &v1alpha1.PushSecret{}
	return c.deleteObject(ctx, e, to, func(ctx context.Context) error {
		if to.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete {
			return c.patchFields(ctx, to, map[string]any{"spec.deletionPolicy": string(v1alpha1.PushDeletionNone)}) // The next call deletes it.
		}
		return c.Client.Delete(ctx, to, client.Preconditions{UID: &to.UID, ResourceVersion: &to.ResourceVersion})
	})
}
