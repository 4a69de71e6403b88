package handoff

import (
	"context"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Part is a part as it shall be.
type Part struct {
	Record Record
	Data   map[string][]byte
	// Labels are those that it bears at least; see Labels.
	Labels []string
	Owners []metav1.OwnerReference
	// Finalizer is borne as long as the Record has something to revoke. It is empty for a part that never has.
	Finalizer string
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// Write creates a part under a name, or patches live, the part as it was just read, if there is one. It returns the
// part as it is then. Errors are those of the API server: AlreadyExists and Conflict where the part was written
// meanwhile, NotFound where it was deleted.
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

// WriteError says what came of a write of the contributor's part by the answer of the API server:
// target.ErrNamespaceTerminating where the work stops silently, and a *provider.Error that may be shown where the write is
// refused. Other answers are as they are: AlreadyExists, Conflict and NotFound mean that the part was written or deleted
// meanwhile.
func (c Contributor) WriteError(err error) error {
	err = target.Classify(err)
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	if !errors.As(err, &forbidden) && !errors.As(err, &invalid) {
		return err
	}
	what := "generated values are kept"
	if c.Purpose == v1alpha1.PartRead {
		what = "values are handed over"
	}
	return provider.NewError(provider.Denied, "the Secret in which %s could not be written: %s", what, err.Error())
}
