package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

const (
	// deletionTime is how long a deletion can take before it is reported.
	deletionTime = 2 * time.Minute
	// reconcileTime is how long an operator can take for a new spec before it is reported.
	reconcileTime = 2 * time.Minute
	// refreshSlack is how late a refresh can be before it is reported.
	refreshSlack = 10 * time.Minute
)

func one(severity Severity, o *snapshot.Object, reason, message, fix string) []Finding {
	return []Finding{{Severity: severity, Object: o.Ref(), Reason: reason, Message: message, Fix: fix}}
}

func deletionStuck(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.Meta.DeletionTimestamp == nil {
		return nil
	}
	since := s.Now.Sub(o.Meta.DeletionTimestamp.Time)
	if since < deletionTime || len(o.Meta.Finalizers) == 0 {
		return nil
	}
	why := fmt.Sprintf("deleted %s ago and held by the finalizers %s", since.Round(time.Second), strings.Join(o.Meta.Finalizers, ", "))
	fix := "have the owners of the finalizers remove them"
	if o.PushSecret != nil {
		fix = "fix the store that the condition Ready names, or set spec.deletionPolicy: None, which keeps the remote secrets"
		if c := o.Ready(); c != nil {
			why += ": " + c.Message
		}
	}
	return one(Error, o, ReasonDeletionStuck, why, fix)
}

// missingProvider reports that no running operator serves the object's Kind, or a Kind that it refers to.
func missingProvider(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if len(s.Operators) == 0 && o.Ready() != nil {
		return nil // Operators that do not report may be running.
	}
	if !s.OperatorsKnown || s.Now.Sub(o.Meta.CreationTimestamp.Time) < reconcileTime/4 {
		return nil
	}
	if o.IsSource() {
		return missingSourceProvider(s, o)
	}
	for _, u := range o.Uses() {
		k := s.KindOf(&u.StoreRef)
		switch {
		case k == nil:
			why, fix := fmt.Sprintf("the cluster has no Kind %s", u.Kind), "correct the kind in the reference, or enable the module that has it in the chart"
			if c := o.Ready(); c != nil && c.Reason == v1alpha1.ReasonProviderNotRunning { // The operators know the Kinds of all modules.
				if what, todo, ok := strings.Cut(c.Message, "; "); ok {
					why, fix = what, todo
				}
			}
			return absentKind(o, u.Kind, why, fix)
		case len(s.Running(k.GroupKind(), o.Meta.Namespace)) == 0:
			return absentKind(o, u.Kind, whyMissingProvider(s, k, o.Meta.Namespace), fixMissingProvider(k))
		}
	}
	return nil
}

// missingSourceProvider reports that no running operator serves a store or generator, if no object refers to it that
// would show this.
func missingSourceProvider(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	running := s.Running(o.Kind.GroupKind(), o.Meta.Namespace)
	if len(running) == 0 {
		return absentKind(o, o.Kind.Kind, whyMissingProvider(s, &o.Kind, o.Meta.Namespace), fixMissingProvider(&o.Kind))
	}
	if slices.ContainsFunc(running, func(p snapshot.Operator) bool { return p.Class == o.Class }) {
		return nil
	}
	return one(Error, o, v1alpha1.ReasonProviderNotRunning,
		fmt.Sprintf("no running operator serves controller class %q", o.Class),
		fmt.Sprintf("correct spec.controller, or start an operator with --controller-class=%s", o.Class))
}

func absentKind(o *snapshot.Object, kind, why, fix string) []Finding {
	return []Finding{{
		Severity: Error, Object: snapshot.Ref{Kind: kind}, Reason: v1alpha1.ReasonProviderNotRunning,
		Message: why, Fix: fix, Affects: []snapshot.Ref{o.Ref()},
	}}
}

func whyMissingProvider(s *snapshot.Snapshot, k *snapshot.Kind, namespace string) string {
	for _, p := range s.Operators {
		if p.Expired && p.Serves(k.GroupKind(), namespace) {
			return fmt.Sprintf("no running module serves %s: %s last renewed its Lease at %s", k.Kind, p.Name, p.Renewed.UTC().Format(time.RFC3339))
		}
	}
	return fmt.Sprintf("no running module serves %s", k.Kind)
}

func fixMissingProvider(k *snapshot.Kind) string {
	return fmt.Sprintf("enable the module of %s in the chart (NAME.enabled=true); if it is enabled, see: kubectl get pods,leases -A | grep %s", k.Group, v1alpha1.Group)
}

