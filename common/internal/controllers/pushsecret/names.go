package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// naming are the names of remote secrets that a client has told, by key.
type naming struct {
	// spelled is true if keys have several spellings.
	spelled bool
	names   map[string]provider.Name
}

// name returns the name of a remote secret; false if it is unknown.
func (l location) name(key string) (provider.Name, bool) {
	if !l.spelled {
		return provider.Name{Key: l.Prefix + key}, true
	}
	is, known := l.names[key]
	return is, known
}

// learn asks the client for the names of the remote secrets of the task, and keeps them for other objects. It returns why names are
// unknown, by key.
func (t *task) learn(ctx context.Context) map[string]error {
	if !t.location.spelled {
		return nil
	}
	var keys []string
	for _, j := range t.jobs {
		keys = append(keys, j.target.Key)
	}
	for _, e := range t.to.status.Entries {
		keys = append(keys, e.RemoteKey)
	}
	names, errs := map[string]provider.Name{}, map[string]error{}
	for _, key := range keys {
		if _, known := names[key]; known || errs[key] != nil {
			continue
		}
		if is, err := t.pusher.Store.Name(ctx, key); err != nil {
			errs[key] = err
		} else {
			names[key] = is
		}
	}
	t.location.names = names
	t.others.self.stores.move(idOf(t.to.status), func(at location) location {
		at.names = names
		return at
	})
	t.others.at = t.location
	return errs
}

// join makes one job of the jobs for one remote secret, whatever their keys. A job without a name stays alone: it is unknown for
// which secret it is. If it returns a verdict, nothing must be pushed.
func (t *task) join() *status.Verdict {
	if !t.location.spelled {
		return nil
	}
	var out []job
	var names []provider.Name
	for _, j := range t.jobs {
		is, known := t.location.name(j.target.Key)
		i := slices.IndexFunc(names, is.Is)
		if !known || i < 0 {
			out, names = append(out, j), append(names, is)
			continue
		}
		if err := out[i].join(j); err != nil {
			v := status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error())
			return &v
		}
	}
	t.jobs = out
	return nil
}

// join adds another job for the same remote secret, which is then written by the key of the spec.
func (j *job) join(o job) error {
	if len(j.want) == 0 && len(o.want) > 0 {
		j.target, j.want = o.target, o.want
	} else if len(o.want) > 0 {
		both, err := push.Remote{Target: j.target, Values: j.want}.Join(push.Remote{Target: o.target, Values: o.want})
		if err != nil {
			return err
		}
		j.target, j.want = both.Target, both.Values
	}
	j.known, j.kept, j.unrecorded = slices.Concat(j.known, o.known), slices.Concat(j.kept, o.kept), slices.Concat(j.unrecorded, o.unrecorded)
	// The spec names it under another key, so it is not kept for later.
	j.kept = slices.DeleteFunc(j.kept, func(e v1alpha1.PushEntryStatus) bool {
		wanted := slices.ContainsFunc(j.want, func(v push.Value) bool { return push.SamePlace(v.Property, e.Property) })
		if wanted {
			j.known = append(j.known, e)
		}
		return wanted
	})
	return nil
}

// identify makes one job of the jobs for one remote secret. A job whose remote secret is unknown does nothing.
func (t *task) identify(ctx context.Context) {
	if t.failed != nil {
		return
	}
	unknown := t.learn(ctx)
	if t.refused = t.join(); t.refused != nil {
		t.failed = errors.New(t.refused.Message) // It is shown by refused.
		return
	}
	t.jobs = slices.DeleteFunc(t.jobs, func(j job) bool {
		err := unknown[j.target.Key]
		if err != nil {
			t.keepEntries(j)
			t.failures(j, err)
		}
		return err != nil
	})
}
