// Package cutover moves ExternalSecrets and PushSecrets of External Secrets Operator to direct-secrets, one by one and
// without a gap. At each moment at most one of the two operators writes a Secret, which keeps its UID and its data, or a
// remote secret, which keeps its value.
package cutover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/migrate"
)

// workers is how many objects are moved at a time. The limit of requests of the client is what bounds the speed.
const workers = 8

// A Unit is an ExternalSecret or a PushSecret of External Secrets Operator, and what it becomes.
type Unit struct {
	// From is the object of External Secrets Operator.
	From *unstructured.Unstructured
	// To is what it becomes; nil if it cannot be converted.
	To *unstructured.Unstructured
	// Stores are the converted stores and generators to which To refers.
	Stores []*unstructured.Unstructured
	// MadeBy is the object of External Secrets Operator that makes From; "" if a user does.
	MadeBy string
	// Changes is how many changes of the conversion are to be checked, those of the stores included.
	Changes int
}

// Options are decisions of the user.
type Options struct {
	// AcceptChanges also moves objects of which the conversion changes something.
	AcceptChanges bool
	// ReconciliationSuspended also moves objects that Argo CD or Flux manage.
	ReconciliationSuspended bool
	// Remove deletes the object of External Secrets Operator once its Secret has been taken over.
	Remove bool
	// JournalNamespace is the namespace of the journal. Entries are trusted, so tenants must not be able to write
	// ConfigMaps in it.
	JournalNamespace string
	// Timeout is how long one object may take.
	Timeout time.Duration
}

// An Outcome is how the attempt to move or to give back an object ended.
type Outcome string

// The outcomes.
const (
	// Moved means that direct-secrets writes what the object describes.
	Moved Outcome = "moved"
	// Left means that External Secrets Operator writes it as before.
	Left Outcome = "left"
	// Reverted means that External Secrets Operator may write it again.
	Reverted Outcome = "reverted"
	// Failed means that a request failed half-way; the same command goes on from there.
	Failed Outcome = "failed"
)

