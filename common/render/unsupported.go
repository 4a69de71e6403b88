package render

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// unsupported names the first field that the API has but this version does not serve yet, so that
// nothing is ignored in silence.
func unsupported(es *v1alpha1.ExternalSecret) error {
	t := es.Spec.Target
	switch es.Spec.RefreshPolicy {
	case "", v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce:
	default:
		return notYet("spec.refreshPolicy: " + string(es.Spec.RefreshPolicy))
	}
	switch {
	case t.CreationPolicy != "" && t.CreationPolicy != v1alpha1.CreateOwner:
		return notYet("spec.target.creationPolicy: " + string(t.CreationPolicy))
	case t.DeletionPolicy != "" && t.DeletionPolicy != v1alpha1.DeletionRetain:
		return notYet("spec.target.deletionPolicy: " + string(t.DeletionPolicy))
	case t.CleanupPolicy != "" && t.CleanupPolicy != v1alpha1.CleanupOnDelete && t.CleanupPolicy != v1alpha1.CleanupNever:
		return notYet("spec.target.cleanupPolicy: " + string(t.CleanupPolicy))
	case t.Immutable:
		return notYet("spec.target.immutable")
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
