package restart

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

const (
	// MaxConcurrent is the maximum number of restarted workloads of a namespace that are not available yet.
	MaxConcurrent = 5
	// Timeout is how long the rollout of a StatefulSet or DaemonSet can take, and the restart of a Rollout by time. The other
	// rollouts have a deadline of their own.
	Timeout = 10 * time.Minute
)

// An Object is an ExternalSecret with spec.target.restart.
type Object struct {
	*v1alpha1.ExternalSecret
	// Hash is that of the present data; empty if the target does not exist.
	Hash string
	// Next is the status to write.
	Next *v1alpha1.RestartStatus
	// Failure is why a workload could not be restarted; empty if there was no error.
	Failure string
	// missing are the workloads that the spec names and that do not exist. stuck are those of the namespace that have not become
	// available.
	missing, stuck []string
}

// NewObject returns the Object of an ExternalSecret whose target has the data of a hash. It notes a change of the data, and ends
// a change that was undone within the window. The first data of a target, or of another target, are no change.
func NewObject(es *v1alpha1.ExternalSecret, hash string, now time.Time) *Object {
	o := &Object{ExternalSecret: es, Hash: hash, Next: es.Status.Restart.DeepCopy()}
	if o.Next == nil {
		o.Next = &v1alpha1.RestartStatus{}
	}
	switch {
	case hash == "":
	case !sameSalt(hash, o.Next.Hash):
		o.Next.Hash, o.Next.ChangeTime = hash, nil
	case hash == o.Next.Hash:
		o.Next.ChangeTime = nil
	case o.Next.ChangeTime == nil:
		at := metav1.NewTime(now).Rfc3339Copy()
		o.Next.ChangeTime = &at
	}
	return o
}

// window returns the time from a change to the restart.
func (o *Object) window() time.Duration {
	w, err := o.Spec.Target.Restart.Window.Or(v1alpha1.RestartWindow)
	if err != nil { // The API server refuses it.
		return v1alpha1.RestartWindow
	}
	return w
}

// Wait returns the time until the window of a change ends; false if there is no change.
func (o *Object) Wait(now time.Time) (time.Duration, bool) {
	if o.Next.ChangeTime == nil {
		return 0, false
	}
	return max(0, o.Next.ChangeTime.Add(o.window()).Sub(now)), true
}

// Active reports whether the object needs the workloads of its namespace now.
func (o *Object) Active(now time.Time) bool {
	wait, changed := o.Wait(now)
	return changed && wait == 0 || len(o.Next.Pending)+len(o.Next.Rolling) > 0 || o.unchecked()
}

// unchecked reports whether it is unknown whether the workloads that the spec names exist, or whether a failure still holds.
func (o *Object) unchecked() bool {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionWorkloadsRestarted)
	unseen := c == nil || c.ObservedGeneration != o.Generation
	return o.Hash != "" && (unseen && len(o.Spec.Target.Restart.Workloads) > 0 || o.Status.RestartFailure() != nil)
}

// Missing reports whether a workload that the spec names does not exist.
func (o *Object) Missing() bool { return len(o.missing) > 0 }

func (o *Object) concerns(w *Workload) bool { return Concerns(o.ExternalSecret, w.WorkloadRef, w.uses) }

// current reports whether a workload was already restarted for the present data.
func (o *Object) current(w *Workload) bool { return w.Annotations[Key(o.TargetName())] == o.Hash }

// A Patch is the restart of a workload: the annotations to set.
type Patch struct {
	*Workload
	Annotations map[string]string
}

