package externalsecret

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// held is what a part holds for a source.
type held struct {
	answer provider.Answer
	from   handoff.Record
}

// takeParts adds the values in parts to the values of stores, by live reads. It returns false if a part does not hold what
// the cache shows.
func takeParts(ctx context.Context, live client.Client, s *subject, values render.Values) (render.Values, bool, error) {
	if len(s.handed.versions) == 0 {
		return values, true, nil
	}
	found := map[render.Source]held{}
	for _, part := range s.es.Status.Parts {
		if !s.handed.used[part.Module] {
			continue
		}
		opened, err := openPart(ctx, live, s.es, part)
		if err != nil {
			return nil, false, err
		}
		if opened.Usable() {
			s.collect(found, opened)
		}
	}
	i := 0
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) {
			continue
		}
		h, ok := found[src]
		if !ok {
			return nil, false, nil
		}
		s.handed.versions[i] = versionIn(h.from, src) // Record the version that was read.
		i++
	}
	return func(src render.Source) provider.Answer {
		if h, ok := found[src]; ok {
			return h.answer
		}
		return values(src)
	}, true, nil
}

// collect adds to found what a part holds for the sources of the plan, unless found has a value that was read later.
func (s *subject) collect(found map[render.Source]held, part handoff.Opened) {
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) || !serves(s.es, part.Record, src) {
			continue
		}
		if before, twice := found[src]; twice && !readLater(part.Record, before.from) {
			continue
		}
		if a, ok := answerIn(part.Secret, src); ok {
			found[src] = held{a, part.Record}
		}
	}
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;delete

// openPart reads a part that the status records. A part that another client has changed is deleted, so that its module
// writes it again.
func openPart(ctx context.Context, live client.Client, es *v1alpha1.ExternalSecret, recorded v1alpha1.PartStatus) (handoff.Opened, error) {
	part, err := handoff.Open(ctx, live, es, recorded)
	if err != nil || !part.Changed || part.Secret.DeletionTimestamp != nil {
		return part, err
	}
	err = live.Delete(ctx, part.Secret, client.Preconditions{UID: &part.Secret.UID, ResourceVersion: &part.Secret.ResourceVersion})
	return part, errors.Wrap(client.IgnoreNotFound(err), "cannot delete the Secret of a contribution: another client changed it")
}

// answerIn returns what a part holds for a source.
func answerIn(live *corev1.Secret, s render.Source) (provider.Answer, bool) {
	if s.Generator {
		return handoff.Answer(live, s.Store)
	}
	return handoff.AnswerOf(live, handoff.SourceID(s.Store, s.Read))
}
