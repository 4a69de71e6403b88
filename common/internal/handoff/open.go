package handoff

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// Opened is a part that the status of an object records. Answer and AnswerOf return the values in it.
type Opened struct {
	// Secret is the part as read live. It is nil if there is no Secret with the recorded name and uid, or if it has no
	// Record.
	Secret *corev1.Secret
	Record Record
	// Changed is true if another writer has changed values that the contributor had read: they must not be used. For
	// generated values it is always false.
	Changed bool
}

// Usable reports whether the values can be used: they are as their contributor stored them, and are not being deleted.
func (o Opened) Usable() bool {
	return o.Secret != nil && o.Secret.DeletionTimestamp == nil && !o.Changed
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// Open reads the part that an entry of the status of an object records. c must read live.
func Open(ctx context.Context, c client.Reader, of client.Object, entry v1alpha1.PartStatus) (Opened, error) {
	if entry.Name == "" {
		return Opened{}, nil
	}
	live := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: of.GetNamespace(), Name: entry.Name}, live); err != nil {
		return Opened{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the Secret of a contribution")
	}
	rec, ok := Of(live.Annotations)
	if !ok || live.UID != entry.UID {
		return Opened{}, nil
	}
	changed := rec.Reads != nil && target.HashInputs(of.GetUID(), Content(live.Data)) != rec.Reads.Hash
	return Opened{Secret: live, Record: rec, Changed: changed}, nil
}