func suspended(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if !o.Suspended {
		return nil
	}
	return one(Warning, o, v1alpha1.ReasonSuspended, "spec.suspend is true: nothing is read or written", s.Program+" resume "+o.Argument())
}

// dryRun reports that a PushSecret is not pushed.
func dryRun(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.PushSecret == nil || !o.PushSecret.Spec.DryRun {
		return nil
	}
	return one(Warning, o, v1alpha1.ReasonDryRun, "spec.dryRun is true: nothing is written",
		fmt.Sprintf("see what a push would do with %s diff %s, and set spec.dryRun to false", s.Program, o.Argument()))
}

// noRemoteChanges reports an object that --no-remote-changes holds back.
func noRemoteChanges(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	c := o.Ready()
	if c == nil || c.Reason != v1alpha1.ReasonNoRemoteChanges {
		return nil
	}
	_, fix := advise(s, o, c.Reason, c.Message)
	return one(Warning, o, c.Reason, c.Message, fix)
}

// failing reports a failure in the condition Ready.
func failing(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	c := o.Ready()
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason == v1alpha1.ReasonNoRemoteChanges || (o.FanOut != nil && s.Namespace != "") {
		return nil
	}
	why, fix := advise(s, o, c.Reason, c.Message)
	f := Finding{Severity: Error, Object: o.Ref(), Reason: c.Reason, Message: why, Fix: fix}
	switch c.Reason {
	case v1alpha1.ReasonStoreNotReady:
		f.cause = failingSource(s, o)
	case v1alpha1.ReasonStoreNotFound:
		if absent := absentSource(s, o); absent != nil {
			return []Finding{*absent}
		}
	case v1alpha1.ReasonProviderNotRunning:
		// The store has it, too, if no operator serves its class.
		if f.cause = failingSource(s, o); f.cause != nil {
			break
		}
		if leading := o.Uses(); len(leading) == 1 {
			f.Object, f.Affects = snapshot.Ref{Kind: leading[0].Kind}, []snapshot.Ref{o.Ref()}
		}
	}
	return []Finding{f}
}

// failingRestart reports that workloads do not restart, although the Secret is in sync.
func failingRestart(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.ExternalSecret == nil {
		return nil
	}
	c := o.ExternalSecret.Status.RestartFailure()
	if c == nil {
		return nil
	}
	why, fix := advise(s, o, c.Reason, c.Message)
	return one(Error, o, c.Reason, why, fix)
}

// failingSource returns the object's store or generator that is not ready, or nil.
func failingSource(s *snapshot.Snapshot, o *snapshot.Object) *snapshot.Ref {
	for _, u := range o.Uses() {
		for _, source := range s.Selected(u, o.Meta.Namespace) {
			if c := source.Ready(); c != nil && c.Status == metav1.ConditionFalse {
				ref := source.Ref()
				return &ref
			}
		}
	}
	return nil
}

// absentSource returns the finding for a store or generator that does not exist. It returns nil if all exist,
// or could not be read.
func absentSource(s *snapshot.Snapshot, o *snapshot.Object) *Finding {
	for _, u := range o.Uses() {
		k := s.KindOf(&u.StoreRef)
		if k == nil || u.Selector != nil || unread(s, k) || s.Find(&u.StoreRef, o.Meta.Namespace) != nil {
			continue
		}
		ref := snapshot.Ref{Group: k.Group, Kind: k.Kind, Name: u.Name}
		if k.Namespaced {
			ref.Namespace = o.Meta.Namespace
		}
		fix := fmt.Sprintf("create %s, or correct the reference", ref)
		if near := existing(s, o.Meta.Namespace, k); near != "" {
			fix += "; there are " + near
		}
		return &Finding{
			Severity: Error, Object: ref, Reason: v1alpha1.ReasonStoreNotFound,
			Message: ref.String() + " does not exist", Fix: fix, Affects: []snapshot.Ref{o.Ref()},
		}
	}
	return nil
}

func unread(s *snapshot.Snapshot, k *snapshot.Kind) bool {
	return slices.ContainsFunc(s.Refused, func(r snapshot.Refusal) bool { return r.Verb == "list" && r.Resource == k.GroupResource() })
}

// mostNamed is the maximum number of stores in the text of a fix.
const mostNamed = 5

