package externalsecret

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// settling is when to look again while it is not known yet who runs.
const settling = 500 * time.Millisecond

// newborn is how long a module that runs has to contribute before something is said.
const newborn = 30 * time.Second

// handed is what a pass knows of what lies in parts: values of generators, and what other operators have read.
type handed struct {
	// versions are those of the values, in the order of the plan's sources; empty for what is not there.
	versions []string
	// ready is true if all values are there.
	ready bool
	// problem says why values are missing or could not be replaced; nil if nothing is wrong.
	problem *verdict
	// used are the names under which the status records the parts that hold them.
	used map[string]bool
	// labels are those of the stores that other operators have read.
	labels []string
	// wait is the time until there may be something to say of what is missing; 0 for none.
	wait time.Duration
}

// recorded is a part that the status records, as the cache shows it.
type recorded struct {
	status v1alpha1.PartStatus
	rec    handoff.Record
}

// handedIn reports whether the values of a source lie in a part.
func (p *pass) handedIn(s render.Source) bool { return s.Generator || p.foreign[s.Store] }

// regard looks at the parts that the status records, as the cache shows them. A Secret that the status does
// not record is no part of the object.
func (p *pass) regard(ctx context.Context) error {
	p.handed = handed{ready: true, used: map[string]bool{}}
	shared := slices.ContainsFunc(p.plan.Sources, p.handedIn)
	p.obj.shared.Store(shared || len(p.es.Status.Parts) > 0)
	if !shared {
		p.obj.since = time.Time{}
		return nil
	}
	parts, err := p.recorded(ctx)
	if err != nil {
		return err
	}
	var missing []render.Source
	for _, s := range p.plan.Sources {
		if !p.handedIn(s) {
			continue
		}
		version := ""
		if r := p.holder(parts, s); r != nil {
			version = versionIn(r.rec, s)
			p.handed.used[r.status.Module] = true
		} else {
			missing = append(missing, s)
		}
		p.handed.versions = append(p.handed.versions, version)
	}
	for _, r := range parts {
		if r.rec.Reads != nil && p.handed.used[r.status.Module] {
			p.handed.labels = append(p.handed.labels, r.rec.Reads.Labels...)
		}
	}
	p.handed.ready = len(missing) == 0
	if p.handed.ready {
		p.obj.since = time.Time{}
	} else if p.obj.since.IsZero() {
		p.obj.since = time.Now()
	}
	p.handed.problem = p.wrong(parts, missing)
	return nil
}

// recorded returns the parts that the status records.
func (p *pass) recorded(ctx context.Context) ([]recorded, error) {
	var parts []recorded
	for _, s := range p.es.Status.Parts {
		if s.Name == "" {
			continue
		}
		key, m := types.NamespacedName{Namespace: p.es.Namespace, Name: s.Name}, resolve.SecretMetadata()
		err := p.cache.Get(ctx, key, m)
		if kerrors.IsNotFound(err) {
			// It may lack the label by which the cache knows it.
			m = resolve.SecretMetadata()
			err = p.client.Get(ctx, key, m)
		}
		switch rec, ok := handoff.Of(m.Annotations); {
		case kerrors.IsNotFound(err):
		case err != nil:
			return nil, errors.Wrap(err, "cannot read a part")
		case ok && m.UID == s.UID && m.DeletionTimestamp == nil:
			parts = append(parts, recorded{s, rec})
		}
	}
	return parts, nil
}

// holder returns the part that has what the object wants of a source now; nil if none has.
func (p *pass) holder(parts []recorded, s render.Source) *recorded {
	var found *recorded
	for i := range parts {
		// A store may have gone from one class to another: the operator that reads it now is right.
		if rec := parts[i].rec; p.serves(rec, s) && (found == nil || readLater(rec, found.rec)) {
			found = &parts[i]
		}
	}
	return found
}

// readLater reports whether a part was read after another.
func readLater(a, b handoff.Record) bool {
	return a.Reads != nil && (b.Reads == nil || a.Reads.At.After(b.Reads.At))
}

// serves reports whether a part has what the object wants of a source now. What is immutable keeps its values,
// whatever is asked for.
func (p *pass) serves(rec handoff.Record, s render.Source) bool {
	request := p.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	if p.es.Spec.Target.Immutable {
		request = ""
	}
	if s.Generator {
		return rec.Serves(p.es.UID, s.Store, request)
	}
	return rec.ServesRead(p.es.UID, handoff.SourceID(s.Store, s.Read), request)
}

// versionIn returns the version of what a part holds of a source.
func versionIn(rec handoff.Record, s render.Source) string {
	if s.Generator {
		return rec.Entries[handoff.ID(s.Store)].Version
	}
	return rec.Reads.Version
}

// wrong says why values are missing or could not be replaced; nil if nothing is wrong.
func (p *pass) wrong(parts []recorded, missing []render.Source) *verdict {
	if p.opts.Board.Settling() {
		// Who runs, and which version, is known in a moment.
		p.handed.ready = false
		p.handed.again(settling)
		return nil
	}
	if v := p.skewed(parts); v != nil {
		p.handed.ready = false
		return v
	}
	for _, s := range p.es.Status.Parts {
		if v := said(s); v != nil && p.heard(s) {
			// What a store does not allow is not taken from what it allowed before.
			p.handed.ready = p.handed.ready && v.Reason != v1alpha1.ReasonForbidden
			return v
		}
	}
	for _, s := range missing {
		if v := p.absent(s, p.obj.since); v != nil {
			return v
		}
		if waited := time.Since(p.obj.since); waited < newborn {
			p.handed.again(newborn - waited)
			continue
		}
		who := "the module that serves it"
		if all := p.opts.Board.Serving(&s.Store, p.es.Namespace); len(all) > 0 {
			who = all[0].Name
		}
		v := syncFailed(provider.NewError(provider.Unavailable, "%s %q: %s has yet to contribute what this object wants of it", s.Store.Kind, s.Store.Name, who))
		return &v
	}
	return p.outdated(parts)
}

