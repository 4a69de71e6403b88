package externalsecret

import (
	"context"
	"slices"

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

// withParts adds the values that lie in parts to those of stores, by live reads. It is false if they are not what
// the cache shows.
func (p *pass) withParts(ctx context.Context, values render.Values) (render.Values, bool, error) {
	if len(p.handed.versions) == 0 {
		return values, true, nil
	}
	found, from := map[render.Source]provider.Answer{}, map[render.Source]handoff.Record{}
	for _, s := range p.es.Status.Parts {
		if !p.handed.used[s.Module] {
			continue
		}
		live, rec, err := p.open(ctx, s)
		if err != nil {
			return nil, false, err
		}
		for _, src := range p.plan.Sources {
			if !p.handedIn(src) || !p.serves(rec, src) {
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
	for _, s := range p.plan.Sources {
		if !p.handedIn(s) {
			continue
		}
		if _, ok := found[s]; !ok {
			return nil, false, nil
		}
		p.handed.versions[i] = versionIn(from[s], s) // What the status says was read is what was read.
		i++
	}
	return func(s render.Source) provider.Answer {
		if a, ok := found[s]; ok {
			return a
		}
		return values(s)
	}, true, nil
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;delete

// open reads a part that the status records. Of one that is not as it was recorded the record is empty.
func (p *pass) open(ctx context.Context, s v1alpha1.PartStatus) (*corev1.Secret, handoff.Record, error) {
	live := &corev1.Secret{}
	err := p.client.Get(ctx, types.NamespacedName{Namespace: p.es.Namespace, Name: s.Name}, live)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, handoff.Record{}, errors.Wrap(err, "cannot read a part")
	}
	rec, ok := handoff.Of(live.Annotations)
	if !ok || live.UID != s.UID || live.DeletionTimestamp != nil {
		return live, handoff.Record{}, nil
	}
	if rec.Reads != nil && target.HashInputs(p.es.UID, handoff.Content(live.Data)) != rec.Reads.Hash {
		// Somebody has changed it. Its module makes it anew.
		err := p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
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

// prune takes away the parts that the spec names no more and whose module runs no more; one that runs does so
// itself. What this operator has read while another claimed the object goes, too.
func (p *pass) prune(ctx context.Context) error {
	if !p.handed.ready {
		return nil
	}
	for _, s := range p.es.Status.Parts {
		if p.handed.used[s.Module] || !p.contributor().Wrote(s) && p.heard(s) {
			continue
		}
		if err := p.removePart(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// removePart deletes a part of the object, and takes it out of the status.
func (p *pass) removePart(ctx context.Context, s v1alpha1.PartStatus) error {
	live := &corev1.Secret{}
	err := p.client.Get(ctx, types.NamespacedName{Namespace: p.es.Namespace, Name: s.Name}, live)
	if err != nil && s.Name != "" && !kerrors.IsNotFound(err) {
		return errors.Wrap(err, "cannot read a part")
	}
	es := &v1alpha1.ExternalSecret{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.es), es); err != nil || es.UID != p.es.UID || es.Generation != p.es.Generation {
		return client.IgnoreNotFound(err) // The spec may name it again.
	}
	if rec, ok := handoff.Of(live.Annotations); ok && live.Type == handoff.Type && live.UID == s.UID && p.names(s, rec) {
		if p.holds(es, rec) {
			p.handed.again(settling << 2) // The status has yet to say that it holds others.
			return nil
		}
		err := p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrap(err, "cannot delete a part")
		}
	}
	_, err = handoff.Recorder{Client: p.client, Contributor: handoff.ContributorOf(s)}.Tell(ctx, "ExternalSecret", p.es, p.es.Status.Parts, handoff.Said{}, nil)
	return err
}

// names reports whether a part of this object has the name that the module's has that the status records it for.
func (p *pass) names(s v1alpha1.PartStatus, rec handoff.Record) bool {
	return rec.Kind == "ExternalSecret" && rec.Name == p.es.Name && s.Name == handoff.ContributorOf(s).PartName(rec.Kind, rec.Name)
}

// holds reports whether the Secret of an object may hold generated values of a part.
func (p *pass) holds(es *v1alpha1.ExternalSecret, rec handoff.Record) bool {
	if len(rec.Entries) > 0 && es.Spec.Target.CreationPolicy == v1alpha1.CreateNone {
		return true // Nothing is written, so a Secret that was written before keeps what it holds.
	}
	return slices.ContainsFunc(es.Status.Sources, func(s v1alpha1.SourceStatus) bool { return s.Version != "" && rec.Has(s.Version) })
}
