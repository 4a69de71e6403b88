package handoff

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Contributor is an operator that stores values for objects in parts, for one purpose.
type Contributor struct {
	// Group is the API group of its module, and Class the class of stores that it serves.
	Group, Class string
	Purpose      v1alpha1.PartPurpose
}

// ContributorOf returns the contributor of an entry of status.parts. It is the zero Contributor for entries of modules
// built before entries had a group.
func ContributorOf(s v1alpha1.PartStatus) Contributor {
	return Contributor{s.Group, s.Class, s.Purpose}
}

// Key identifies the contributor's entry in status.parts. It is opaque: modules compare it, and never parse it. Every
// version must build the same key.
func (c Contributor) Key() string {
	key := c.Group
	if c.Class != "" {
		key += "/" + c.Class
	}
	return key + c.suffix()
}

// PartName returns the name of the contributor's part for an object.
func (c Contributor) PartName(kind, name string) string {
	return partName(kind, name, c.Group+c.suffix(), c.Class)
}

// suffix distinguishes the contributions of one operator.
func (c Contributor) suffix() string {
	if c.Purpose == v1alpha1.PartRead {
		return "#reads"
	}
	return ""
}

// Wrote reports whether the contributor wrote an entry of status.parts.
func (c Contributor) Wrote(s v1alpha1.PartStatus) bool { return s.Module == c.Key() }

// Wrote reports whether an operator wrote an entry of status.parts, for any purpose.
func Wrote(group, class string, s v1alpha1.PartStatus) bool {
	return Contributor{group, class, v1alpha1.PartRead}.Wrote(s) || Contributor{group, class, v1alpha1.PartGenerated}.Wrote(s)
}

// Report is what to record in the status about a part.
type Report struct {
	// Part is nil if there is none. If there is a Message, a part recorded before stays in the status, because it may
	// still exist.
	Part metav1.Object
	// NewValues is true if the part has other values than before. The status records only such writes.
	NewValues bool
	// Reason is the reason of the Ready condition; Class and Message describe the error if values are missing or could
	// not be replaced.
	Reason  string
	Class   provider.Class
	Message string
	// Request is the refresh request that the message answers.
	Request string
	// Window is when the sync window opens that a read or a rotation waits for; nil if none does.
	Window *metav1.Time
}

// LastReport is what this process last recorded in the status about a part, until the cache shows it. The zero value is ready
// to use.
type LastReport struct {
	last overlay.Object[*reportedEntry]
}

type reportedEntry struct {
	metav1.PartialObjectMetadata
	// entry is nil if there is no entry.
	entry *v1alpha1.PartStatus
}

func reportedEntryOf(name, version string, entry *v1alpha1.PartStatus) *reportedEntry {
	t := &reportedEntry{entry: entry}
	t.Name, t.ResourceVersion = name, version
	return t
}

// Of returns the contributor's entry in a status; nil if there is none.
func (c Contributor) Of(recorded []v1alpha1.PartStatus) *v1alpha1.PartStatus {
	i := slices.IndexFunc(recorded, c.Wrote)
	if i < 0 {
		return nil
	}
	return &recorded[i]
}

// Latest returns the contributor's entry in the status of an object as recorded in the cache, or as this process wrote it after
// that; nil if there is none.
func (c Contributor) Latest(o client.Object, recorded []v1alpha1.PartStatus, t *LastReport) *v1alpha1.PartStatus {
	return t.last.Latest(reportedEntryOf(o.GetName(), o.GetResourceVersion(), c.Of(recorded))).entry
}

// Report updates the contributor's entry in the status of an object, if it differs. recorded are the entries in the cache.
// t is what this process recorded before, and is updated. live must not read from a cache.
func (c Contributor) Report(ctx context.Context, live client.Client, kind string, o client.Object, recorded []v1alpha1.PartStatus, s Report, t *LastReport) error {
	is := c.Latest(o, recorded, t)
	want := s.entry(c, is)
	if equality.Semantic.DeepEqual(is, want) {
		return nil
	}
	version, err := c.apply(ctx, live, kind, o, want)
	if err == nil && version != "" {
		t.last.Wrote(reportedEntryOf(o.GetName(), version, want))
	}
	return err
}

// entry returns the wanted entry; is is the present one.
func (s Report) entry(c Contributor, is *v1alpha1.PartStatus) *v1alpha1.PartStatus {
	if s.Part == nil && s.Message == "" {
		return nil
	}
	want := &v1alpha1.PartStatus{
		Module: c.Key(), Group: c.Group, Class: c.Class, Purpose: c.Purpose,
		Reason: s.Reason, ErrorClass: string(s.Class), Message: status.Cut(s.Message, status.MaxMessage),
		NextWindowTime: s.Window,
	}
	if s.Message != "" {
		want.AttemptedRefreshRequest = s.Request
	}
	switch {
	case s.Part != nil:
		want.Name, want.UID, want.ResourceVersion = s.Part.GetName(), s.Part.GetUID(), s.Part.GetResourceVersion()
	case is != nil: // The part may still exist.
		want.Name, want.UID, want.ResourceVersion = is.Name, is.UID, is.ResourceVersion
	}
	if !s.NewValues && is != nil && want.UID == is.UID {
		want.ResourceVersion = is.ResourceVersion
	}
	return want
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status;pushsecrets/status,verbs=patch

// apply writes the entry, or removes it if s is nil. It returns the resourceVersion of the object; empty if the object
// was replaced by another one.
func (c Contributor) apply(ctx context.Context, live client.Client, kind string, o client.Object, s *v1alpha1.PartStatus) (string, error) {
	parts := []v1alpha1.PartStatus{}
	if s != nil {
		parts = append(parts, *s)
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	manager := target.FieldManager("direct-secrets-part:", c.Key())
	written, err := status.Apply(ctx, live, kind, o, manager, map[string]any{"parts": parts}, out, nil)
	if !written {
		return "", errors.Wrap(err, "cannot record the contribution in the status")
	}
	return out.GetResourceVersion(), nil
}
