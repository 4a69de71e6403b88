package contribution

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// partKey returns the name of the part.
func (s *subject) partKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.es.Namespace, Name: s.self.PartName("ExternalSecret", s.es.Name)}
}

// load loads the part into the subject, from the cache or from the last write if that is newer.
func (r *Reconciler) load(ctx context.Context, s *subject) error {
	m, err := s.obj.part.Get(ctx, r.cache, s.partKey(), resolve.SecretMetadata())
	if err != nil {
		return errors.Wrap(err, "cannot read the Secret of the contribution")
	}
	s.see(m)
	return nil
}

// see sets the part of the subject; nil if there is none.
func (s *subject) see(m *metav1.PartialObjectMetadata) {
	s.part, s.record = m, handoff.Record{}
	if m != nil {
		s.record, _ = handoff.Of(m.Annotations)
	}
}

// isOurs reports whether this module has written the part, according to the status or to this process's memory.
// Anyone who can write Secrets can create one of that name.
func (s *subject) isOurs() bool {
	entry := s.self.Of(s.es.Status.Parts)
	return entry != nil && entry.UID == s.part.UID || s.obj.wrote == s.part.UID
}

// labels returns the labels by which this module and the claiming module watch the part.
func (s *subject) labels() []string {
	return handoff.Labels(s.self.Group, s.opts.Board.Serving(s.es.LeadingStore(), s.es.Namespace))
}

// fits reports whether the part has the wanted labels and owner.
func (s *subject) fits() bool {
	return s.part != nil && handoff.Labelled(s.part, s.labels()) &&
		slices.ContainsFunc(s.part.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.es.UID })
}

// writeReads writes the values that were read, unless the part holds them already. It returns true if the part held other
// values. Without a change, only the time of the read is written, at most every policy.Heartbeat. It returns errMoved
// if the part is not at basis, because another operator has written it meanwhile.
func (r *Reconciler) writeReads(ctx context.Context, s *subject, reads handoff.Reads, data map[string][]byte, basis string) (newValues bool, err error) {
	if err := r.load(ctx, s); err != nil {
		return false, err
	}
	if s.holds(reads) {
		return false, nil
	}
	live, err := r.readPart(ctx, s)
	if err != nil {
		return false, err
	}
	was, seen := handoff.Record{}, handoff.Record{}
	if live != nil {
		was = handoff.RecordOf(live)
		seen, _ = handoff.Of(live.Annotations) // As the cache shows it.
	}
	if basisOf(seen) != basis {
		if live != nil {
			s.obj.part.Wrote(metadataOf(live))
		}
		return false, errMoved
	}
	if was.UID == s.es.UID && was.Reads != nil && was.Reads.Hash == reads.Hash {
		reads.Version = was.Reads.Version
	}
	newValues = basisOf(was) != reads.Version
	return newValues, r.write(ctx, s, live, handoff.Record{Kind: "ExternalSecret", Name: s.es.Name, UID: s.es.UID, Class: s.self.Class, Reads: &reads}, data)
}

// holds reports whether the part holds the values that were read, with a recent time of the read.
func (s *subject) holds(reads handoff.Reads) bool {
	is := s.record.Reads
	return s.fits() && s.isOurs() && !s.obj.version.Edited(s.part) &&
		is != nil && is.Same(reads) && !policy.Beats(is.At, reads.At)
}

// restore sets the wanted labels and owner of the part. It returns false if the part no longer exists.
func (r *Reconciler) restore(ctx context.Context, s *subject) (bool, error) {
	live, err := r.readPart(ctx, s)
	if err != nil || live == nil {
		return false, err
	}
	rec := handoff.RecordOf(live)
	if rec.Reads == nil || rec.UID != s.es.UID {
		return false, nil
	}
	return true, r.write(ctx, s, live, rec, live.Data)
}

// readPart reads the part live; nil if there is none. It returns errMoved while the part is being deleted.
func (r *Reconciler) readPart(ctx context.Context, s *subject) (*corev1.Secret, error) {
	live := &corev1.Secret{}
	err := r.live.Get(ctx, s.partKey(), live)
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, errors.Wrap(err, "cannot read the Secret of the contribution")
	case live.Type != handoff.Type:
		return nil, provider.NewError(provider.Invalid, "Secret %q uses the name of the Secret that hands over values to another module; delete it", live.Name)
	case live.DeletionTimestamp != nil:
		return nil, errMoved
	}
	return live, nil
}

// write writes a record and its data into the part; live is the present part, nil if there is none.
func (r *Reconciler) write(ctx context.Context, s *subject, live *corev1.Secret, rec handoff.Record, data map[string][]byte) error {
	part := handoff.Part{Record: rec, Data: data, Labels: s.labels(), Owners: []metav1.OwnerReference{target.OwnerOf(s.es)}}
	next, err := part.Write(ctx, r.live, s.partKey(), live)
	if err != nil {
		return s.self.WriteError(err)
	}
	m := metadataOf(next)
	s.obj.part.Wrote(m)
	s.obj.version.Set(m)
	s.obj.wrote = m.UID
	s.see(m)
	return nil
}

// metadataOf returns the metadata of a part, as caches hold it.
func metadataOf(part *corev1.Secret) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: *part.ObjectMeta.DeepCopy()}
	m.ManagedFields = nil
	return m
}

// basis identifies the content of the part; empty if there is none.
func (s *subject) basis() string { return basisOf(s.record) }

func basisOf(r handoff.Record) string {
	if r.Reads == nil {
		return ""
	}
	return r.Reads.Version
}

// remove deletes the part, unless the Secret of that name is not a part.
func (r *Reconciler) remove(ctx context.Context, s *subject) error {
	live, err := r.readPart(ctx, s)
	var invalid *provider.Error
	switch {
	case errors.As(err, &invalid), errors.Is(err, errMoved):
		return nil
	case err != nil || live == nil:
		return err
	}
	err = r.live.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	return errors.Wrap(client.IgnoreNotFound(err), "cannot delete the Secret of the contribution")
}