// A Result is that of one object.
type Result struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`
	// Reason says why it was left, or what is to be done.
	Reason string `json:"reason,omitempty"`
}

// Cutover moves objects in a cluster.
type Cutover struct {
	Client client.Client
	Options
	// Report is called for each object that has ended, for one at a time.
	Report func(Result)
}

// Move moves objects. Those whose move an earlier call has begun are finished.
func (c *Cutover) Move(ctx context.Context, units []Unit) []Result {
	return each(c, units, func(u Unit) Result {
		r := resultOf(u.From)
		r.Outcome, r.Reason = c.move(ctx, u)
		return r
	})
}

func resultOf(from *unstructured.Unstructured) Result {
	return Result{Kind: from.GetKind(), Namespace: from.GetNamespace(), Name: from.GetName()}
}

// each calls work for all units, some at a time, and returns the results in the order of the units.
func each[U any](c *Cutover, units []U, work func(U) Result) []Result {
	results := make([]Result, len(units))
	slots := make(chan struct{}, workers)
	var all sync.WaitGroup
	var reports sync.Mutex
	for i, u := range units {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = work(u)
			reports.Lock()
			defer reports.Unlock()
			c.Report(results[i])
		})
	}
	all.Wait()
	return results
}

// move moves one object, or leaves it to External Secrets Operator and says why.
func (c *Cutover) move(ctx context.Context, u Unit) (Outcome, string) {
	journal, err := c.readEntry(ctx, u.From)
	switch {
	case err != nil:
		return Failed, err.Error()
	case journal == nil:
		if reason := c.refused(u); reason != "" {
			return Left, reason
		}
		if journal, err = c.begin(ctx, u); err != nil {
			return Failed, err.Error()
		}
		if journal == nil {
			return Left, "a Secret of it does not exist"
		}
	case journal.Moved:
		return c.clean(ctx, u.From, *journal, "it was moved before")
	}
	outcome, reason, err := c.steps(ctx, u, *journal)
	switch {
	case err != nil:
		return Failed, err.Error()
	case outcome == Moved:
		return c.clean(ctx, u.From, *journal, reason)
	}
	if err := c.giveBack(ctx, *journal); err != nil {
		return Failed, fmt.Sprintf("%s; it cannot be given back: %v", reason, err)
	}
	return outcome, reason
}

// steps takes the steps of a move that is not finished.
func (c *Cutover) steps(ctx context.Context, u Unit, journal entry) (Outcome, string, error) {
	if u.To == nil {
		return Left, notConverted, nil
	}
	m := &move{Cutover: c, unit: u, name: client.ObjectKeyFromObject(u.From), journal: journal}
	return m.run(ctx)
}

const notConverted = "it cannot be converted; the report of migrate says why"

// clean deletes the object of External Secrets Operator of a finished move, if the user wants that. Nothing else is ever
// done for such an object without --revert. An object that External Secrets Operator would act on is left.
func (c *Cutover) clean(ctx context.Context, of *unstructured.Unstructured, journal entry, note string) (Outcome, string) {
	if !c.Remove {
		return Moved, note
	}
	from, err := c.readFrom(ctx, of)
	switch {
	case err != nil:
		return Failed, err.Error()
	case from == nil || from.GetDeletionTimestamp() != nil:
		return Moved, note // External Secrets Operator removes its finalizer when it runs.
	case from.GetUID() != journal.UID:
		return Left, "the object of External Secrets Operator was created again after the move; delete it by hand, or use --revert"
	case !stopped(from):
		return Left, "the object of External Secrets Operator was changed after the move, so that it writes again; use --revert, or restore the fields that the move had set"
	}
	uid, version := from.GetUID(), from.GetResourceVersion()
	// The garbage collector removes ownerReferences instead of deleting what the object owned. The ExternalSecrets of a
	// ClusterExternalSecret go with it: they own no Secret.
	propagation := metav1.DeletePropagationOrphan
	if IsCluster(from) {
		propagation = metav1.DeletePropagationBackground
	}
	err = c.Client.Delete(ctx, from, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case kerrors.IsConflict(err):
		return Failed, "the object of External Secrets Operator changed at the same moment; run the command again"
	case client.IgnoreNotFound(err) != nil:
		return Failed, fmt.Sprintf("cannot delete the object of External Secrets Operator: %v", err)
	}
	return Moved, note
}

// refused says why an object is not moved before anything is changed; "" if it is.
func (c *Cutover) refused(u Unit) string {
	unsuspended := c.unsuspended(u.From)
	switch {
	case u.MadeBy != "":
		return u.MadeBy + " makes it and would take the change back; move that, with -A, or as the guide on moving says"
	case u.To == nil:
		return notConverted
	case field(u.To, "target", "kind") == string(v1alpha1.TargetConfigMap):
		return "it writes a ConfigMap, and only Secrets are moved; apply the converted manifest with another spec.target.name, let workloads read that ConfigMap, and delete the object of External Secrets Operator"
	case u.Changes > 0 && !c.AcceptChanges:
		return fmt.Sprintf("the conversion changes something (%d findings); check the report of migrate, and use --accept-changes", u.Changes)
	case unsuspended != "":
		return unsuspended
	case !synced(u.From):
		return "External Secrets Operator has not synced it; correct that first"
	case isPush(u.From):
		return refusedPush(u.To)
	case field(u.From, "target", "creationPolicy") == "None":
		return "it writes no Secret; apply the converted manifest"
	case letGo(u.From):
		return "it has creationPolicy Orphan and a refreshInterval of 0 already, so External Secrets Operator does not write it; apply the converted manifest"
	}
	return ""
}

// unsuspended says why an object cannot be changed as long as a tool reconciles it from Git; "" if none does.
func (c *Cutover) unsuspended(from *unstructured.Unstructured) string {
	manager := gitOps(from)
	if manager == "" || c.ReconciliationSuspended {
		return ""
	}
	return manager + " manages it and would take the change back; suspend that, and use --reconciliation-suspended"
}

// synced reports whether the status of an object of External Secrets Operator says that its Secret is up to date.
func synced(from *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(from.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// A tool reconciles objects from Git.
type tool struct {
	name string
	// prefixes are those of its labels and annotations, managers its field managers.
	prefixes, managers []string
}

var tools = []tool{
	{"Argo CD", []string{"argocd.argoproj.io/"}, []string{"argocd-controller", "argocd-application-controller"}},
	{"Flux", []string{"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"}, []string{"kustomize-controller", "helm-controller"}},
	{"Fleet", []string{"objectset.rio.cattle.io/"}, []string{"fleetagent"}},
}

// gitOps returns the tool that reconciles an object from Git; "" if there is none.
func gitOps(o metav1.Object) string {
	for _, t := range tools {
		for _, all := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
			for key := range all {
				if hasPrefix(key, t.prefixes) {
					return t.name
				}
			}
		}
		for _, m := range t.managers {
			for _, f := range o.GetManagedFields() {
				if f.Manager == m {
					return t.name
				}
			}
		}
	}
	return ""
}

func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// untracked returns labels or annotations without those by which a tool would take an object for one of its own.
func untracked(all map[string]string) map[string]string {
	rest := map[string]string{}
	for key, value := range all {
		if key != migrate.InstanceLabel && !slices.ContainsFunc(tools, func(t tool) bool { return hasPrefix(key, t.prefixes) }) {
			rest[key] = value
		}
	}
	return rest
}

// field returns a text of the spec; "" if there is none.
func field(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, append(specOf(o), path...)...)
	return text
}

// target returns the name of the Secret of an ExternalSecret of either operator.
func target(o *unstructured.Unstructured) types.NamespacedName {
	name := field(o, "target", "name")
	if name == "" {
		name = o.GetName()
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
}
