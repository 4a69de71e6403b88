package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// releaseTimeout is how long failures keep an object that is being deleted, see mayRelease. After the same time, an event
// reports an object with finalizers of other modules.
const releaseTimeout = 10 * time.Minute

// holdInterval is the time between two checks of an object that is being deleted.
const holdInterval = 15 * time.Second

// removal is the request of an attempt that removes what was created.
const removal = "delete"

// finalize removes what was created for an object that is being deleted, and then removes the finalizer.
func (p *pass) finalize(ctx context.Context) error {
	p.abandoned()
	if !controllerutil.ContainsFinalizer(p.ps, p.finalizer) {
		return nil
	}
	removes := p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete
	if stays := created(p.known()); removes && p.opts.NoRemoteChanges && len(stays) > 0 {
		p.warn(p.ps, "Released", "the object is deleted, and --no-remote-changes is set, so these remote secrets stay; delete them by hand if they are not in use: %s", strings.Join(stays, ", "))
	}
	if !removes || p.opts.NoRemoteChanges {
		return p.hold(ctx, false) // deletionPolicy None releases the object, also while it is being deleted.
	}
	return removeAll(ctx, p)
}

// removeAll removes what was created for an object that is being deleted, and releases the object when that is done.
func removeAll(ctx context.Context, p *pass) error {
	dests, elsewhere, err := p.stores.remaining(ctx, p.ps.Namespace, p.obj.remaining(p.known()))
	if err != nil {
		return err
	}
	p.elsewhere = elsewhere
	for _, id := range elsewhere {
		p.obj.stores.forget(id)
	}
	p.fold(dests)
	idle := leavesUnchanged(p.ps)
	left := leftoverOf(dests, &p.obj.stores, p.ps.Generation, idle)
	release, err := mayRelease(ctx, p.client, p.ps, left, p.now)
	switch {
	case err != nil:
		return err
	case len(p.obj.stores.open()) > 0:
		// A secret that is being created must be removed as well. The end of the push requeues the object.
		left.stays = append(left.stays, "a push in progress")
	case len(left.stays) == 0:
		return p.finish(ctx, dests)
	case release || idle:
		p.warn(p.ps, "Released", "the object is deleted, but these remote secrets could not be removed: %s", strings.Join(left.stays, ", "))
		return p.hold(ctx, false)
	}
	for i := range dests {
		if d := &dests[i]; d.refusal == nil && !idle && (len(d.status.Entries) > 0 || p.obj.stores.unchecked(idOf(d.status))) {
			p.remove(d)
		}
	}
	p.again(holdInterval)
	statuses := statusesOf(dests)
	if len(dests) == 0 {
		statuses = p.known()
	}
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; waiting for these remote secrets to be removed: "+
		strings.Join(left.stays, ", ")+"; to delete the object and keep them, set spec.deletionPolicy: None")
	return p.conclude(ctx, statuses, &v)
}

// created returns the remote secrets and properties that entries of a status name as created.
func created(stores []v1alpha1.PushStoreStatus) []string {
	var all []string
	for _, s := range stores {
		for _, e := range s.Entries {
			if e.Created {
				all = append(all, fmt.Sprintf("%s %q %s", s.Kind, s.Name, place(e.RemoteKey, e.Property)))
			}
		}
	}
	return all
}

// leavesUnchanged reports whether an object that is deleted leaves its remote secrets unchanged.
func leavesUnchanged(ps *v1alpha1.PushSecret) bool { return ps.Spec.Suspend || ps.Spec.DryRun }

// finish writes to the status that everything is removed, and removes the finalizer. The finalizers of other modules
// may keep the object longer, and then show its status.
func (p *pass) finish(ctx context.Context, dests []destination) error {
	v := deleted
	if others := p.others(p.ps); len(others) > 0 {
		v = status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; waiting for the finalizers of other modules: "+strings.Join(others, ", "))
	}
	if err := p.conclude(ctx, statusesOf(dests), &v); err != nil {
		return err
	}
	p.ps = p.obj.written.Later(p.ps).DeepCopy() // The patch of the finalizer needs the object as just written.
	return p.hold(ctx, false)
}

// abandoned emits an event if the finalizer of another module keeps an object for long. That module might be stopped,
// and then cannot report it.
func (p *pass) abandoned() {
	others := p.others(p.ps)
	wait := releaseTimeout - p.now.Sub(p.ps.DeletionTimestamp.Time)
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
		p.warn(p.ps, "Held", "the finalizer of the module of %s has blocked deletion for ten minutes; run the module, or keep the remote secrets and remove the finalizer: "+
			"kubectl patch pushsecrets.direct-secrets.io -n %s %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/%d\",\"value\":%q},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%d\"}]'",
			module, p.ps.Namespace, p.ps.Name, slices.Index(p.ps.Finalizers, f), f, slices.Index(p.ps.Finalizers, f))
	}
}

