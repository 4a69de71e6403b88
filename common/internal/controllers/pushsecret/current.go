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

// currentFor is how long what was read is taken to be current, unless somebody else has written what it is pushed to.
const currentFor = 2 * time.Second

// currentFunc is a push.Pusher's Current.
type currentFunc func(ctx context.Context, again bool) error

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=get

// unchanged returns a Current for what was read of an object at a time. A process that was paused may have been replaced
// by another one, which has pushed newer values. from must read live.
func (p *pass) unchanged(from *sources, is refs, read time.Time) currentFunc {
	uid, generation, hash := p.ps.UID, p.ps.Generation, is.hash()
	return func(ctx context.Context, again bool) error {
		if !again && time.Since(read) < currentFor {
			return nil
		}
		asked := time.Now()
		same, err := from.are(ctx, uid, generation, hash)
		switch {
		case err != nil:
			return err
		case !same:
			return push.ErrOld
		}
		read = asked
		return nil
	}
}

// are reports whether an object and what it pushes are as they were.
func (s *sources) are(ctx context.Context, uid types.UID, generation int64, hash string) (bool, error) {
	ps := &v1alpha1.PushSecret{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(s.object), ps); err != nil {
		return false, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	if ps.UID != uid || ps.Generation != generation || ps.DeletionTimestamp != nil {
		return false, nil
	}
	selected, err := selectionOf(s.client, ps, &sourceMemory{}, time.Time{})
	if err != nil {
		return false, err
	}
	now, err := (&sources{client: s.client, object: ps, texts: s.texts, selection: selected}).look(ctx, 0)
	if err != nil {
		return false, err
	}
	return now.refs.hash() == hash, nil
}
