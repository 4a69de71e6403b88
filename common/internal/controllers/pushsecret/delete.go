package pushsecret

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// patience is how long an object that is being deleted is held by a store that fails, where nobody could
// mend it any more.
const patience = 10 * time.Minute

// holdInterval is how often an object that is being deleted is looked at.
const holdInterval = 15 * time.Second

// removal is the request of an attempt that removes what was created.
const removal = "delete"

// finalize removes what was created for an object that is being deleted, and then lets it go.
func (p *pass) finalize(ctx context.Context) error {
	p.abandoned()
	if !controllerutil.ContainsFinalizer(p.ps, p.finalizer) {
		return nil
	}
	if p.ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete {
		return p.hold(ctx, false) // None lets go, also now.
	}
	dests, elsewhere, err := p.stores.remaining(ctx, p.ps.Namespace, p.obj.remaining(p.known()))
	if err != nil {
		return err
	}
	for _, id := range elsewhere {
		p.obj.stores.forget(id)
	}
	p.fold(dests)
	p.inherit(dests)
	left := leftoverOf(dests, &p.obj.stores, p.ps.Generation)
	release, err := mayRelease(ctx, p.client, p.ps, left, p.now)
	switch {
	case err != nil:
		return err
	case len(p.obj.stores.open()) > 0:
		// What it creates has to be removed as well. Its end brings the object back.
		left.stays = append(left.stays, "what is being pushed")
	case len(left.stays) == 0:
		return p.finish(ctx, dests)
	case release || p.ps.Spec.Suspend: // Nothing of a suspended object is touched, also now.
		p.warn(p.ps, "Released", "let go although it could not be removed: %s", strings.Join(left.stays, ", "))
		return p.hold(ctx, false)
	}
	for i := range dests {
		if d := &dests[i]; d.refusal == nil && len(d.status.Entries) > 0 {
			p.remove(ctx, d)
		}
	}
	p.again(holdInterval)
	statuses := statusesOf(dests)
	if len(dests) == 0 {
		statuses = p.known()
	}
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; what it created has to be removed first: "+
		strings.Join(left.stays, ", ")+"; set spec.deletionPolicy: None to let it go and leave that behind")
	return p.conclude(ctx, statuses, &v)
}

// finish writes that all is removed, and lets the object go. Others may hold it still, and show its status.
func (p *pass) finish(ctx context.Context, dests []destination) error {
	v := deleted
	if others := p.others(p.ps); len(others) > 0 {
		v = status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; held by "+strings.Join(others, ", "))
	}
	if err := p.conclude(ctx, statusesOf(dests), &v); err != nil {
		return err
	}
	p.ps = p.obj.written.Latest(p.ps).DeepCopy() // The finalizer is taken off what was just written.
	return p.hold(ctx, false)
}

// abandoned tells of an object that another module holds for long. That module may not run any more, and
// then nobody else would say so.
func (p *pass) abandoned() {
	others := p.others(p.ps)
	wait := patience - p.now.Sub(p.ps.DeletionTimestamp.Time)
	if len(others) == 0 || p.obj.abandoned {
		return
	}
	if wait > 0 {
		p.again(wait)
		return
	}
	p.obj.abandoned = true
	for _, f := range others {
		module, _, _ := strings.Cut(f, "/")
		p.warn(p.ps, "Held", "held for ten minutes by the module of %s, which may not run; run it, or let go and leave behind what it created: "+
			"kubectl patch pushsecrets.direct-secrets.io -n %s %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/%d\",\"value\":%q},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%d\"}]'",
			module, p.ps.Namespace, p.ps.Name, slices.Index(p.ps.Finalizers, f), f, slices.Index(p.ps.Finalizers, f))
	}
}

// remaining returns the entries of the stores in which something was created for an object, or is being created. known
// are those of the status.
func (o *object) remaining(known []v1alpha1.PushStoreStatus) []v1alpha1.PushStoreStatus {
	for _, id := range o.stores.open() {
		if !slices.ContainsFunc(known, func(s v1alpha1.PushStoreStatus) bool { return idOf(s) == id }) {
			known = append(known, v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
		}
	}
	slices.SortFunc(known, byID)
	return known
}

var deleted = status.Good(v1alpha1.ReasonSecretDeleted, "what was created is removed")

// leftover is what was created for an object and is still there.
type leftover struct {
	// stays names it.
	stays []string
	// gone is true if nobody but a person could remove some of it, failing if that failed.
	gone, failing bool
}

// leftoverOf returns what is left in stores, and says so in their statuses.
func leftoverOf(dests []destination, at *progress, generation int64) leftover {
	var left leftover
	for i := range dests {
		d := &dests[i]
		d.status.Entries = slices.DeleteFunc(d.status.Entries, func(e v1alpha1.PushEntryStatus) bool { return !e.Created })
		if len(d.status.Entries) == 0 {
			d.conclude(deleted, generation)
			continue
		}
		for _, e := range d.status.Entries {
			left.stays = append(left.stays, d.name()+" "+place(e.RemoteKey, e.Property))
		}
		at.with(idOf(d.status), func(s *storeState) {
			left.gone = left.gone || d.store == nil || d.broken || s.broken
			left.failing = left.failing || d.refusal != nil || s.failures > 0 && s.attempt.request == removal
		})
		if d.refusal != nil {
			d.conclude(*d.refusal, generation)
		}
	}
	return left
}

// remove has all that was created in a store removed from it.
func (p *pass) remove(ctx context.Context, d *destination) {
	a := attempt{generation: p.ps.Generation, request: removal}
	var free bool
	p.obj.stores.with(idOf(d.status), func(s *storeState) {
		var wait time.Duration
		free, wait = s.begin(a, p.now)
		p.again(wait)
	})
	if !free {
		return
	}
	jobs, err := d.removals()
	if err != nil {
		d.conclude(failure(d.name(), err), p.ps.Generation)
		return
	}
	p.start(ctx, p.task(d, jobs, a))
}

// Without the right nothing breaks: what could not be removed is then held for longer.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// mayRelease reports whether an object may go although something of it stays behind: where its namespace
// terminates nobody can mend a store or credentials that are gone, and a failure is held against it for a
// while only. What was not tried has not failed. c is live.
func mayRelease(ctx context.Context, c client.Reader, ps *v1alpha1.PushSecret, left leftover, now time.Time) (bool, error) {
	late := left.failing && now.Sub(ps.DeletionTimestamp.Time) >= patience
	ns := resolve.NamespaceMetadata()
	err := c.Get(ctx, types.NamespacedName{Name: ps.Namespace}, ns)
	switch {
	case kerrors.IsForbidden(err): // It may be the namespace that goes.
		return late, nil
	case err != nil && !kerrors.IsNotFound(err):
		return false, errors.Wrap(err, "cannot read the namespace")
	case err != nil || ns.DeletionTimestamp != nil:
		return left.gone || late, nil
	}
	return left.gone && late, nil
}
