package render

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// unsupported names the first field that the API has but this version does not serve yet, so that
// nothing is ignored in silence.
func unsupported(es *v1alpha1.ExternalSecret) error {
	t := es.Spec.Target
	// The API server takes only what the CRD lists; a later CRD may list more than this version knows.
	for _, p := range []struct {
		field, value string
		known        []string
	}{
		{"spec.refreshPolicy", string(es.Spec.RefreshPolicy), names(v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce)},
		{"spec.target.creationPolicy", string(t.CreationPolicy), names(v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge, v1alpha1.CreateNone)},
		{"spec.target.deletionPolicy", string(t.DeletionPolicy), names(v1alpha1.DeletionRetain, v1alpha1.DeletionDelete, v1alpha1.DeletionMerge)},
		{"spec.target.cleanupPolicy", string(t.CleanupPolicy), names(v1alpha1.CleanupOnDelete, v1alpha1.CleanupNever)},
	} {
		if p.value != "" && !slices.Contains(p.known, p.value) {
			return notYet(p.field + ": " + p.value)
		}
	}
	if t.Template != nil {
		if err := unsupportedTemplate(t.Template); err != nil {
			return err
		}
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

func names[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// unsupportedTemplate accepts a template that only sets the type.
func unsupportedTemplate(t *v1alpha1.Template) error {
	switch {
	case len(t.Data) > 0:
		return notYet("spec.target.template.data")
	case len(t.TemplateFrom) > 0:
		return notYet("spec.target.template.templateFrom")
	case len(t.Metadata.Labels)+len(t.Metadata.Annotations) > 0:
		return notYet("spec.target.template.metadata")
	case t.MergePolicy != "":
		return notYet("spec.target.template.mergePolicy")
	case t.Type == "kubernetes.io/service-account-token" || t.Type == "bootstrap.kubernetes.io/token":
		return errors.Errorf("spec.target.template.type: %s gives rights in the cluster and is refused", t.Type)
	}
	return nil
}

func unsupportedDataFrom(e v1alpha1.DataFromEntry) error {
	switch {
	case e.SourceRef != nil && e.SourceRef.GeneratorRef != nil:
		return notYet("sourceRef.generatorRef")
	case e.Find != nil:
		return notYet("find")
	case len(e.Rewrite) > 0:
		return notYet("rewrite")
	case e.Extract == nil:
		return errors.New("nothing to read; set extract")
	}
	return errors.Wrap(unsupportedRef(*e.Extract), "extract")
}

func unsupportedRef(r v1alpha1.RemoteRef) error {
	switch {
	case r.MetadataPolicy != "" && r.MetadataPolicy != "None":
		return notYet("metadataPolicy: " + r.MetadataPolicy)
	case r.DecodingStrategy != "" && r.DecodingStrategy != "None":
		return notYet("decodingStrategy: " + r.DecodingStrategy)
	case r.ConversionStrategy != "" && r.ConversionStrategy != "Default":
		return notYet("conversionStrategy: " + r.ConversionStrategy)
	}
	return nil
}

func notYet(field string) error {
	return errors.Errorf("%s is not supported yet; remove it", field)
}
