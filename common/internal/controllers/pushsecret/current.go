package pushsecret

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
)

// late is how long an answer of the API server may take. A slower answer may be outdated, so it is asked for again, up
// to tries times. After that the last answer is used, so that a slow API server does not stop all pushes.
const (
	late  = 250 * time.Millisecond
	tries = 4
)

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=get

// unchanged returns a push.Pusher's Current for an object and its sources as read at a time. A process that was paused may have been
// replaced by another one, which has pushed newer values. from must read live.
func unchanged(ps *v1alpha1.PushSecret, from *sources, is refs, read time.Time) func(ctx context.Context, age time.Duration) error {
	uid, generation, hash := ps.UID, ps.Generation, is.hash()
	return func(ctx context.Context, age time.Duration) error {
		if time.Since(read) < age {
			return nil
		}
		for try := 1; ; try++ {
			asked := time.Now()
			same, err := from.are(ctx, uid, generation, hash)
			switch {
			case err != nil:
				return err
			case !same:
				return push.ErrOld
			case time.Since(asked) < late, try == tries:
				read = asked
				return nil
			}
		}
	}
}

// are reports whether an object and its sources are unchanged.
func (s *sources) are(ctx context.Context, uid types.UID, generation int64, hash string) (bool, error) {
	ps := &v1alpha1.PushSecret{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(s.object), ps); err != nil {
		return false, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	if ps.UID != uid || ps.Generation != generation || ps.DeletionTimestamp != nil {
		return false, nil
	}
	selected, err := selectionOf(s.client, s.objects, ps, &sourceMemory{}, time.Time{})
	if err != nil {
		return false, err
	}
	now, err := (&sources{client: s.client, objects: s.objects, object: ps, templateRefs: s.templateRefs, selection: selected}).readVersions(ctx, 0)
	if err != nil {
		return false, err
	}
	return now.refs.hash() == hash, nil
}
