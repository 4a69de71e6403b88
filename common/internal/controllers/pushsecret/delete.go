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

// removeAll lets what was created for an object that is being deleted be removed, and releases the object when that is done.
func removeAll(ctx context.Context, p *pass) error {
	dests, elsewhere, err := p.stores.remaining(ctx, p.ps.Namespace, p.known())
	if err != nil {
		return err
	}
	idle := leavesUnchanged(p.ps)
	found, left := p.leftover(dests), survey{generation: p.generation, elsewhere: elsewhere, writesConditions: p.writesConditions}
	for i := range dests {
		if d := &dests[i]; d.refusal == nil && !idle && len(d.status.Entries) > 0 {
			left.open = append(left.open, idOf(d.status))
		}
	}
	p.note(left)
	release, err := mayRelease(ctx, p.client, p.ps, found, p.now)
	switch {
	case err != nil:
		return err
	case len(found.stays) == 0:
		return p.finish(ctx)
	case release || idle:
		p.warn(p.ps, "Released", "the object is deleted, but these remote secrets could not be removed: %s", strings.Join(found.stays, ", "))
		return p.hold(ctx, false)
	}
	for _, id := range left.open {
		p.start(unit{p.key, id}, queue.High)
	}
	p.again(holdInterval)
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; waiting for these remote secrets to be removed: "+
		strings.Join(found.stays, ", ")+"; to delete the object and keep them, set spec.deletionPolicy: None")
	return p.conclude(ctx, &v)
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
func (p *pass) finish(ctx context.Context) error {
	v := deleted
	if others := p.others(p.ps); len(others) > 0 {
		v = status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; waiting for the finalizers of other modules: "+strings.Join(others, ", "))
	}
	if err := p.conclude(ctx, &v); err != nil {
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

var deleted = status.Good(v1alpha1.ReasonSecretDeleted, "all remote secrets that this object created are removed")

// leftover is what was created for an object and still exists.
type leftover struct {
	// stays lists the stores and remote secrets, for messages.
	stays []string
	// unreachable is true if a store or its credentials are missing or invalid, so that only a user could remove something.
	// failing is true if a removal failed or a store refuses.
	unreachable, failing bool
}

// leftover returns what is left in stores, and updates their conditions.
func (p *pass) leftover(dests []destination) leftover {
	var left leftover
	unsure := true // Nothing is known to exist, so a store that fails keeps the object for a limited time only.
	for i := range dests {
		d := &dests[i]
		owned := d.owned()
		if len(owned) == 0 {
			p.concludeDeletion(d, &deleted)
			continue
		}
		left.stays = append(left.stays, owned...)
		refusal := d.refusal
		if _, err := d.removals(p.now); err != nil {
			v := failure(d.name(), err)
			refusal = &v
		}
		p.obj.stores.with(idOf(d.status), func(s *storeState) {
			left.unreachable = left.unreachable || d.store == nil || d.broken || s.broken
			left.failing = left.failing || refusal != nil || s.failing
		})
		p.concludeDeletion(d, refusal)
		unsure = unsure && !slices.ContainsFunc(d.status.Entries, func(e v1alpha1.PushEntryStatus) bool { return mayOwn(e) && e.Version != "" })
	}
	left.unreachable = left.unreachable || left.failing && unsure
	return left
}

// concludeDeletion sets the condition of a store, unless v is nil. Entries that own nothing are dropped.
func (p *pass) concludeDeletion(d *destination, v *status.Verdict) {
	if v == nil {
		return
	}
	p.obj.edit(p.ps, idOf(d.status), func(s *v1alpha1.PushStoreStatus) bool {
		had := len(s.Entries)
		if !slices.ContainsFunc(s.Entries, mayOwn) {
			s.Entries = nil
		}
		return concludeStore(s, *v, p.generation) || len(s.Entries) < had
	})
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

// removalOf returns the attempt of a removal.
func removalOf(ps *v1alpha1.PushSecret) kit.Attempt {
	return kit.Attempt{Generation: ps.Generation, Request: removal}
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
