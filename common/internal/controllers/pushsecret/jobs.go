package pushsecret

import (
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// job is what is to be done to one remote secret.
type job struct {
	target provider.Target
	want   []push.Value
	// known are the entries of the status that the decision goes by; kept stay as they are.
	known, kept []v1alpha1.PushEntryStatus
}

// removes reports whether anything may be removed from the remote secret.
func (j job) removes() bool {
	return slices.ContainsFunc(j.known, func(e v1alpha1.PushEntryStatus) bool {
		return !slices.ContainsFunc(j.want, func(v push.Value) bool { return v.Property == e.Property })
	})
}

// jobOf returns the place of the job for a remote secret; -1 for none.
func jobOf(jobs []job, key string) int {
	return slices.IndexFunc(jobs, func(j job) bool { return j.target.Key == key })
}

// jobFor is jobOf that adds one that wants nothing where there is none.
func jobFor(jobs []job, key string) ([]job, int) {
	if i := jobOf(jobs, key); i >= 0 {
		return jobs, i
	}
	return append(jobs, job{target: provider.Target{Key: key}}), len(jobs)
}

// jobs returns what an object wants of the store, and what is to be removed from it. source is the version of what is
// pushed there. An error means that nothing may be pushed.
func (d *destination) jobs(ps *v1alpha1.PushSecret, plan *push.Plan, secrets []pushed, source string) ([]job, error) {
	jobs, err := d.writes(ps.Namespace, plan, secrets)
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
		case !e.Created || ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete:
			continue // It is let go.
		}
		jobs, i = jobFor(jobs, e.RemoteKey)
		if d.takenOut(e, ps, secrets, source) && d.mayWrite(e.RemoteKey) == nil {
			jobs[i].known = append(jobs[i].known, e)
		} else {
			e.Source = "" // It stays until the object goes, also when the spec changes later.
			jobs[i].kept = append(jobs[i].kept, e)
		}
	}
	return jobs, nil
}

// writes returns what a plan wants of the store.
func (d *destination) writes(namespace string, plan *push.Plan, secrets []pushed) ([]job, error) {
	var from []push.Source
	for _, s := range secrets {
		if s.labels[d.label(namespace)] != "" {
			return nil, circular(s.Name, "this store")
		}
		from = append(from, s.Source)
	}
	remotes, err := plan.Desire(d.ref(), from)
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

// mayWrite returns an error if the store does not let the namespace write a key.
func (d *destination) mayWrite(key string) error {
	if d.grant == nil {
		return nil
	}
	if err := d.grant.Writes(key); err != nil {
		return provider.NewError(provider.Denied, "%s", err)
	}
	return nil
}

// takenOut reports whether an entry that is not wanted any more was taken out of the spec since the store last was in step.
// That its Secret is gone, or lacks keys, deletes nothing. Where only the keys of Secrets could tell, all else must be as it was
// then.
func (d *destination) takenOut(e v1alpha1.PushEntryStatus, ps *v1alpha1.PushSecret, secrets []pushed, source string) bool {
	return d.status.ObservedGeneration != ps.Generation &&
		(d.status.ObservedSource == source || push.Drops(ps, d.ref(), e.RemoteKey, e.Property)) &&
		slices.ContainsFunc(secrets, func(s pushed) bool { return s.Name == e.Source && len(s.Data) > 0 })
}

// removals returns the jobs that remove all that the status names.
func (d *destination) removals() ([]job, error) {
	var jobs []job
	for _, e := range d.status.Entries {
		if err := d.mayWrite(e.RemoteKey); err != nil {
			return nil, err
		}
		var i int
		jobs, i = jobFor(jobs, e.RemoteKey)
		jobs[i].known = append(jobs[i].known, e)
	}
	return jobs, nil
}
