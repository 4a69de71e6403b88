package pushsecret

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// patience is how long an object that is being deleted is held by a store that fails, where nobody could
// mend it any more.
const patience = 10 * time.Minute

// finalize removes what was created for an object that is being deleted, and then lets it go.
func (p *pass) finalize(ctx context.Context) error {
	p.abandoned()
	if !controllerutil.ContainsFinalizer(p.ps, p.finalizer()) {
		return nil
	}
	if p.ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete {
		return p.setFinalizer(ctx, false) // None lets go, also now.
	}
	dests, err := p.remaining(ctx)
	if err != nil {
		return err
	}
	p.fold(dests)
	stays, gone, failing := p.left(dests)
	release, err := p.mayRelease(ctx, gone, failing)
	switch {
	case err != nil:
		return err
	case p.ps.Spec.Suspend:
		release = true // Nothing is touched, also now.
	}
	switch {
	case p.obj.running():
		// What it creates has to be removed as well. Its end brings the object back.
		stays = append(stays, "what is being pushed")
	case len(stays) == 0:
		return p.setFinalizer(ctx, false)
	case release:
		p.tell("Released", "let go although it could not be removed: %s", strings.Join(stays, ", "))
		return p.setFinalizer(ctx, false)
	}
	for i := range dests {
		if d := &dests[i]; d.refusal == nil && len(d.status.Entries) > 0 {
			p.remove(ctx, d)
		}
	}
	p.again(holdInterval)
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, "being deleted; what it created has to be removed first: "+
		strings.Join(stays, ", ")+"; set spec.deletionPolicy: None to let it go and leave that behind")
	return p.conclude(ctx, &v)
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
		p.tell("Held", "held for ten minutes by the module of %s, which may not run; run it, or let go and leave behind what it created: "+
			"kubectl patch pushsecret -n %s %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/%d\",\"value\":%q},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%d\"}]'",
			module, p.ps.Namespace, p.ps.Name, slices.Index(p.ps.Finalizers, f), f, slices.Index(p.ps.Finalizers, f))
	}
}

// holdInterval is how often an object that is being deleted is looked at.
const holdInterval = 15 * time.Second

var deleted = status.Good(v1alpha1.ReasonSecretDeleted, "what was created is removed")

// left notes the state of each store, and returns what has yet to be removed: whether nobody but a person could
// do so, and whether it failed.
func (p *pass) left(dests []destination) (stays []string, gone, failing bool) {
	p.obj.mu.Lock()
	for i := range dests {
		s := p.obj.store(idOf(dests[i].status))
		dests[i].broken = dests[i].broken || s.broken
		dests[i].failing = dests[i].refusal != nil || s.failures > 0 && s.attempt.request == removal
	}
	p.obj.mu.Unlock()
	for i := range dests {
		d := &dests[i]
		d.status.Entries = slices.DeleteFunc(d.status.Entries, func(e v1alpha1.PushEntryStatus) bool { return !e.Created })
		if len(d.status.Entries) == 0 {
			d.conclude(deleted, p.ps.Generation)
		}
		for _, e := range d.status.Entries {
			stays = append(stays, d.name()+" "+place(e.RemoteKey, e.Property))
		}
		if len(d.status.Entries) > 0 {
			gone, failing = gone || d.store == nil || d.broken, failing || d.failing
			if d.refusal != nil {
				d.conclude(*d.refusal, p.ps.Generation)
			}
		}
		p.stores = append(p.stores, d.status)
	}
	return stays, gone, failing
}

// removal is the request of an attempt that removes what was created.
const removal = "delete"

// remaining returns the stores in which something was created for the object, or is being created. What is
// under way at a store that cannot be looked at any more is left.
func (p *pass) remaining(ctx context.Context) ([]destination, error) {
	stores := p.known()
	p.obj.mu.Lock()
	for id, s := range p.obj.stores {
		if (s.running || s.result != nil) && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool { return idOf(s) == id }) {
			stores = append(stores, v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
		}
	}
	p.obj.mu.Unlock()
	slices.SortFunc(stores, byID)
	var dests []destination
	for _, s := range stores {
		k, ok := p.routes.Serves(&v1alpha1.StoreRef{APIVersion: s.APIVersion, Kind: s.Kind, Name: s.Name})
		if !ok {
			continue
		}
		d, err := p.destination(ctx, k, s.Name)
		if err != nil {
			return nil, err
		}
		if d != nil {
			dests = append(dests, *d)
			continue
		}
		p.obj.mu.Lock()
		delete(p.obj.stores, idOf(s)) // An operator of another class serves it by now.
		p.obj.mu.Unlock()
	}
	return dests, nil
}

// remove has all that was created in a store removed from it.
func (p *pass) remove(ctx context.Context, d *destination) {
	a := attempt{generation: p.ps.Generation, request: removal}
	p.obj.mu.Lock()
	s := p.obj.store(idOf(d.status))
	if a != s.attempt {
		s.attempt, s.failures, s.until = a, 0, time.Time{}
	}
	wait, running := s.until.Sub(p.now), s.running
	p.obj.mu.Unlock()
	switch {
	case running:
		return
	case wait > 0:
		p.again(wait)
		return
	}
	var jobs []job
	for _, e := range d.status.Entries {
		if d.grant != nil {
			if err := d.grant.Writes(e.RemoteKey); err != nil {
				d.conclude(failure(d.name(), provider.NewError(provider.Denied, "%s", err)), p.ps.Generation)
				return
			}
		}
		var i int
		jobs, i = jobFor(jobs, e.RemoteKey)
		jobs[i].known = append(jobs[i].known, e)
	}
	p.launch(ctx, d, jobs, a, "")
}

// Without the right nothing breaks: what could not be removed is then held for longer.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// mayRelease reports whether an object may go although something of it stays behind: where its namespace
// terminates nobody can mend a store or credentials that are gone, and a failure is held against it for a
// while only. What was not tried has not failed.
func (p *pass) mayRelease(ctx context.Context, gone, failing bool) (bool, error) {
	late := failing && p.now.Sub(p.ps.DeletionTimestamp.Time) >= patience
	ns := resolve.NamespaceMetadata()
	err := p.client.Get(ctx, types.NamespacedName{Name: p.ps.Namespace}, ns)
	switch {
	case kerrors.IsForbidden(err): // It may be the namespace that goes.
		return late, nil
	case err != nil && !kerrors.IsNotFound(err):
		return false, errors.Wrap(err, "cannot read the namespace")
	case err != nil || ns.DeletionTimestamp != nil:
		return gone || late, nil
	}
	return gone && late, nil
}
