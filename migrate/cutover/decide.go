package cutover

import (
	"crypto/sha3"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// esoGroup is the API group of External Secrets Operator, and the suffix of the names that it gives.
const esoGroup = "external-secrets.io"

// fromAnnotation is on each object that is created here, except stores. It holds the UID of the object that it replaces.
const fromAnnotation = v1alpha1.Group + "/migrated-from"

// A step is what is to be done next for an object.
type step int

const (
	// stepWait means that an operator has to act.
	stepWait step = iota
	// stepCreate creates the object of direct-secrets, which only compares.
	stepCreate
	// stepStopESO makes External Secrets Operator write nothing any more.
	stepStopESO
	// stepRelease removes from the Secret what makes External Secrets Operator its owner.
	stepRelease
	// stepAdopt makes direct-secrets write the Secret, or the remote secrets.
	stepAdopt
	// stepFinish gives a PushSecret that has taken over its remote secrets its own adoptionPolicy.
	stepFinish
	// stepDone means that nothing is left to do.
	stepDone
	// stepGiveBack means that the object is left to External Secrets Operator.
	stepGiveBack
)

// state is what a cluster holds of an object.
type state struct {
	// from is the object of External Secrets Operator, to that of direct-secrets; nil if there is none.
	from *unstructured.Unstructured
	to   *v1alpha1.ExternalSecret
	// secret is nil if there is none.
	secret  *corev1.Secret
	journal entry
	// name is that of both ExternalSecrets.
	name string
	// merges is true if direct-secrets keeps keys of others, since its creationPolicy is Merge.
	merges bool
}

// held reports whether External Secrets Operator still has a hold on the Secret for the object.
func (s state) held() bool { return heldByESO(s.secret, s.name) }

// next decides on the next step, and says why it is to wait or to stop.
func (s state) next(o Options) (step, string) {
	switch {
	case s.secret == nil:
		return stepGiveBack, "the Secret was deleted meanwhile"
	case s.secret.UID != s.journal.SecretUID:
		return stepGiveBack, "the Secret was created again meanwhile"
	case s.to == nil && s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case s.to == nil:
		return stepCreate, ""
	case s.to.Annotations[fromAnnotation] != string(s.journal.UID):
		return stepGiveBack, "an ExternalSecret of direct-secrets with this name exists already; delete it first"
	case s.to.Spec.Target.CreationPolicy == v1alpha1.CreateNone:
		return s.planned(o)
	}
	return s.adopted()
}

// planned decides while direct-secrets only compares.
func (s state) planned(o Options) (step, string) {
	ready := meta.FindStatusCondition(s.to.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case s.from == nil:
		return stepGiveBack, "it was deleted meanwhile"
	case ready == nil || s.to.Status.ObservedGeneration != s.to.Generation:
		return stepWait, "no operator of direct-secrets has reconciled it; check that its module is installed"
	case ready.Status != metav1.ConditionTrue:
		return stepWait, fmt.Sprintf("direct-secrets cannot read it: %s: %s", ready.Reason, ready.Message)
	case s.to.Status.Difference == nil:
		return stepWait, "direct-secrets has not compared it"
	}
	if d := differs(s.to.Status.Difference, o.AcceptChanges || s.merges); d != "" {
		return stepGiveBack, "direct-secrets would change the Secret: " + d
	}
	switch {
	case !letGo(s.from):
		return stepStopESO, ""
	case s.held():
		return stepRelease, ""
	}
	return stepAdopt, ""
}

// adopted decides once direct-secrets may write the Secret.
func (s state) adopted() (step, string) {
	if s.from != nil && !letGo(s.from) {
		return stepGiveBack, "the object of External Secrets Operator was changed back; suspend the tool that manages it"
	}
	ready := meta.FindStatusCondition(s.to.Status.Conditions, v1alpha1.ConditionReady)
	observed := ready != nil && s.to.Status.ObservedGeneration == s.to.Generation
	switch {
	case s.held() && s.from != nil:
		return stepRelease, "" // A write that External Secrets Operator had begun before it was stopped came late.
	case !observed:
		return stepWait, "no operator of direct-secrets has reconciled it"
	case ready.Status != metav1.ConditionTrue:
		return stepWait, fmt.Sprintf("direct-secrets cannot take it over: %s: %s", ready.Reason, ready.Message)
	}
	return stepDone, ""
}

// differs names what direct-secrets would change; "" if that is nothing. Further keys stay, so they can be accepted.
func differs(d *v1alpha1.Difference, acceptFurther bool) string {
	if !d.Exists {
		return "it would create it"
	}
	var all []string
	if d.Type != "" {
		all = append(all, "its type to "+d.Type)
	}
	for _, part := range []struct {
		what string
		v1alpha1.NameDifference
	}{{"key", d.Data}, {"label", d.Labels}, {"annotation", d.Annotations}} {
		for _, list := range []struct {
			how   string
			names []string
		}{{"adds", part.Added}, {"changes", part.Changed}, {"does not have", part.Removed}} {
			if further := list.how == "does not have"; len(list.names) > 0 && (!further || !acceptFurther) {
				all = append(all, fmt.Sprintf("%s %s %s", list.how, part.what, strings.Join(list.names, ", ")))
			}
		}
	}
	return strings.Join(all, "; ")
}

// letGo reports whether External Secrets Operator leaves alone what an object describes. It never refreshes an
// ExternalSecret, and has no ownerReference to set; it never pushes a PushSecret again, and deletes nothing for it.
// https://external-secrets.io/latest/api/externalsecret and .../api/pushsecret describe the fields.
func letGo(from *unstructured.Unstructured) bool {
	interval, err := time.ParseDuration(field(from, "refreshInterval"))
	if err != nil || interval != 0 {
		return false
	}
	if isPush(from) {
		return field(from, "deletionPolicy") != "Delete"
	}
	return field(from, "target", "creationPolicy") == "Orphan"
}

// stopped reports whether External Secrets Operator deletes nothing with an object that it leaves alone.
func stopped(from *unstructured.Unstructured) bool {
	return letGo(from) && field(from, "target", "deletionPolicy") != "Delete" && !slices.Contains(from.GetFinalizers(), pushFinalizer)
}

// heldByESO reports whether a Secret has an ownerReference of an ExternalSecret of External Secrets Operator, keys that it
// manages, or the mark of an owner that no longer owns it.
func heldByESO(s *corev1.Secret, name string) bool {
	others := false
	for _, r := range s.OwnerReferences {
		if ownedByESO(r) && r.Name == name {
			return true
		}
		others = others || ownedByESO(r)
	}
	for _, f := range s.ManagedFields {
		if managedByESO(f, name) {
			return true
		}
	}
	_, marked := s.Labels[createdByLabel]
	return marked && !others
}

// createdByLabel is on Secrets that External Secrets Operator owns. It deletes those with this label under another name.
const createdByLabel = "reconcile." + esoGroup + "/created-by"

// dataHashAnnotation makes External Secrets Operator believe that it has written the data.
const dataHashAnnotation = "reconcile." + esoGroup + "/data-hash"

// managedLabel is on Secrets that External Secrets Operator watches. It adds it again as long as its object exists.
const managedLabel = "reconcile." + esoGroup + "/managed"

func ownedByESO(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == esoGroup && r.Kind == "ExternalSecret"
}

// bookkeeping are fields that External Secrets Operator can write again as long as its object exists.
var bookkeeping = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "labels", managedLabel),
	fieldpath.MakePathOrDie("metadata", "annotations", dataHashAnnotation),
)

