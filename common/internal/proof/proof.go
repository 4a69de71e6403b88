// Package proof authenticates what operators store where users can edit it. A proof shows that an operator of this
// module wrote a text, and for what. Its key is in a Secret of the operator's namespace.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// Current is the data key of the key that signs.
	Current = "key"
	// Previous is the data key of a key that is accepted as well, so that a key can be changed.
	Previous = "previous"

	// size is the size of a new key in bytes, and the minimum of any key.
	size = 32
	// maxAge is how long a key is used before it is read again.
	maxAge = time.Minute
)

// Name returns the name of the Secret with the keys of a module, which is known by its API group.
func Name(module string) string { return "records." + module }

// Keys sign and verify. They are safe for concurrent use.
type Keys struct {
	client client.Client
	secret types.NamespacedName
	now    func() time.Time

	mu   sync.Mutex
	read time.Time
	keys [][]byte
}

// NewKeys returns the keys in a Secret, which is created at its first use. live must not read from a cache.
func NewKeys(live client.Client, secret types.NamespacedName, now func() time.Time) *Keys {
	return &Keys{client: live, secret: secret, now: now}
}

// Load reads the keys, unless they were read within the last minute. Its error is safe to show.
func (k *Keys) Load(ctx context.Context) error {
	_, err := k.load(ctx, maxAge)
	return err
}

// Sign returns the proof of a text that is stored for some purpose. Its error is safe to show.
func (k *Keys) Sign(ctx context.Context, purpose []string, text string) (string, error) {
	keys, err := k.load(ctx, maxAge)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sum(keys[0], purpose, text)), nil
}

// Verify reports whether an operator of this module signed a text for a purpose, with one of the keys that are now
// accepted. Its error is safe to show; nothing is known about the proof then.
func (k *Keys) Verify(ctx context.Context, purpose []string, text, proof string) (bool, error) {
	given, err := base64.RawURLEncoding.DecodeString(proof)
	if err != nil || len(given) != sha256.Size {
		return false, nil
	}
	// A key that was changed just now is read again before a proof is refused.
	for _, age := range []time.Duration{maxAge, 0} {
		keys, err := k.load(ctx, age)
		if err != nil {
			return false, err
		}
		for _, key := range keys {
			if hmac.Equal(given, sum(key, purpose, text)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// sum returns the authentication code of a text. The length of each part precedes it, so that no two lists have the
// same code.
func sum(key []byte, purpose []string, text string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range append([]string{text}, purpose...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // Writing to a hash never fails.
	}
	return h.Sum(nil)
}

// load returns the keys, the one that signs first. They are read again if they are older than age.
func (k *Keys) load(ctx context.Context, age time.Duration) ([][]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) > 0 && k.now().Sub(k.read) < age {
		return k.keys, nil
	}
	if k.secret.Namespace == "" {
		return nil, provider.NewError(provider.Invalid, "the operator has no namespace of its own for the Secret %q; set --leader-election-namespace", k.secret.Name)
	}
	s := &corev1.Secret{}
	err := k.client.Get(ctx, k.secret, s)
	if kerrors.IsNotFound(err) {
		err = k.create(ctx, s)
	}
	if err != nil {
		return nil, k.failed(err)
	}
	var keys [][]byte
	for _, name := range []string{Current, Previous} {
		if key := s.Data[name]; len(key) >= size {
			keys = append(keys, key)
		}
	}
	if len(s.Data[Current]) < size {
		return nil, provider.NewError(provider.Invalid, "the Secret %q in namespace %q needs a random value of at least %d bytes under %q; correct it, or delete it", k.secret.Name, k.secret.Namespace, size, Current)
	}
	k.keys, k.read = keys, k.now()
	return keys, nil
}

// Only an apply can be allowed for one name that does not exist yet. Each operator applies as another field manager, so
// that the second of two gets a conflict instead of replacing the key of the first.

// create creates the Secret with a new key, unless another operator was first. It returns the Secret in s.
func (k *Keys) create(ctx context.Context, s *corev1.Secret) error {
	key, manager := make([]byte, size), make([]byte, 8)
	_, _ = rand.Read(key) // It never fails; see crypto/rand.
	_, _ = rand.Read(manager)
	err := k.client.Apply(ctx, corev1apply.Secret(k.secret.Name, k.secret.Namespace).WithType(corev1.SecretTypeOpaque).
		WithData(map[string][]byte{Current: key}), client.FieldOwner("direct-secrets-records-"+hex.EncodeToString(manager)))
	if err != nil && !kerrors.IsConflict(err) {
		return err
	}
	return k.client.Get(ctx, k.secret, s)
}

func (k *Keys) failed(err error) error {
	if kerrors.IsForbidden(err) {
		return provider.NewError(provider.Denied, "the operator is not allowed to get, create and patch the Secret %q in namespace %q; bind its role for records there", k.secret.Name, k.secret.Namespace)
	}
	var reason kerrors.APIStatus
	if errors.As(err, &reason) {
		return provider.NewError(provider.Unavailable, "cannot read the Secret %q in namespace %q: %s", k.secret.Name, k.secret.Namespace, reason.Status().Reason)
	}
	return provider.NewError(provider.Unavailable, "cannot read the Secret %q in namespace %q", k.secret.Name, k.secret.Namespace)
}
