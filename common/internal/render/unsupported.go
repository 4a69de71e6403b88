package render

import (
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// unsupported returns an error for the first field that the API has but this version does not support, so that no
// field is silently ignored.
func unsupported(es *v1alpha1.ExternalSecret) error {
	t := es.Spec.Target
	if err := known(
		enum{"spec.refreshPolicy", string(es.Spec.RefreshPolicy), names(v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce)},
		enum{"spec.target.kind", string(t.Kind), names(v1alpha1.TargetSecret, v1alpha1.TargetConfigMap)},
		enum{"spec.target.creationPolicy", string(t.CreationPolicy), names(v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge, v1alpha1.CreateNone)},
		enum{"spec.target.deletionPolicy", string(t.DeletionPolicy), names(v1alpha1.DeletionRetain, v1alpha1.DeletionDelete, v1alpha1.DeletionMerge)},
		enum{"spec.target.cleanupPolicy", string(t.CleanupPolicy), names(v1alpha1.CleanupOnDelete, v1alpha1.CleanupNever)},
	); err != nil {
		return err
	}
	if w := es.Spec.SyncWindows; w != nil {
		kinds := []enum{{"spec.syncWindows.kind", string(w.Kind), syncKinds}}
		for i, one := range w.Windows {
			kinds = append(kinds, enum{fmt.Sprintf("spec.syncWindows.windows[%d].kind", i), string(one.Kind), syncKinds})
		}
		if err := known(kinds...); err != nil {
			return err
		}
	}
	if err := checkTemplate(t.Template, es.TargetName()); err != nil {
		return errors.Errorf("%s.%s", templateField, err)
	}
	for i, e := range es.Spec.Data {
		if err := unsupportedRef(e.RemoteRef); err != nil {
			return errors.Wrapf(err, "spec.data[%d].remoteRef", i)
		}
	}
	for i, e := range es.Spec.DataFrom {
		if err := unsupportedDataFrom(e); err != nil {
			return errors.Wrapf(err, "spec.dataFrom[%d]", i)
		}
	}
	return nil
}

// syncKinds are the kinds of sync windows.
var syncKinds = names(v1alpha1.SyncAllow, v1alpha1.SyncDeny)

// enum is a field with its supported values.
type enum struct {
	field, value string
	served       []string
}

// known returns an error for the first value that is not supported. The API server accepts only the values of the
// CRD, but a later CRD might have more than this version supports.
func known(enums ...enum) error {
	for _, e := range enums {
		if e.value != "" && !slices.Contains(e.served, e.value) {
			return notYet(e.field + ": " + e.value)
		}
	}
	return nil
}

func names[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func unsupportedDataFrom(e v1alpha1.DataFromEntry) error {
	generated := generatorOf(e) != nil
	switch {
	case generated && (e.Extract != nil || e.Find != nil):
		return errors.New("sourceRef.generatorRef: extract and find have no effect with a generator; split the entry in two")
	case generated && e.SourceRef.StoreRef != nil:
		return errors.New("sourceRef: storeRef and generatorRef are both set; split the entry in two")
	case generated:
		return checkRewrites(e.Rewrite)
	case e.Extract == nil && e.Find == nil:
		return errors.New("nothing to read; set extract, find or sourceRef.generatorRef")
	case e.Extract != nil && e.Find != nil:
		return errors.New("extract and find are both set; split the entry in two")
	}
	if err := checkRewrites(e.Rewrite); err != nil {
		return err
	}
	if e.Find != nil {
		return errors.Wrap(known(strategies(e.Find.DecodingStrategy, e.Find.ConversionStrategy, e.Find.NullBytePolicy)...), "find")
	}
	return errors.Wrap(unsupportedRef(*e.Extract), "extract")
}

func checkRewrites(all []v1alpha1.Rewrite) error {
	for i, w := range all {
		if err := checkRewrite(w); err != nil {
			return errors.Wrapf(err, "rewrite[%d]", i)
		}
	}
	return nil
}

// The metadata policies. Unset means None.
const metadataNone, metadataFetch = "None", "Fetch"

func unsupportedRef(r v1alpha1.RemoteRef) error {
	return known(append(strategies(r.DecodingStrategy, r.ConversionStrategy, r.NullBytePolicy),
		enum{"metadataPolicy", r.MetadataPolicy, []string{metadataNone, metadataFetch}})...)
}

func strategies(decoding, conversion, nulls string) []enum {
	return []enum{
		{"decodingStrategy", decoding, decodings},
		{"nullBytePolicy", nulls, []string{nullsIgnore, nullsFail}},
		{"conversionStrategy", conversion, []string{convertDefault, convertUnicode}},
	}
}

func notYet(field string) error {
	return errors.Errorf("%s is not supported yet; remove it", field)
}