// Body returns a merge patch that sets the annotations of the pod template, and nothing else. A Rollout that refers to another
// workload gets a time instead, and the annotations itself: they are the record of the restart.
func (p *Patch) Body(now time.Time) ([]byte, error) {
	metadata, spec := map[string]any{"uid": p.UID}, map[string]any{}
	if p.Referring {
		metadata["annotations"] = p.Annotations
		// Pods that are older restart. Their times are whole seconds, and a time in the future is waited for.
		spec["restartAt"] = now.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
	} else {
		spec["template"] = map[string]any{"metadata": map[string]any{"annotations": p.Annotations}}
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	return body, errors.Wrap(err, "cannot encode the restart")
}

// Plan returns the restarts that may begin now, and updates the objects of a namespace. workloads are all in the namespace.
func Plan(objects []*Object, workloads []Workload, now time.Time) []Patch {
	all := map[v1alpha1.WorkloadRef]*Workload{}
	for i := range workloads {
		all[workloads[i].WorkloadRef] = &workloads[i]
	}
	rolling, stuck := map[v1alpha1.WorkloadRef]bool{}, map[string]bool{}
	for _, o := range objects {
		o.begin(workloads, now)
		o.follow(all, now)
		for _, r := range o.Next.Rolling {
			rolling[r.WorkloadRef] = true
			if w := all[r.WorkloadRef]; w.Progress == Failed || w.timed() && now.Sub(r.Time.Time) > Timeout {
				stuck[name(r.WorkloadRef)] = true
			}
		}
	}
	if len(stuck) > 0 {
		for _, o := range objects {
			o.stuck = slices.Sorted(maps.Keys(stuck))
		}
		return nil
	}
	return choose(objects, all, rolling)
}

// timed reports whether Timeout applies to a workload.
func (w *Workload) timed() bool {
	return w.Kind == v1alpha1.WorkloadStatefulSet || w.Kind == v1alpha1.WorkloadDaemonSet || w.Referring
}

// begin lists the workloads to restart once the window of a change has ended. A workload that was created after the change has
// started with the new data.
func (o *Object) begin(workloads []Workload, now time.Time) {
	if wait, changed := o.Wait(now); !changed || wait > 0 || o.Hash == "" {
		return
	}
	changed := o.Next.ChangeTime.Time
	o.Next.Hash, o.Next.ChangeTime = o.Hash, nil
	for i := range workloads {
		w := &workloads[i]
		if o.concerns(w) && !w.Created.After(changed) && !slices.Contains(o.Next.Pending, w.WorkloadRef) {
			o.Next.Pending = append(o.Next.Pending, w.WorkloadRef)
		}
	}
}

// follow finds the workloads that do not exist, and removes the workloads that are done: deleted, available, or restarted by an attempt that was not recorded.
func (o *Object) follow(all map[v1alpha1.WorkloadRef]*Workload, now time.Time) {
	for _, ref := range o.Spec.Target.Restart.Workloads {
		if all[ref] == nil {
			o.missing = append(o.missing, name(ref))
		}
	}
	var pending []v1alpha1.WorkloadRef
	for _, ref := range o.Next.Pending {
		switch w := all[ref]; {
		case w == nil || !o.concerns(w):
		case o.Hash != "" && o.current(w):
			o.restarted(ref, now)
		default:
			pending = append(pending, ref)
		}
	}
	o.Next.Pending = pending
	o.Next.Rolling = slices.DeleteFunc(o.Next.Rolling, func(r v1alpha1.RollingWorkload) bool {
		w := all[r.WorkloadRef]
		return w == nil || w.Progress == Available
	})
}

// restarted records the restart of a workload.
func (o *Object) restarted(ref v1alpha1.WorkloadRef, now time.Time) {
	o.Next.Rolling = slices.DeleteFunc(o.Next.Rolling, func(r v1alpha1.RollingWorkload) bool { return r.WorkloadRef == ref })
	o.Next.Rolling = append(o.Next.Rolling, v1alpha1.RollingWorkload{WorkloadRef: ref, Time: metav1.NewTime(now).Rfc3339Copy()})
}

// choose returns the restarts of pending workloads that the limit allows. A restart is one for all Secrets that have changed,
// also for those whose window has not ended.
func choose(objects []*Object, all map[v1alpha1.WorkloadRef]*Workload, rolling map[v1alpha1.WorkloadRef]bool) []Patch {
	due := map[v1alpha1.WorkloadRef]map[string]string{}
	for _, o := range objects {
		if o.Hash == "" {
			continue
		}
		for _, ref := range o.Next.Pending {
			if due[ref] == nil {
				due[ref] = map[string]string{}
			}
			due[ref][Key(o.TargetName())] = o.Hash
		}
	}
	var patches []Patch
	for _, ref := range slices.SortedFunc(maps.Keys(due), compare) {
		if !rolling[ref] && len(rolling) >= MaxConcurrent {
			continue
		}
		rolling[ref] = true
		for _, o := range objects {
			if o.Hash != "" && o.Next.ChangeTime != nil && o.concerns(all[ref]) {
				due[ref][Key(o.TargetName())] = o.Hash
			}
		}
		patches = append(patches, Patch{all[ref], due[ref]})
	}
	return patches
}

// Done records a restart for all objects that waited for it.
func (p *Patch) Done(objects []*Object, now time.Time) {
	for _, o := range objects {
		if i := slices.Index(o.Next.Pending, p.WorkloadRef); i >= 0 {
			o.Next.Pending = slices.Delete(o.Next.Pending, i, i+1)
			o.restarted(p.WorkloadRef, now)
		}
	}
}

// Drop removes a workload that cannot be restarted, for example because it was deleted.
func (p *Patch) Drop(objects []*Object) {
	for _, o := range objects {
		o.Next.Pending = slices.DeleteFunc(o.Next.Pending, func(r v1alpha1.WorkloadRef) bool { return r == p.WorkloadRef })
	}
}

// Fail records why a workload could not be restarted, in the objects that wait for it.
func (p *Patch) Fail(objects []*Object, why string) {
	for _, o := range objects {
		if slices.Contains(o.Next.Pending, p.WorkloadRef) {
			o.Failure = "cannot restart " + name(p.WorkloadRef) + ": " + why
		}
	}
}

// Blocked reports whether a restart has failed, or waits for a workload that has not become available.
func (o *Object) Blocked() bool {
	return o.Failure != "" || len(o.stuck) > 0 && len(o.Next.Pending)+len(o.Next.Rolling) > 0
}

// Verdict returns the condition WorkloadsRestarted.
func (o *Object) Verdict() status.Verdict {
	waiting := len(o.Next.Pending) > 0 || o.Next.ChangeTime != nil
	switch {
	case o.Failure != "":
		return status.Failed(v1alpha1.ReasonRestartFailed, o.Failure)
	case len(o.stuck) > 0 && (waiting || len(o.Next.Rolling) > 0):
		return status.Failed(v1alpha1.ReasonWorkloadNotAvailable, listed(o.stuck)+" has not become available after its restart; no other workload is restarted until it is: fix it, or roll it back")
	case len(o.missing) > 0:
		return status.Failed(v1alpha1.ReasonWorkloadNotFound, listed(o.missing)+" does not exist; correct spec.target.restart.workloads")
	case len(o.Next.Pending)+len(o.Next.Rolling) > 0:
		return status.Failed(v1alpha1.ReasonRestarting, o.progress())
	case o.Next.ChangeTime != nil:
		return status.Failed(v1alpha1.ReasonRestartPending, fmt.Sprintf("the data has changed; workloads restart after the window of %s", o.window()))
	}
	return status.Good(v1alpha1.ReasonUpToDate, "no restart is due")
}

func (o *Object) progress() string {
	var rolling, pending []string
	for _, r := range o.Next.Rolling {
		rolling = append(rolling, name(r.WorkloadRef))
	}
	for _, r := range o.Next.Pending {
		pending = append(pending, name(r))
	}
	switch {
	case len(pending) == 0:
		return "restarting " + listed(rolling)
	case len(rolling) == 0:
		return "waiting for a restart: " + listed(pending)
	}
	return "restarting " + listed(rolling) + "; waiting for a restart: " + listed(pending)
}

func name(r v1alpha1.WorkloadRef) string { return fmt.Sprintf("%s %q", r.Kind, r.Name) }

func compare(a, b v1alpha1.WorkloadRef) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// maxListed is the maximum number of names in a message.
const maxListed = 10

func listed(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