// managedByESO reports whether an ExternalSecret of External Secrets Operator wrote anything of a Secret but its bookkeeping.
func managedByESO(f metav1.ManagedFieldsEntry, name string) bool {
	set, err := fieldsIn(f)
	return f.Manager == esoManager(name) && (err != nil || !set.Leaves().Difference(bookkeeping).Empty())
}

// fieldsIn returns the fields of an entry.
func fieldsIn(f metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if f.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(strings.NewReader(f.FieldsV1.GetRawString()))
}

// handOver makes an entry of a manager, as one that applies, of what External Secrets Operator manages for an ExternalSecret.
// A manager has one such entry.
func handOver(entries []metav1.ManagedFieldsEntry, name, manager string) ([]metav1.ManagedFieldsEntry, error) {
	own, rest := metav1.ManagedFieldsEntry{APIVersion: "v1", FieldsType: "FieldsV1"}, []metav1.ManagedFieldsEntry(nil)
	set := fieldpath.NewSet()
	for _, f := range entries {
		if f.Subresource == "" && (f.Manager == esoManager(name) || f.Manager == manager) {
			own.Time = f.Time
			fields, err := fieldsIn(f)
			if err != nil {
				return nil, fmt.Errorf("the fields of manager %s of the Secret cannot be read: %w", f.Manager, err)
			}
			set = set.Union(fields)
		} else {
			rest = append(rest, f)
		}
	}
	if set.Empty() {
		return rest, nil
	}
	raw, err := set.ToJSON()
	own.Manager, own.Operation, own.FieldsV1 = manager, metav1.ManagedFieldsOperationApply, metav1.NewFieldsV1(string(raw))
	return append(rest, own), err
}

// longManager is the number of bytes above which External Secrets Operator has a hash of the name in its field manager.
const longManager = 63

// esoManager returns the field manager with which External Secrets Operator writes the Secret of an ExternalSecret.
func esoManager(name string) string {
	const prefix = "externalsecrets." + esoGroup + "/"
	if m := prefix + name; len(m) <= longManager {
		return m
	}
	return fmt.Sprintf("%ssha3/%x", prefix, sha3.Sum224([]byte(name)))
}
