package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// job is the wanted change of one remote secret.
type job struct {
	target provider.Target
	want   []push.Value
	// known are the status entries that the decision uses. kept are entries that stay unchanged.
	known, kept []v1alpha1.PushEntryStatus
	// unrecorded are the values of those known that have no version: an interrupted push may have written them.
	unrecorded []push.Value
}

// removes reports whether the job may remove something from the remote secret.
func (j job) removes() bool {
	return slices.ContainsFunc(j.known, func(e v1alpha1.PushEntryStatus) bool {
		return !slices.ContainsFunc(j.want, func(v push.Value) bool { return v.Property == e.Property })
	})
}

// removesSince returns since when a removal of the job is due.
func (j job) removesSince() (since time.Time) {
	for _, e := range j.known {
		if at := e.RemoveAfter; at != nil && at.After(since) {
			since = at.Time
		}
	}
	return since
}

// jobOf returns the index of the job for a remote secret; -1 for none.
func jobOf(jobs []job, key string) int {
	return slices.IndexFunc(jobs, func(j job) bool { return j.target.Key == key })
}

// jobFor is like jobOf, but appends an empty job if there is none.
func jobFor(jobs []job, key string) ([]job, int) {
	if i := jobOf(jobs, key); i >= 0 {
		return jobs, i
	}
	return append(jobs, job{target: provider.Target{Key: key}}), len(jobs)
}

// jobs returns the writes that an object wants at the store, and the removals from it. source is the version of what is
// pushed there. Obsolete entries are removed after removeAfter, also those that an earlier spec made obsolete: others of the commit may use
// them. If it returns an error, nothing must be pushed.
func (d *destination) jobs(ctx context.Context, ps *v1alpha1.PushSecret, plan *push.Plan, secrets []pushed, source string, now, removeAfter time.Time) ([]job, error) {
	jobs, err := d.writes(ctx, ps.Namespace, plan, secrets)
	if err != nil {
		return nil, err
	}
	last := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionSynced)
	tried := last != nil && last.ObservedGeneration == ps.Generation
	for _, e := range d.status.Entries {
		i := jobOf(jobs, e.RemoteKey)
		wanted := i >= 0 && slices.ContainsFunc(jobs[i].want, func(v push.Value) bool { return v.Property == e.Property })
		switch {
		case wanted:
			jobs[i].know(e)
			continue
		case !mayOwn(e) || ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete:
			continue // The object gives up its ownership.
		}
		jobs, i = jobFor(jobs, e.RemoteKey)
		switch {
		case e.RemoveAfter == nil && !d.takenOut(e, ps, secrets, source), d.mayWrite(e.RemoteKey) != nil:
			e.Source, e.RemoveAfter = "", nil // It stays until the object is deleted, also if the spec changes later.
			jobs[i].kept = append(jobs[i].kept, e)
			continue
		case e.RemoveAfter == nil, !tried, e.RemoveAfter.After(removeAfter): // Perhaps the clock was wrong.
			e.RemoveAfter = &metav1.Time{Time: removeAfter}
		}
		if e.RemoveAfter.After(now) {
			jobs[i].kept = append(jobs[i].kept, e)
		} else {
			jobs[i].know(e)
		}
	}
	return jobs, nil
}

// know adds an entry of the status to a job.
func (j *job) know(e v1alpha1.PushEntryStatus) {
	j.known = append(j.known, e)
	for _, v := range j.want {
		if e.Version == "" && v.Property == e.Property {
			j.unrecorded = append(j.unrecorded, v)
		}
	}
}

// removeAt returns when the next of the entries is removed; zero for never.
func removeAt(entries []v1alpha1.PushEntryStatus) (at time.Time) {
	for _, e := range entries {
		if e.RemoveAfter != nil && (at.IsZero() || e.RemoveAfter.Time.Before(at)) {
			at = e.RemoveAfter.Time
		}
	}
	return at
}

// mayOwn reports whether the object has or may have created what an entry names, or another object may have handed it over.
func mayOwn(e v1alpha1.PushEntryStatus) bool { return e.Created || e.Owner != "" || e.Version == "" }

// jobs returns the jobs of a task, or sets why nothing must be pushed.
func (p *unitPass) jobs(ctx context.Context, t *task, secrets []pushed) (jobs []job, err error) {
	if t.refused = p.checkSize(ctx, secrets); t.refused != nil {
		return nil, nil
	}
	removeAfter := p.now.Add(p.opts.RemoveDelay).Truncate(time.Second)
	if p.dry(p.ps) != notDry {
		removeAfter = p.now // It shows what is removed later.
	}
	if jobs, err = t.to.jobs(ctx, p.ps, p.plan, secrets, t.Sources, p.now, removeAfter); err != nil {
		t.refuse(t.to.name(), err)
	}
	return jobs, ctx.Err()
}

