package handoff

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Part is the wanted state of a part.
type Part struct {
	Record Record
	Data   map[string][]byte
	// Labels are the labels that it must have; see the function Labels.
	Labels []string
	Owners []metav1.OwnerReference
	// Finalizer is set while the Record has something to revoke. It is empty for a part that never has.
	Finalizer string
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// Write creates a part, or patches live, the part as just read, if it is not nil. It returns the part after the write.
// Errors are those of the API server: AlreadyExists and Conflict if the part was written meanwhile, NotFound if it was
// deleted.
func (p Part) Write(ctx context.Context, c client.Client, key types.NamespacedName, live *corev1.Secret) (*corev1.Secret, error) {
	next := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: Type}
	if live != nil {
		next = live.DeepCopy()
	}
	next.Data, next.OwnerReferences = maps.Clone(p.Data), p.Owners
	if err := p.Record.Put(next); err != nil {
		return nil, err
	}
	for _, l := range p.Labels {
		metav1.SetMetaDataLabel(&next.ObjectMeta, l, "true")
	}
	if p.Finalizer != "" && p.Record.Cleans() {
		controllerutil.AddFinalizer(next, p.Finalizer)
	} else if p.Finalizer != "" {
		controllerutil.RemoveFinalizer(next, p.Finalizer)
	}
	switch {
	case live == nil:
		return next, c.Create(ctx, next)
	case equality.Semantic.DeepEqual(live, next):
		return next, nil
	}
	return next, c.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
}

// WriteError converts the error of a write of the contributor's part. It returns target.ErrNamespaceTerminating if the
// caller must stop without an error, and a *provider.Error, safe to show, if the write is refused. Other errors are
// returned unchanged: AlreadyExists, Conflict and NotFound mean that the part was written or deleted meanwhile.
func (c Contributor) WriteError(err error) error {
	err = target.Classify(err)
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	if !errors.As(err, &forbidden) && !errors.As(err, &invalid) {
		return err
	}
	what := "generated values are stored"
	if c.Purpose == v1alpha1.PartRead {
		what = "values are handed over"
	}
	return provider.NewError(provider.Denied, "cannot write the Secret in which %s: %s", what, err.Error())
}

// Labels returns the labels of a part of a module. They mark it as a part, and let its module and the modules that
// reconcile the object watch it.
func Labels(module string, reconcile []presence.Member) []string {
	labels := []string{v1alpha1.PartLabel, target.ManagedLabel(module)}
	for _, m := range reconcile {
		if l := target.ManagedLabel(m.Module); !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return labels
}

// Labelled reports whether an object has all the given labels.
func Labelled(o metav1.Object, labels []string) bool {
	return !slices.ContainsFunc(labels, func(l string) bool { return o.GetLabels()[l] != "true" })
}
