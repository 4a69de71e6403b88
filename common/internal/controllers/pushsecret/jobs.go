package pushsecret

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

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
	// unrecorded are the values of those known that are not in the status.
	unrecorded []push.Value
}

// removes reports whether the job may remove something from the remote secret.
func (j job) removes() bool {
	return slices.ContainsFunc(j.known, func(e v1alpha1.PushEntryStatus) bool {
		return !slices.ContainsFunc(j.want, func(v push.Value) bool { return v.Property == e.Property })
	})
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
// pushed there. If it returns an error, nothing must be pushed.
func (d *destination) jobs(ctx context.Context, ps *v1alpha1.PushSecret, plan *push.Plan, secrets []pushed, source string) ([]job, error) {
	jobs, err := d.writes(ctx, ps.Namespace, plan, secrets)
	if err != nil {
		return nil, err
	}
	for _, e := range d.status.Entries {
		i := jobOf(jobs, e.RemoteKey)
		wanted := i >= 0 && slices.ContainsFunc(jobs[i].want, func(v push.Value) bool { return v.Property == e.Property })
		switch {
		case wanted:
			jobs[i].known = append(jobs[i].known, e)
			continue
		case !mayOwn(e) || ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete:
			continue // The object gives up its ownership.
		}
		jobs, i = jobFor(jobs, e.RemoteKey)
		if d.takenOut(e, ps, secrets, source) && d.mayWrite(e.RemoteKey) == nil {
			jobs[i].known = append(jobs[i].known, e)
		} else {
			e.Source = "" // It stays until the object is deleted, also if the spec changes later.
			jobs[i].kept = append(jobs[i].kept, e)
		}
	}
	return jobs, nil
}

// mayOwn reports whether the object created what an entry names, or another object may have handed it over.
func mayOwn(e v1alpha1.PushEntryStatus) bool { return e.Created || e.Owner != "" }

// jobs returns the jobs of an attempt at a store, or the result if nothing must be pushed.
func (p *pass) jobs(ctx context.Context, d *destination, secrets []pushed, a kit.Attempt) ([]job, *result, error) {
	switch v, err := p.checkSize(ctx, secrets); {
	case err != nil:
		return nil, nil, err
	case v != nil:
		return nil, &result{attempted: attempted{Attempt: a}, refused: v}, nil
	}
	jobs, err := d.jobs(ctx, p.ps, p.plan, secrets, a.Sources)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil:
		return nil, refusedBy(d.name(), err, a), nil
	}
	return jobs, nil, nil
}

// checkSize returns a verdict if the status would list too much: it must always be possible to write it, or created secrets
// are forgotten. A store whose jobs are invalid reports that itself.
func (p *pass) checkSize(ctx context.Context, secrets []pushed) (*status.Verdict, error) {
	refs, err := p.stores.refs(ctx, p.ps)
	if err != nil {
		return nil, err
	}
	entries, names := 0, 0
	for _, ref := range refs {
		remotes, err := desire(ctx, p.ps.Namespace, p.plan, ref, secrets)
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
				if mayOwn(e) && s.APIVersion == ref.APIVersion && s.Kind == ref.Kind && s.Name == ref.Name {
					list(e.RemoteKey, e.Property, e.Source)
				}
			}
		}
	}
	if entries <= push.MaxEntries && names <= push.MaxNames {
		return nil, nil
	}
	v := status.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec pushes %d remote secrets and properties with %d bytes of names, over all stores of this module; at most %d with %d bytes are allowed; split the object",
		entries, names, push.MaxEntries, push.MaxNames))
	return &v, nil
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

// unrecorded adds to removals what the spec names and the status does not: a push that was interrupted may have created it.
// The mark of the secret decides. Without its sources nothing is known of that.
func unrecorded(ctx context.Context, p *pass, d *destination, jobs []job) ([]job, error) {
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		return jobs, nil //nolint:nilerr // Nothing was pushed by this spec.
	}
	p.plan = plan
	from, seen, err := p.followSources(ctx)
	if err != nil {
		return nil, err
	}
	is, held, err := from.load(ctx, seen.refs)
	var known *provider.Error
	switch {
	case errors.As(err, &known):
		return jobs, nil
	case err != nil:
		return nil, err
	}
	p.values = held
	remotes, err := desire(ctx, p.ps.Namespace, plan, d.ref(), is.secrets)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return jobs, nil //nolint:nilerr // Nothing was pushed by this spec.
	}
	for _, r := range remotes {
		for _, v := range r.Values {
			e := v1alpha1.PushEntryStatus{RemoteKey: r.Target.Key, Property: v.Property}
			recorded := slices.ContainsFunc(d.status.Entries, func(o v1alpha1.PushEntryStatus) bool { return o.RemoteKey == e.RemoteKey && o.Property == e.Property })
			if recorded || d.mayWrite(e.RemoteKey) != nil {
				continue
			}
			var i int
			jobs, i = jobFor(jobs, e.RemoteKey)
			jobs[i].known, jobs[i].unrecorded = append(jobs[i].known, e), append(jobs[i].unrecorded, v)
		}
	}
	return jobs, nil
}

// removals returns the jobs that remove everything that the status lists as created.
func (d *destination) removals() ([]job, error) {
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
		jobs[i].known = append(jobs[i].known, e)
	}
	return jobs, nil
}
