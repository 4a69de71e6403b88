package externalsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// settling is the delay until the next pass while the running modules are not known yet.
const settling = 500 * time.Millisecond

// A running module has this long to contribute before the status reports that its contribution is missing.
const gracePeriod = 30 * time.Second

// handed describes the values that are stored in parts: generated values, and values that other operators have read.
type handed struct {
	// versions are the versions of these values, in the order of the plan's sources; empty for a missing value.
	versions []string
	// ready is true if all values are available.
	ready bool
	// problem is why values are missing or could not be replaced; nil if there is no problem.
	problem *verdict
	// used holds the keys of the status.parts entries whose parts hold these values.
	used map[string]bool
	// labels are the labels of the stores that other operators have read.
	labels []string
	// wait is the time until missing values may have to be reported; 0 for none.
	wait time.Duration
}

// recorded is a part that the status records, with its record from the cache.
type recorded struct {
	status v1alpha1.PartStatus
	rec    handoff.Record
}

// A partReader reads the contributions of other operators, and finds out what is wrong with them.
type partReader struct {
	cache client.Reader
	// live does not read from a cache.
	live  client.Client
	board *presence.Board
	now   func() time.Time
}

// loadParts evaluates the parts that the status records, as the cache shows them. A Secret that the status does not
// record is not a part of the object.
func (p partReader) loadParts(ctx context.Context, s *subject) error {
	s.handed = handed{ready: true, used: map[string]bool{}}
	shared := slices.ContainsFunc(s.plan.Sources, s.stores.Elsewhere)
	s.obj.shared.Store(shared || len(s.es.Status.Parts) > 0)
	if !shared {
		s.obj.since = time.Time{}
		return nil
	}
	parts, err := p.recorded(ctx, s.es)
	if err != nil {
		return err
	}
	var missing []render.Source
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) {
			continue
		}
		version := ""
		if r := holder(s.es, parts, src); r != nil {
			version = versionIn(r.rec, src)
			s.handed.used[r.status.Module] = true
		} else {
			missing = append(missing, src)
		}
		s.handed.versions = append(s.handed.versions, version)
	}
	s.handed.labels = labelsOf(parts, s.handed.used)
	s.handed.ready = len(missing) == 0
	if s.handed.ready {
		s.obj.since = time.Time{}
	} else if s.obj.since.IsZero() {
		s.obj.since = time.Now()
	}
	s.handed.problem = p.wrong(s, parts, missing)
	return nil
}

// labelsOf returns the labels of the stores that the used parts were read from.
func labelsOf(parts []recorded, used map[string]bool) []string {
	var labels []string
	for _, r := range parts {
		if r.rec.Reads == nil || !used[r.status.Module] {
			continue
		}
		for _, l := range r.rec.Reads.Labels {
			if strings.HasPrefix(l, v1alpha1.StoreLabelPrefix) {
				labels = append(labels, l)
			}
		}
	}
	return labels
}

// recorded returns the parts that the status records.
func (p partReader) recorded(ctx context.Context, es *v1alpha1.ExternalSecret) ([]recorded, error) {
	var parts []recorded
	for _, s := range es.Status.Parts {
		if s.Name == "" {
			continue
		}
		key, m := types.NamespacedName{Namespace: es.Namespace, Name: s.Name}, resolve.SecretMetadata()
		err := p.cache.Get(ctx, key, m)
		if kerrors.IsNotFound(err) {
			// It may lack the label by which the cache selects it.
			m = resolve.SecretMetadata()
			err = p.live.Get(ctx, key, m)
		}
		switch rec, ok := handoff.Of(m.Annotations); {
		case kerrors.IsNotFound(err):
		case err != nil:
			return nil, errors.Wrap(err, "cannot read the Secret of a contribution")
		case ok && m.UID == s.UID && m.DeletionTimestamp == nil:
			parts = append(parts, recorded{s, rec})
		}
	}
	return parts, nil
}

// holder returns the part that has the wanted values of a source; nil if there is none.
func holder(es *v1alpha1.ExternalSecret, parts []recorded, src render.Source) *recorded {
	var found *recorded
	for i := range parts {
		// A store may have changed its class: prefer the operator that read it last.
		if rec := parts[i].rec; serves(es, rec, src) && (found == nil || readLater(rec, found.rec)) {
			found = &parts[i]
		}
	}
	return found
}

// readLater reports whether a was read after b.
func readLater(a, b handoff.Record) bool {
	return a.Reads != nil && (b.Reads == nil || a.Reads.At.After(b.Reads.At))
}

// serves reports whether a part has the wanted values of a source. An immutable Secret keeps its values, so refresh
// requests are ignored for it.
func serves(es *v1alpha1.ExternalSecret, rec handoff.Record, src render.Source) bool {
	request := es.Annotations[v1alpha1.RefreshRequestAnnotation]
	if es.Spec.Target.Immutable {
		request = ""
	}
	if src.Generator {
		return rec.Serves(es.UID, src.Store, request)
	}
	return rec.ServesRead(es.UID, handoff.SourceID(src.Store, src.Read), request)
}

// versionIn returns the version of the values that a part holds for a source.
func versionIn(rec handoff.Record, s render.Source) string {
	if s.Generator {
		return rec.Entries[handoff.ID(s.Store)].Version
	}
	return rec.Reads.Version
}

