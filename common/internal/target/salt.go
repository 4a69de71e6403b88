package target

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// minSalt is the minimum length of a salt, which is a key of an HMAC.
const minSalt = 26

// Salt returns the salt of a Secret that was read live. If it has none, Salt writes one: last, or a random one if that is empty.
// If the Secret has changed since it was read, the error is a Conflict.
func (w *Writer) Salt(ctx context.Context, live *corev1.Secret, last string) (string, error) {
	if salt := live.Annotations[v1alpha1.SaltAnnotation]; len(salt) >= minSalt {
		return salt, nil
	}
	if last == "" {
		last = rand.Text()
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion,
		"annotations": map[string]string{v1alpha1.SaltAnnotation: last},
	}})
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the salt")
	}
	err = w.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.RestartFieldManager))
	return last, Classify(err)
}