// checkSize returns a verdict if the status would list too much: it must always be possible to write it, or created secrets
// are forgotten. A store whose jobs are invalid reports that itself.
func (p *unitPass) checkSize(ctx context.Context, secrets []pushed) *status.Verdict {
	entries, names := 0, 0
	for _, id := range p.named {
		remotes, err := desire(ctx, p.ps.Namespace, p.plan, v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}, secrets)
		if err != nil {
			continue // The jobs report it.
		}
		listed := map[v1alpha1.PushRemoteRef]bool{}
		list := func(key, property, source string) {
			if name := (v1alpha1.PushRemoteRef{RemoteKey: key, Property: property}); !listed[name] {
				listed[name] = true
				entries, names = entries+1, names+len(key)+len(property)+len(source)
			}
		}
		for _, r := range remotes {
			for _, v := range r.Values {
				list(r.Target.Key, v.Property, v.Source)
			}
		}
		for _, s := range p.known() {
			for _, e := range s.Entries {
				if mayOwn(e) && idOf(s) == id {
					list(e.RemoteKey, e.Property, e.Source)
				}
			}
		}
	}
	if entries <= push.MaxEntries && names <= push.MaxNames {
		return nil
	}
	v := status.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec pushes %d remote secrets and properties with %d bytes of names, over all stores of this module; at most %d with %d bytes are allowed; split the object",
		entries, names, push.MaxEntries, push.MaxNames))
	return &v
}

func sourcesOf(secrets []pushed) (from []push.Source) {
	for _, s := range secrets {
		from = append(from, s.Source)
	}
	return from
}

// desire returns what a plan wants at a store. Its rewrites can have templates.
func desire(ctx context.Context, tenant string, plan *push.Plan, ref v1alpha1.StoreRef, secrets []pushed) ([]push.Remote, error) {
	return kit.Heavy(ctx, tenant, func() ([]push.Remote, error) { return plan.Desire(ref, sourcesOf(secrets)) })
}

// writes returns the writes that a plan wants at the store.
func (d *destination) writes(ctx context.Context, namespace string, plan *push.Plan, secrets []pushed) ([]job, error) {
	for _, s := range secrets {
		if s.labels[d.label(namespace)] != "" {
			return nil, circular(s.Name, "this store")
		}
	}
	remotes, err := desire(ctx, namespace, plan, d.ref(), secrets)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, r := range remotes {
		if err := d.mayWrite(r.Target.Key); err != nil {
			return nil, err
		}
		jobs = append(jobs, job{target: r.Target, want: r.Values})
	}
	return jobs, nil
}

// mayWrite returns an error if the store does not allow the namespace to write a key.
func (d *destination) mayWrite(key string) error {
	if d.grant == nil {
		return nil
	}
	if err := d.grant.Writes(key); err != nil {
		return provider.NewError(provider.Denied, "%s", err)
	}
	return nil
}

// takenOut reports whether an obsolete entry was removed from the spec since the store was last in sync. A Secret that
// is deleted or lacks keys must not delete anything. If the entry depends on the keys of Secrets, everything else must
// be unchanged since then.
func (d *destination) takenOut(e v1alpha1.PushEntryStatus, ps *v1alpha1.PushSecret, secrets []pushed, source string) bool {
	return d.status.ObservedGeneration != ps.Generation &&
		(d.status.ObservedSource == source || push.Drops(ps, d.ref(), e)) &&
		slices.ContainsFunc(secrets, func(s pushed) bool { return s.Name == e.Source && len(s.Data) > 0 })
}

// unrecorded adds to removals the values of what an interrupted push may have written: it is removed only with such a value. Without
// its sources nothing is known of that.
func unrecorded(ctx context.Context, p *unitPass, d *destination, jobs []job) error {
	if !slices.ContainsFunc(d.status.Entries, func(e v1alpha1.PushEntryStatus) bool { return e.Version == "" }) {
		return nil
	}
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		return nil //nolint:nilerr // Nothing was pushed by this spec.
	}
	p.plan = plan
	from, seen, err := p.followSources(ctx)
	if err != nil {
		return err
	}
	is, held, err := from.load(ctx, seen.refs)
	var known *provider.Error
	switch {
	case errors.As(err, &known):
		return nil
	case err != nil:
		return err
	}
	p.values = held
	remotes, err := desire(ctx, p.ps.Namespace, plan, d.ref(), is.secrets)
	for _, r := range remotes {
		if i := jobOf(jobs, r.Target.Key); i >= 0 {
			jobs[i].unrecorded = r.Values
		}
	}
	if err != nil {
		return ctx.Err() // Otherwise nothing was pushed by this spec.
	}
	return nil
}

// removals returns the jobs that remove everything that the status lists as created. They are due since a time.
func (d *destination) removals(since time.Time) ([]job, error) {
	var jobs []job
	for _, e := range d.status.Entries {
		if !mayOwn(e) {
			continue
		}
		if err := d.mayWrite(e.RemoteKey); err != nil {
			return nil, err
		}
		var i int
		jobs, i = jobFor(jobs, e.RemoteKey)
		e.RemoveAfter = &metav1.Time{Time: since}
		jobs[i].known = append(jobs[i].known, e)
	}
	return jobs, nil
}
