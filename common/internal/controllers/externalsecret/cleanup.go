package externalsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// releaseOldTarget releases the Secrets that the object owned before its spec named the present target. It runs once the new
// target is in sync. Such a Secret is deleted, as it would be with the object. If it holds keys of others, only this
// object's keys are removed. If the object should not own it any longer, only the ownerReference is removed.
func (r *Reconciler) releaseOldTarget(ctx context.Context, s *subject) error {
	names, err := former(ctx, r.cache, s)
	if err != nil {
		return err
	}
	for _, name := range names {
		live, err := r.writer.Get(ctx, types.NamespacedName{Namespace: s.es.Namespace, Name: name})
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		decision := policy.DecideOldTarget(s.self(policy.NotDue, s.state.blocked), s.observe(ctx, live))
		if decision.Action == policy.Nothing {
			continue
		}
		d := s.desired(render.Output{})
		d.Name = name
		d.Owner = nil
		if err := r.change(ctx, s, decision, live, d); err != nil {
			return err
		}
	}
	return nil
}

// former returns the names of the Secrets, other than the target, that the object may still own.
func former(ctx context.Context, cache client.Reader, s *subject) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := cache.List(ctx, list, client.InNamespace(s.es.Namespace), client.MatchingFields{markIndex: s.es.Name}); err != nil {
		return nil, errors.Wrap(err, "cannot list the Secrets of the object")
	}
	var names []string
	for i := range list.Items {
		m := &list.Items[i]
		if o := metav1.GetControllerOf(m); o != nil && o.UID == s.es.UID && m.Name != s.plan.Target {
			names = append(names, m.Name)
		}
	}
	// Another module may have written it, or another client may have removed its label.
	if b := s.seen.Binding; b != nil && b.Name != s.plan.Target && !slices.Contains(names, b.Name) {
		names = append(names, b.Name)
	}
	return names, nil
}

// prune deletes the parts that the spec no longer names and whose module is not running; a running module deletes its
// own. It also deletes the part that this operator wrote while another one claimed the object.
func prune(ctx context.Context, live client.Client, self handoff.Contributor, s *subject) error {
	if !s.handed.Ready {
		return nil
	}
	for _, part := range s.es.Status.Parts {
		if s.handed.used[part.Module] || !self.Wrote(part) && isWriterRunning(s, part) {
			continue
		}
		if err := removePart(ctx, live, s, part); err != nil {
			return err
		}
	}
	return nil
}

// removePart deletes a part of the object, and removes its entry from the status.
func removePart(ctx context.Context, live client.Client, s *subject, part v1alpha1.PartStatus) error {
	is, err := handoff.Open(ctx, live, s.es, part)
	if err != nil {
		return err
	}
	es := &v1alpha1.ExternalSecret{}
	if err := live.Get(ctx, s.key(), es); err != nil || es.UID != s.es.UID || es.Generation != s.es.Generation {
		return client.IgnoreNotFound(err) // The spec may name it again.
	}
	if is.Secret != nil && is.Secret.Type == handoff.Type && names(s.es, part, is.Record) {
		if holds(es, is.Record) {
			s.handed.Again(2 * time.Second) // The status does not yet show that the Secret holds other values.
			return nil
		}
		err := live.Delete(ctx, is.Secret, client.Preconditions{UID: &is.Secret.UID, ResourceVersion: &is.Secret.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrap(err, "cannot delete the Secret of a contribution")
		}
	}
	return handoff.ContributorOf(part).Report(ctx, live, "ExternalSecret", s.es, s.es.Status.Parts, handoff.Report{}, &handoff.LastReport{})
}

// names reports whether a part was written for this object and has the name that its contributor gives to such a
// part.
func names(es *v1alpha1.ExternalSecret, s v1alpha1.PartStatus, rec handoff.Record) bool {
	return rec.Kind == "ExternalSecret" && rec.Name == es.Name && s.Name == handoff.ContributorOf(s).PartName(rec.Kind, rec.Name)
}

// holds reports whether the Secret of an object may hold generated values of a part.
func holds(es *v1alpha1.ExternalSecret, rec handoff.Record) bool {
	if len(rec.Entries) > 0 && es.Spec.Target.CreationPolicy == v1alpha1.CreateNone {
		return true // Nothing is written, so a Secret that was written before keeps its values.
	}
	return slices.ContainsFunc(es.Status.Sources, func(s v1alpha1.SourceStatus) bool { return s.Version != "" && rec.Has(s.Version) })
}
