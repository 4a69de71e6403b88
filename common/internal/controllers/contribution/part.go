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
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A partKeeper reads and writes the parts of this operator.
type partKeeper struct {
	cache client.Reader
	// live does not read from a cache.
	live  client.Client
	self  handoff.Contributor
	board *presence.Board
}

func (k partKeeper) key(s *subject) types.NamespacedName {
	return types.NamespacedName{Namespace: s.es.Namespace, Name: k.self.PartName("ExternalSecret", s.es.Name)}
}

// load loads the part into the subject, from the cache or from the last write if that is newer.
func (k partKeeper) load(ctx context.Context, s *subject) error {
	m, err := s.obj.part.get(ctx, k.cache, k.key(s))
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
func (k partKeeper) isOurs(s *subject) bool {
	entry := handoff.Recorder{Contributor: k.self}.Of(s.es.Status.Parts)
	return entry != nil && entry.UID == s.part.UID || s.obj.part.wrote == s.part.UID
}

// labels returns the labels by which this module and the claiming module watch the part.
func (k partKeeper) labels(s *subject) []string {
	return handoff.Labels(k.self.Group, k.board.Serving(s.es.LeadingStore(), s.es.Namespace))
}

// fits reports whether the part has the wanted labels and owner.
func (k partKeeper) fits(s *subject) bool {
	return s.part != nil && handoff.Labelled(s.part, k.labels(s)) &&
		slices.ContainsFunc(s.part.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.es.UID })
}

// store writes the values that were read, unless the part holds them already. It returns true if the part held other
// values. Without a change, only the time of the read is written, at most every policy.Heartbeat. It returns errMoved
// if the part is not at basis, because another operator has written it meanwhile.
func (k partKeeper) store(ctx context.Context, s *subject, reads handoff.Reads, data map[string][]byte, basis string) (newValues bool, err error) {
	if err := k.load(ctx, s); err != nil {
		return false, err
	}
	if k.holds(s, reads) {
		return false, nil
	}
	live, err := k.read(ctx, s)
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
			s.obj.part.last.Wrote(metadataOf(live))
		}
		return false, errMoved
	}
	if was.UID == s.es.UID && was.Reads != nil && was.Reads.Hash == reads.Hash {
		reads.Version = was.Reads.Version
	}
	newValues = basisOf(was) != reads.Version
	return newValues, k.write(ctx, s, live, handoff.Record{Kind: "ExternalSecret", Name: s.es.Name, UID: s.es.UID, Class: k.self.Class, Reads: &reads}, data)
}

// holds reports whether the part holds the values that were read, with a recent time of the read.
func (k partKeeper) holds(s *subject, reads handoff.Reads) bool {
	is := s.record.Reads
	return k.fits(s) && k.isOurs(s) && !s.obj.part.version.Edited(s.part) &&
		is != nil && is.Same(reads) && !policy.Beats(is.At, reads.At)
}

// restore sets the wanted labels and owner of the part. It returns false if the part no longer exists.
func (k partKeeper) restore(ctx context.Context, s *subject) (bool, error) {
	live, err := k.read(ctx, s)
	if err != nil || live == nil {
		return false, err
	}
	rec := handoff.RecordOf(live)
	if rec.Reads == nil || rec.UID != s.es.UID {
		return false, nil
	}
	return true, k.write(ctx, s, live, rec, live.Data)
}

// read reads the part live; nil if there is none. It returns errMoved while the part is being deleted.
func (k partKeeper) read(ctx context.Context, s *subject) (*corev1.Secret, error) {
	live := &corev1.Secret{}
	err := k.live.Get(ctx, k.key(s), live)
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
func (k partKeeper) write(ctx context.Context, s *subject, live *corev1.Secret, rec handoff.Record, data map[string][]byte) error {
	part := handoff.Part{Record: rec, Data: data, Labels: k.labels(s), Owners: []metav1.OwnerReference{target.OwnerOf(s.es)}}
	next, err := part.Write(ctx, k.live, k.key(s), live)
	if err != nil {
		return k.self.WriteError(err)
	}
	m := metadataOf(next)
	s.obj.part.set(m)
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
func (k partKeeper) remove(ctx context.Context, s *subject) error {
	live, err := k.read(ctx, s)
	var invalid *provider.Error
	switch {
	case errors.As(err, &invalid), errors.Is(err, errMoved):
		return nil
	case err != nil || live == nil:
		return err
	}
	err = k.live.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	return errors.Wrap(client.IgnoreNotFound(err), "cannot delete the Secret of the contribution")
}