// skewed says that an operator that contributes, or would, is too old or too new; nil if none is.
func (p *pass) skewed(parts []recorded) *verdict {
	self := p.opts.Board.Self()
	for _, s := range p.plan.Sources {
		if !p.handedIn(s) {
			continue
		}
		all := p.opts.Board.Serving(&s.Store, p.es.Namespace)
		if r := p.holder(parts, s); r != nil {
			all = nil
			if m, runs := p.operatorOf(r.status); runs {
				all = append(all, m)
			}
		}
		if len(all) == 0 || slices.ContainsFunc(all, func(m presence.Member) bool { return !presence.Skewed(self.Version, m.Version) }) {
			continue
		}
		v := status.Stalled(v1alpha1.ReasonVersionSkew, fmt.Sprintf("%s is built with common %s and %s with common %s, and their minor versions may differ by one: upgrade the older module", self.Name, self.Version, all[0].Name, all[0].Version))
		return &v
	}
	return nil
}

// operatorOf returns the operator that wrote an entry of status.parts; false if it does not run.
func (p *pass) operatorOf(s v1alpha1.PartStatus) (presence.Member, bool) {
	return p.opts.Board.Running(p.es.Namespace, func(m presence.Member) bool { return handoff.Wrote(m.Module, m.Class, s) })
}

// absent says that nobody serves a source, for an object that waits since a time; nil if that is not known.
func (p *pass) absent(s render.Source, since time.Time) *verdict {
	gone, wait, why := false, time.Duration(0), p.opts.Board.Hint(&s.Store)
	if class, ours := p.foreignClass(s); ours {
		gone, wait = p.opts.Board.MissingClass(&s.Store, class, p.es.Namespace, since)
		why = fmt.Sprintf("%s %q is of controller class %q, and no running operator serves that class; start one with --controller-class=%[3]s, or change spec.controller of the store", s.Store.Kind, s.Store.Name, class)
	} else {
		gone, wait = p.opts.Board.Missing(&s.Store, p.es.Namespace, since)
	}
	if !gone {
		p.handed.again(wait)
		return nil
	}
	v := status.Stalled(v1alpha1.ReasonProviderNotRunning, why)
	return &v
}

// foreignClass returns the class of a store of this module that an operator of another class reads; false for one
// of another module.
func (p *pass) foreignClass(s render.Source) (string, bool) {
	refusal := p.resolved[s.Store].refusal
	if refusal == nil || refusal.Why != resolve.OtherClass {
		return "", false
	}
	return refusal.Class, true
}

// outdated says that what an operator has contributed that runs no more was to be read again, or has expired; nil if
// nothing was.
func (p *pass) outdated(parts []recorded) *verdict {
	for _, s := range p.plan.Sources {
		r := p.holder(parts, s)
		if !p.handedIn(s) || r == nil {
			continue
		}
		due := r.rec.Entries[handoff.ID(s.Store)].Expires
		if r.rec.Reads != nil {
			due = r.rec.Reads.Next
		}
		if _, runs := p.operatorOf(r.status); runs || due.IsZero() || !p.opts.Board.On() {
			continue
		}
		if early := due.Sub(p.opts.Now()); early > 0 {
			p.handed.again(early)
			continue
		}
		gone, wait := p.opts.Board.MissingClass(&s.Store, r.status.Class, p.es.Namespace, due)
		if gone {
			v := status.Stalled(v1alpha1.ReasonProviderNotRunning, p.opts.Board.Hint(&s.Store))
			return &v
		}
		p.handed.again(wait)
	}
	return nil
}

// again has the object looked at after a time, or earlier.
func (h *handed) again(wait time.Duration) {
	if wait > 0 && (h.wait == 0 || wait < h.wait) {
		h.wait = wait
	}
}

// said is what an operator says of its part; nil if nothing is wrong.
func said(s v1alpha1.PartStatus) *verdict {
	if s.Message == "" {
		return nil
	}
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, s.Message)
	v.Class = provider.Class(s.ErrorClass)
	switch s.Reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonForbidden:
		v.Reason, v.Stalled = s.Reason, true
	case v1alpha1.ReasonStoreNotFound, v1alpha1.ReasonStoreNotReady:
		v.Reason = s.Reason
	}
	return &v
}

// heard reports whether what an operator says of its part counts: who has gone says nothing any more.
func (p *pass) heard(s v1alpha1.PartStatus) bool {
	_, runs := p.operatorOf(s)
	return runs || !p.opts.Board.Sees()
}

// partEvent brings an object back whose part has changed.
func (r *Reconciler) partEvent(o client.Object) (types.NamespacedName, bool) {
	rec, ok := handoff.Of(o.GetAnnotations())
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}, ok && rec.Kind == "ExternalSecret"
}

// shown reports whether the status says a verdict already.
func (p *pass) shown(v verdict) bool {
	c := meta.FindStatusCondition(p.seen.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == v.Status && c.Reason == v.Reason && c.Message == v.Text() && c.ObservedGeneration == p.es.Generation
}
