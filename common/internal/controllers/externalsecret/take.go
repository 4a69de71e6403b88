package externalsecret

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// take adds the values that lie in parts to those of stores, by live reads. It is false if they are not what
// the cache shows.
func (p partReader) take(ctx context.Context, s *subject, values render.Values) (render.Values, bool, error) {
	if len(s.handed.versions) == 0 {
		return values, true, nil
	}
	found, from := map[render.Source]provider.Answer{}, map[render.Source]handoff.Record{}
	for _, part := range s.es.Status.Parts {
		if !s.handed.used[part.Module] {
			continue
		}
		live, rec, err := p.open(ctx, s.es, part)
		if err != nil {
			return nil, false, err
		}
		for _, src := range s.plan.Sources {
			if !s.stores.Elsewhere(src) || !serves(s.es, rec, src) {
				continue
			}
			if before, twice := from[src]; twice && !readLater(rec, before) {
				continue
			}
			if a, ok := answerIn(live, src); ok {
				found[src], from[src] = a, rec
			}
		}
	}
	i := 0
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) {
			continue
		}
		if _, ok := found[src]; !ok {
			return nil, false, nil
		}
		s.handed.versions[i] = versionIn(from[src], src) // What the status says was read is what was read.
		i++
	}
	return func(src render.Source) provider.Answer {
		if a, ok := found[src]; ok {
			return a
		}
		return values(src)
	}, true, nil
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;delete

// open reads a part that the status records. Of one that is not as it was recorded the record is empty.
func (p partReader) open(ctx context.Context, es *v1alpha1.ExternalSecret, s v1alpha1.PartStatus) (*corev1.Secret, handoff.Record, error) {
	live := &corev1.Secret{}
	err := p.live.Get(ctx, types.NamespacedName{Namespace: es.Namespace, Name: s.Name}, live)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, handoff.Record{}, errors.Wrap(err, "cannot read a part")
	}
	rec, ok := handoff.Of(live.Annotations)
	if !ok || live.UID != s.UID || live.DeletionTimestamp != nil {
		return live, handoff.Record{}, nil
	}
	if rec.Reads != nil && target.HashInputs(es.UID, handoff.Content(live.Data)) != rec.Reads.Hash {
		// Somebody has changed it. Its module makes it anew.
		err := p.live.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		return live, handoff.Record{}, errors.Wrap(client.IgnoreNotFound(err), "cannot delete a part that somebody has changed")
	}
	return live, rec, nil
}

// answerIn returns what a part holds of a source.
func answerIn(live *corev1.Secret, s render.Source) (provider.Answer, bool) {
	if s.Generator {
		return handoff.Answer(live, s.Store)
	}
	return handoff.AnswerOf(live, handoff.SourceID(s.Store, s.Read))
}
