package target

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// A Writer writes Secrets. Its client must read live, never from a cache.
type Writer struct {
	client client.Client
}

// NewWriter returns a Writer.
func NewWriter(c client.Client) *Writer { return &Writer{client: c} }

// Get reads a Secret live; nil if there is none.
func (w *Writer) Get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := w.client.Get(ctx, key, s); err != nil {
		return nil, classify(client.IgnoreNotFound(err))
	}
	return s, nil
}

// Create creates the Secret with a POST, the only verb that cannot overwrite. An AlreadyExists
// error means that a cache was behind: read live and decide again.
func (w *Writer) Create(ctx context.Context, d Desired) (*corev1.Secret, error) {
	if err := small(d.Data); err != nil {
		return nil, err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   d.Namespace,
			Name:        d.Name,
			Labels:      d.Labels,
			Annotations: d.annotations(),
		},
		Type: d.Type,
		Data: d.Data,
	}
	if d.Owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*d.Owner}
	}
	if err := w.client.Create(ctx, s, client.FieldOwner(Manager(d.Mark.Name))); err != nil {
		return nil, classify(err)
	}
	return s, nil
}

// Contest says which field managers of other ExternalSecrets are dead, whose keys are taken over,
// and which are older than the writer, to whom it yields the keys that both hold. Both may be nil:
// then all others live, and are younger.
type Contest struct {
	Dead  func(manager string) bool
	Older func(manager string) bool
}

// Apply writes all keys to a Secret that was read live in the same reconcile; if it has changed
// since, the error is a Conflict. Keys that persons and tools wrote are taken over, keys of other
// living ExternalSecrets are not. Where two hold a key already, because they applied the equal value
// and the API server saw no conflict, the later object lets go. The names of keys that were yielded
// are returned.
func (w *Writer) Apply(ctx context.Context, live *corev1.Secret, d Desired, c Contest) (*corev1.Secret, []string, error) {
	// Since the write is refused if anything has changed after the read, what the read shows of the
	// holders is also what the answer will show.
	manager := Manager(d.Mark.Name)
	held := FieldsOf(live.ManagedFields, manager).Data
	yielded := d.yield(func(key string) bool {
		shared := slices.Contains(held, key)
		return slices.ContainsFunc(HoldersOf(live.ManagedFields, key, manager), func(m string) bool {
			return OfExternalSecret(m) && !c.dead(m) && (!shared || c.older(m))
		})
	})
	if err := fits(live, d, held); err != nil {
		return nil, nil, err
	}
	live, err := w.fold(ctx, live, d, c)
	if err != nil {
		return nil, nil, err
	}
	live, err = w.apply(ctx, live, d)
	return live, yielded, err
}

func (c Contest) dead(m string) bool  { return c.Dead != nil && c.Dead(m) }
func (c Contest) older(m string) bool { return c.Older != nil && c.Older(m) }

// yield drops the keys for which lost is true, and returns them.
func (d *Desired) yield(lost func(key string) bool) []string {
	var keys []string
	for k := range d.Data {
		if lost(k) {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 {
		d.Data = maps.Clone(d.Data)
		for _, k := range keys {
			delete(d.Data, k)
		}
		d.Seal()
	}
	slices.Sort(keys)
	return keys
}

// Own sets or removes the ownerReference, and leaves the data as it is. The fields that we hold are
// taken from the live Secret and applied again, since an apply without them would remove them.
func (w *Writer) Own(ctx context.Context, live *corev1.Secret, d Desired) (*corev1.Secret, error) {
	held := FieldsOf(live.ManagedFields, Manager(d.Mark.Name))
	d.Type = live.Type
	d.Data = map[string][]byte{}
	for _, k := range held.Data {
		d.Data[k] = live.Data[k]
	}
	d.Labels = map[string]string{}
	for _, k := range held.Labels {
		d.Labels[k] = live.Labels[k]
	}
	d.Seal()
	live, err := w.fold(ctx, live, d, Contest{})
	if err != nil {
		return nil, err
	}
	return w.apply(ctx, live, d)
}

func (w *Writer) apply(ctx context.Context, live *corev1.Secret, d Desired) (*corev1.Secret, error) {
	ac := corev1ac.Secret(d.Name, d.Namespace).
		WithUID(live.UID).
		WithResourceVersion(live.ResourceVersion).
		WithType(d.Type).
		WithData(d.Data).
		WithLabels(d.Labels).
		WithAnnotations(d.annotations())
	if o := d.Owner; o != nil {
		ac.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(o.APIVersion).WithKind(o.Kind).WithName(o.Name).WithUID(o.UID).
			WithController(*o.Controller).WithBlockOwnerDeletion(*o.BlockOwnerDeletion))
	}
	body, err := json.Marshal(ac)
	if err != nil {
		return nil, errors.New("cannot encode the Secret")
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	err = w.client.Patch(ctx, s, client.RawPatch(types.ApplyPatchType, body), client.ForceOwnership, client.FieldOwner(Manager(d.Mark.Name)))
	if err != nil {
		return nil, classify(err)
	}
	return s, nil
}

// fits returns an error for what no write can change. held are the keys that we hold now.
func fits(live *corev1.Secret, d Desired, held []string) error {
	if live.Type != d.Type {
		return store.NewError(store.Invalid, "Invalid: the Secret has type %q and cannot get type %q; delete the Secret, it is created again with the new type", live.Type, d.Type)
	}
	result := maps.Clone(live.Data)
	if result == nil {
		result = map[string][]byte{}
	}
	for _, k := range held {
		delete(result, k)
	}
	maps.Copy(result, d.Data)
	if live.Immutable != nil && *live.Immutable && !maps.EqualFunc(result, live.Data, bytes.Equal) {
		return store.NewError(store.Invalid, "Invalid: the Secret is immutable; delete it, it is created again with the new values")
	}
	return small(result)
}

// small returns an error for more data than a Secret can hold.
func small(data map[string][]byte) error {
	size := 0
	for _, v := range data {
		size += len(v)
	}
	if size <= corev1.MaxSecretSize {
		return nil
	}
	return store.NewError(store.Invalid, "Invalid: the Secret would hold %d bytes, and the API server takes at most %d; ask for fewer or smaller keys, or spread them over several ExternalSecrets", size, corev1.MaxSecretSize)
}