// existing lists the stores of the group to which an object in namespace could refer.
func existing(s *snapshot.Snapshot, namespace string, k *snapshot.Kind) string {
	var names []string
	for i := range s.Objects {
		o := &s.Objects[i]
		same := strings.TrimPrefix(o.Kind.Kind, "Cluster") == strings.TrimPrefix(k.Kind, "Cluster")
		usable := o.Kind.Namespaced && o.Meta.Namespace == namespace || !o.Kind.Namespaced && inspect.Admits(o.Conditions, namespace)
		if o.Kind.Group == k.Group && same && usable && len(names) < mostNamed {
			names = append(names, o.Ref().String())
		}
	}
	return strings.Join(names, ", ")
}

// failingPush reports the stores of a PushSecret that are out of sync.
func failingPush(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.PushSecret == nil {
		return nil
	}
	if c := o.Ready(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSecretSyncedError {
		return nil
	}
	var all []Finding
	for _, st := range o.PushSecret.Status.Stores {
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionSynced)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		why, fix := advise(s, o, c.Reason, c.Message)
		f := Finding{Severity: Error, Object: o.Ref(), Reason: c.Reason, Message: fmt.Sprintf("%s %s: %s", st.Kind, st.Name, why), Fix: fix}
		ref := v1alpha1.StoreRef{APIVersion: st.APIVersion, Kind: st.Kind, Name: st.Name}
		if source := s.Find(&ref, o.Meta.Namespace); source != nil {
			if ready := source.Ready(); ready != nil && ready.Status == metav1.ConditionFalse {
				cause := source.Ref()
				f.cause = &cause
			}
		}
		all = append(all, f)
	}
	return all
}

// failingFanOut reports the namespaces in which an object could not be created, grouped by reason.
func failingFanOut(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.FanOut == nil {
		return nil
	}
	var reasons []string
	namespaces := map[string][]string{}
	for _, f := range o.FanOut.FailedNamespaces {
		if s.Namespace != "" && f.Namespace != s.Namespace {
			continue
		}
		if namespaces[f.Message] == nil {
			reasons = append(reasons, f.Message)
		}
		namespaces[f.Message] = append(namespaces[f.Message], f.Namespace)
	}
	var all []Finding
	for _, r := range reasons {
		in := namespaces[r]
		why, fix := advise(s, o, v1alpha1.ReasonPartlyProvisioned, r)
		all = append(all, one(Error, o, v1alpha1.ReasonPartlyProvisioned, fmt.Sprintf("in %s: %s", list(in), why), fix)...)
	}
	return all
}

func list(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

func notReconciled(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	c := o.Ready()
	if o.Status.ObservedGeneration == o.Meta.Generation && c != nil {
		return nil
	}
	since := o.Meta.CreationTimestamp.Time
	if c != nil {
		since = changed(o)
	}
	if s.Now.Sub(since) < reconcileTime {
		return nil
	}
	why := fmt.Sprintf("the operator has not reconciled generation %d of the spec", o.Meta.Generation)
	return one(Error, o, ReasonNotReconciled, why, "see the operator's log and the runbook under DirectSecretsQueueStuck; check that an operator is the leader: kubectl get leases -A | grep "+v1alpha1.Group)
}

// changed returns the time of the last change of the spec by managedFields, or otherwise the creation time.
func changed(o *snapshot.Object) time.Time {
	at := o.Meta.CreationTimestamp.Time
	for _, m := range o.Meta.ManagedFields {
		if m.Time != nil && m.Subresource == "" && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}

// unexpectedlyDeleted reports an object that is in sync because the provider has none of its secrets, for example
// after a typo in a key.
func unexpectedlyDeleted(_ *snapshot.Snapshot, o *snapshot.Object) []Finding {
	c := o.Ready()
	if o.ExternalSecret == nil || c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonSecretDeleted {
		return nil
	}
	return one(Warning, o, c.Reason, c.Message, "if you did not expect it, correct remoteRef.key, or set spec.target.deletionPolicy: Retain while you investigate")
}

func refreshOverdue(s *snapshot.Snapshot, o *snapshot.Object) []Finding {
	if o.ExternalSecret == nil {
		return nil
	}
	next := o.ExternalSecret.Status.NextRefreshTime
	if window := o.ExternalSecret.Status.NextWindowTime; window != nil {
		next = window // The refresh waits for it.
	}
	if next == nil || s.Now.Sub(next.Time) < refreshSlack {
		return nil
	}
	why := fmt.Sprintf("a refresh was due at %s", next.UTC().Format(time.RFC3339))
	return one(Warning, o, ReasonRefreshOverdue, why, "see the operator's log and the runbook under DirectSecretsQueueStuck; to try again now: "+s.Program+" refresh "+o.Argument())
}