// wrong returns why values are missing or could not be replaced; nil if there is no problem.
func (p partReader) wrong(s *subject, parts []recorded, missing []render.Source) *verdict {
	if p.board.Settling() {
		// The running modules and their versions are known in a moment.
		s.handed.ready = false
		s.handed.again(settling)
		return nil
	}
	if v := p.skewed(s, parts); v != nil {
		s.handed.ready = false
		return v
	}
	for _, part := range s.es.Status.Parts {
		if v := said(part); v != nil && p.isWriterRunning(s.es, part) {
			// Values that were read before the store refused this namespace must not be used.
			s.handed.ready = s.handed.ready && v.Reason != v1alpha1.ReasonForbidden
			return v
		}
	}
	for _, src := range missing {
		if v := p.absent(s, src); v != nil {
			return v
		}
		if waited := time.Since(s.obj.since); waited < gracePeriod {
			s.handed.again(gracePeriod - waited)
			continue
		}
		who := "the module that serves it"
		if all := p.board.Serving(&src.Store, s.es.Namespace); len(all) > 0 {
			who = all[0].Name
		}
		v := status.NotSynced(provider.NewError(provider.Unavailable, "%s %q: waiting for %s to hand over the values; if this lasts, check the log of that module", src.Store.Kind, src.Store.Name, who))
		return &v
	}
	return p.outdated(s, parts)
}

// skewed returns the verdict that the version of a contributing operator is too old or too new; nil if none is.
func (p partReader) skewed(s *subject, parts []recorded) *verdict {
	self := p.board.Self()
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) {
			continue
		}
		all := p.board.Serving(&src.Store, s.es.Namespace)
		if r := holder(s.es, parts, src); r != nil {
			all = nil
			if m, runs := p.operatorOf(s.es, r.status); runs {
				all = append(all, m)
			}
		}
		if len(all) == 0 || slices.ContainsFunc(all, func(m presence.Member) bool { return !presence.Skewed(self, m) }) {
			continue
		}
		v := status.Stalled(v1alpha1.ReasonVersionSkew, fmt.Sprintf("%s is built with common %s and %s with common %s, and their minor versions may differ by one: upgrade the older module", self.Name, self.Version, all[0].Name, all[0].Version))
		return &v
	}
	return nil
}

// operatorOf returns the operator that wrote an entry of status.parts; false if it is not running.
func (p partReader) operatorOf(es *v1alpha1.ExternalSecret, s v1alpha1.PartStatus) (presence.Member, bool) {
	return p.board.Running(es.Namespace, func(m presence.Member) bool { return handoff.Wrote(m.Module, m.Class, s) })
}

// absent returns the verdict that no running module serves a source; nil if that is not certain.
func (p partReader) absent(s *subject, src render.Source) *verdict {
	gone, wait, why := false, time.Duration(0), p.board.Hint(&src.Store)
	if class, ours := s.stores.OtherClass(src.Store); ours {
		gone, wait = p.board.MissingClass(&src.Store, class, s.es.Namespace, s.obj.since)
		why = fmt.Sprintf("%s %q has controller class %q, which no running operator serves; start one with --controller-class=%[3]s, or change spec.controller of the store", src.Store.Kind, src.Store.Name, class)
	} else {
		gone, wait = p.board.Missing(&src.Store, s.es.Namespace, s.obj.since)
	}
	if !gone {
		s.handed.again(wait)
		return nil
	}
	v := status.Stalled(v1alpha1.ReasonProviderNotRunning, why)
	return &v
}

// outdated returns the verdict that a contribution is due for a read or has expired, and its operator is not running;
// nil if there is none.
func (p partReader) outdated(s *subject, parts []recorded) *verdict {
	for _, src := range s.plan.Sources {
		r := holder(s.es, parts, src)
		if !s.stores.Elsewhere(src) || r == nil {
			continue
		}
		due := r.rec.Entries[handoff.ID(src.Store)].Expires
		if r.rec.Reads != nil {
			due = r.rec.Reads.Next
		}
		if _, runs := p.operatorOf(s.es, r.status); runs || due.IsZero() || !p.board.On() {
			continue
		}
		if early := due.Sub(p.now()); early > 0 {
			s.handed.again(early)
			continue
		}
		gone, wait := p.board.MissingClass(&src.Store, r.status.Class, s.es.Namespace, due)
		if gone {
			v := status.Stalled(v1alpha1.ReasonProviderNotRunning, p.board.Hint(&src.Store))
			return &v
		}
		s.handed.again(wait)
	}
	return nil
}

// again requests the next pass after wait, unless an earlier one is requested already.
func (h *handed) again(wait time.Duration) {
	if wait > 0 && (h.wait == 0 || wait < h.wait) {
		h.wait = wait
	}
}

// said returns the verdict that an operator reports for its part; nil if it reports no problem.
func said(s v1alpha1.PartStatus) *verdict {
	if s.Message == "" {
		return nil
	}
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, s.Message)
	v.Class = provider.Class(s.ErrorClass)
	switch s.Reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonForbidden:
		v.Reason, v.Stalled = s.Reason, true
	case v1alpha1.ReasonStoreNotFound, v1alpha1.ReasonStoreNotReady, v1alpha1.ReasonNoRemoteChanges:
		v.Reason = s.Reason
	}
	return &v
}

// isWriterRunning reports whether to believe the report of an operator about its part. The report of an operator that is known
// to have stopped is ignored.
func (p partReader) isWriterRunning(es *v1alpha1.ExternalSecret, s v1alpha1.PartStatus) bool {
	_, runs := p.operatorOf(es, s)
	return runs || !p.board.Sees()
}
