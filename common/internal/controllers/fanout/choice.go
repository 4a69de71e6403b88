package fanout

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// choice is which namespaces a parent chooses.
type choice struct {
	names     []string
	selectors []labels.Selector
}

// admits reports whether a namespace is chosen. One that is on its way out is not.
func (c choice) admits(ns *metav1.PartialObjectMetadata) bool {
	return ns.DeletionTimestamp == nil && (slices.Contains(c.names, ns.Name) ||
		slices.ContainsFunc(c.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(ns.Labels)) }))
}

// check returns which namespaces a parent chooses, or what is wrong with what it wants. What the API server would
// refuse in every namespace is found here.
func (k *kinds) check(want desired) (c choice, invalid string) {
	if msgs := utilvalidation.IsDNS1123Subdomain(want.name); len(msgs) > 0 {
		return c, fmt.Sprintf("%q cannot be the name of objects of kind %s: %s", want.name, k.child, msgs[0])
	}
	path := field.NewPath("spec", want.metadataField)
	errs := metavalidation.ValidateLabels(want.metadata.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(want.metadata.Annotations, path.Child("annotations"))...)
	if len(errs) > 0 {
		return c, errs[0].Error()
	}
	if _, ok := want.metadata.Annotations[v1alpha1.FanOutAnnotation]; ok {
		return c, fmt.Sprintf("%s: %s is this project's own; leave it out", path.Child("annotations"), v1alpha1.FanOutAnnotation)
	}
	for i := range want.where.NamespaceSelectors {
		s, err := metav1.LabelSelectorAsSelector(&want.where.NamespaceSelectors[i])
		if err != nil {
			return c, fmt.Sprintf("spec.namespaceSelectors[%d]: it is no label selector; correct its keys, operators and values", i)
		}
		c.selectors = append(c.selectors, s)
	}
	c.names = want.where.Namespaces
	return c, ""
}