// remaining returns the status entries of the stores where something was created for an object, or is being created.
// known are the entries of the status.
func (o *object) remaining(known []v1alpha1.PushStoreStatus) []v1alpha1.PushStoreStatus {
	for _, id := range o.stores.open() {
		if !slices.ContainsFunc(known, func(s v1alpha1.PushStoreStatus) bool { return idOf(s) == id }) {
			known = append(known, v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
		}
	}
	slices.SortFunc(known, byID)
	return known
}

var deleted = status.Good(v1alpha1.ReasonSecretDeleted, "all remote secrets that this object created are removed")

// leftover is what was created for an object and still exists.
type leftover struct {
	// stays lists the stores and remote secrets, for messages.
	stays []string
	// unreachable is true if a store or its credentials are missing or invalid, so that only a user could remove something.
	// failing is true if a removal failed or a store refuses.
	unreachable, failing bool
}

// leftoverOf returns what is left in stores, and updates their conditions.
func leftoverOf(dests []destination, at *progress, generation int64, idle bool) leftover {
	var left leftover
	unchecked := 0
	for i := range dests {
		d := &dests[i]
		owned := d.owned()
		if len(owned) == 0 && !idle && d.refusal == nil && at.unchecked(idOf(d.status)) {
			owned = []string{d.name() + ", which is compared once more"}
			unchecked++
		}
		if len(owned) == 0 {
			d.status.Entries = nil
			d.conclude(deleted, generation)
			continue
		}
		left.stays = append(left.stays, owned...)
		at.with(idOf(d.status), func(s *storeState) {
			left.unreachable = left.unreachable || d.store == nil || d.broken || s.broken
			left.failing = left.failing || d.refusal != nil || s.failing
		})
		if d.refusal != nil {
			d.conclude(*d.refusal, generation)
		}
	}
	// Nothing is known to exist, so a store that fails keeps the object for a limited time only.
	left.unreachable = left.unreachable || left.failing && unchecked == len(left.stays)
	return left
}

// owned names what this object may own in the store.
func (d *destination) owned() (names []string) {
	for _, e := range d.status.Entries {
		if mayOwn(e) {
			names = append(names, d.name()+" "+place(e.RemoteKey, e.Property))
		}
	}
	return names
}

// remove starts the removal of everything that was created in a store.
func (p *pass) remove(d *destination) {
	var busy bool
	var wait time.Duration
	p.obj.stores.with(idOf(d.status), func(s *storeState) {
		if busy = s.busy(); !busy {
			wait = s.begin(removalOf(p.ps), p.now)
		}
	})
	if busy || wait > 0 {
		p.again(wait)
		return
	}
	_, err := d.removals()
	if err != nil {
		p.obj.stores.with(idOf(d.status), func(s *storeState) { s.failing = true })
		d.conclude(failure(d.name(), err), p.ps.Generation)
		return
	}
	p.start(unit{p.key, idOf(d.status)}, queue.High)
}

// removalOf returns the attempt of a removal.
func removalOf(ps *v1alpha1.PushSecret) kit.Attempt {
	return kit.Attempt{Generation: ps.Generation, Request: removal}
}

// toRemove returns a store from which something of an object that is being deleted must be removed now; nil if not.
func toRemove(ctx context.Context, p *pass, id storeID) (*destination, error) {
	if p.ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete || p.opts.NoRemoteChanges || leavesUnchanged(p.ps) ||
		!controllerutil.ContainsFinalizer(p.ps, p.finalizer) {
		return nil, nil
	}
	dests, _, err := p.stores.remaining(ctx, p.ps.Namespace, slices.DeleteFunc(p.known(), func(s v1alpha1.PushStoreStatus) bool { return idOf(s) != id }))
	if err != nil || len(dests) == 0 || dests[0].refusal != nil {
		return nil, err
	}
	return &dests[0], nil
}

// Optional: without this permission, objects in a terminating namespace are kept for up to ten minutes.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// mayRelease reports whether an object may be released although something of it stays behind. In a terminating namespace,
// where no user can restore a store or credentials, it is enough that these are missing, or that removals have failed
// for ten minutes. In other namespaces both are needed. A removal that was not attempted has not failed. c must read live.
func mayRelease(ctx context.Context, c client.Reader, ps *v1alpha1.PushSecret, left leftover, now time.Time) (bool, error) {
	late := left.failing && now.Sub(ps.DeletionTimestamp.Time) >= releaseTimeout
	ns := resolve.NamespaceMetadata()
	err := c.Get(ctx, types.NamespacedName{Name: ps.Namespace}, ns)
	switch {
	case kerrors.IsForbidden(err): // The namespace may be terminating.
		return late, nil
	case err != nil && !kerrors.IsNotFound(err):
		return false, errors.Wrap(err, "cannot read the namespace")
	case err != nil || ns.DeletionTimestamp != nil:
		return left.unreachable || late, nil
	}
	return left.unreachable && late, nil
}
