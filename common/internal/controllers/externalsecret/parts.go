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
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// handed describes the values that are stored in parts: generated values, and values that other operators have read.
type handed struct {
	policy.SupplyDecision
	// versions are the versions of these values, in the order of the plan's sources; empty for a missing value.
	versions []string
	// used holds the keys of the status.parts entries whose parts hold these values.
	used map[string]bool
	// labels are the labels of the stores that other operators have read.
	labels []string
}

// recorded is a part that the status records, with its record from the cache.
type recorded struct {
	status v1alpha1.PartStatus
	rec    handoff.Record
}

// loadParts loads the parts that the status records, as the cache shows them. A Secret that the status does not record is
// not a part of the object.
func loadParts(ctx context.Context, cache, live client.Reader, s *subject) error {
	s.handed = handed{SupplyDecision: policy.SupplyDecision{Ready: true}, used: map[string]bool{}}
	shared := slices.ContainsFunc(s.plan.Sources, s.stores.Elsewhere)
	s.obj.signals.contributed.Store(shared || len(s.es.Status.Parts) > 0)
	if !shared {
		s.obj.since = time.Time{}
		return nil
	}
	parts, err := recordedParts(ctx, cache, live, s.es)
	if err != nil {
		return err
	}
	lacks := false
	for _, src := range s.plan.Sources {
		if !s.stores.Elsewhere(src) {
			continue
		}
		version := ""
		if r := holder(s.es, parts, src); r != nil {
			version = versionIn(r.rec, src)
			s.handed.used[r.status.Module] = true
		} else {
			lacks = true
		}
		s.handed.versions = append(s.handed.versions, version)
	}
	s.handed.labels = labelsOf(parts, s.handed.used)
	switch {
	case !lacks:
		s.obj.since = time.Time{}
	case s.obj.since.IsZero():
		s.obj.since = time.Now()
	}
	s.handed.SupplyDecision = policy.DecideSupplies(supplies(s, parts))
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

// recordedParts returns the parts that the status records.
func recordedParts(ctx context.Context, cache, live client.Reader, es *v1alpha1.ExternalSecret) ([]recorded, error) {
	var parts []recorded
	for _, s := range es.Status.Parts {
		if s.Name == "" {
			continue
		}
		key, m := types.NamespacedName{Namespace: es.Namespace, Name: s.Name}, resolve.SecretMetadata()
		err := cache.Get(ctx, key, m)
		if kerrors.IsNotFound(err) {
			// It may lack the label by which the cache selects it.
			m = resolve.SecretMetadata()
			err = live.Get(ctx, key, m)
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

// supplies returns what is known of the values that other operators supply.
func supplies(s *subject, parts []recorded) policy.Supplies {
	all := policy.Supplies{Unknown: s.opts.Board.Settling(), Now: s.opts.Now()}
	if !s.obj.since.IsZero() {
		all.Waited = time.Since(s.obj.since)
	}
	for _, src := range s.plan.Sources {
		if s.stores.Elsewhere(src) {
			all.Sources = append(all.Sources, supply(s, src, holder(s.es, parts, src)))
		}
	}
	for _, part := range s.es.Status.Parts {
		if part.Message != "" && isWriterRunning(s, part) {
			all.Reports = append(all.Reports, policy.Report{Reason: part.Reason, Message: part.Message, Class: provider.Class(part.ErrorClass)})
		}
	}
	return all
}

// supply returns what is known of one source; held is the part that has its values, nil if there is none.
func supply(s *subject, src render.Source, held *recorded) policy.Supply {
	serving := s.opts.Board.Serving(&src.Store, s.es.Namespace)
	is := policy.Supply{Name: fmt.Sprintf("%s %q", src.Store.Kind, src.Store.Name), Held: held != nil}
	if len(serving) > 0 {
		is.Module = serving[0].Name
	}
	if held == nil {
		is.Skewed = skewed(s.opts.Board.Self(), serving)
		is.Missing = missing(s, src)
		return is
	}
	m, runs := operatorOf(s, held.status)
	if runs {
		is.Skewed = skewed(s.opts.Board.Self(), []presence.Member{m})
	}
	if runs || !s.opts.Board.On() {
		return is
	}
	is.Due = held.rec.Entries[handoff.ID(src.Store)].Expires
	if held.rec.Reads != nil {
		is.Due = held.rec.Reads.Next
	}
	if !is.Due.IsZero() {
		is.Missing.Certain, is.Missing.Wait = s.opts.Board.MissingClass(&src.Store, held.status.Class, s.es.Namespace, is.Due)
		is.Missing.Hint = s.opts.Board.Hint(&src.Store)
	}
	return is
}

// skewed returns the message that the versions of all members are too old or too new for self; empty if one is not, or without
// members.
func skewed(self presence.Member, members []presence.Member) string {
	if len(members) == 0 || slices.ContainsFunc(members, func(m presence.Member) bool { return !presence.Skewed(self, m) }) {
		return ""
	}
	return fmt.Sprintf("%s is built with common %s and %s with common %s, and their minor versions may differ by one: upgrade the older module", self.Name, self.Version, members[0].Name, members[0].Version)
}

// operatorOf returns the operator that wrote an entry of status.parts; false if it is not running.
func operatorOf(s *subject, part v1alpha1.PartStatus) (presence.Member, bool) {
	return s.opts.Board.Running(s.es.Namespace, func(m presence.Member) bool { return handoff.Wrote(m.Module, m.Class, part) })
}

// missing returns whether no running module serves a source.
func missing(s *subject, src render.Source) policy.Absence {
	a := policy.Absence{Hint: s.opts.Board.Hint(&src.Store)}
	if class, ours := s.stores.OtherClass(src.Store); ours {
		a.Certain, a.Wait = s.opts.Board.MissingClass(&src.Store, class, s.es.Namespace, s.obj.since)
		a.Hint = fmt.Sprintf("%s %q has controller class %q, which no running operator serves; start one with --controller-class=%[3]s, or change spec.controller of the store", src.Store.Kind, src.Store.Name, class)
	} else {
		a.Certain, a.Wait = s.opts.Board.Missing(&src.Store, s.es.Namespace, s.obj.since)
	}
	return a
}

// isWriterRunning reports whether to believe the report of an operator about its part. The report of an operator that is known
// to have stopped is ignored.
func isWriterRunning(s *subject, part v1alpha1.PartStatus) bool {
	_, runs := operatorOf(s, part)
	return runs || !s.opts.Board.Sees()
}
