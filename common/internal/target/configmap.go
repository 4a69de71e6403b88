package target

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete,roleName=configmaps

// A ConfigMapReader is a Reader for which a ConfigMap is a Secret whose name starts with v1alpha1.ConfigMapTarget. So
// everything that is decided about a Secret, is decided about a ConfigMap. It finds no ConfigMaps if Off is true.
type ConfigMapReader struct {
	client.Reader
	Off bool
}

// Get implements client.Reader.
func (c ConfigMapReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	name, ok := strings.CutPrefix(key.Name, v1alpha1.ConfigMapTarget)
	if !ok {
		return c.Reader.Get(ctx, key, o, opts...)
	}
	if c.Off {
		return kerrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	key.Name = name
	if to, ok := o.(*metav1.PartialObjectMetadata); ok {
		m := ConfigMapMetadata()
		if err := c.Reader.Get(ctx, key, m, opts...); err != nil {
			return err
		}
		*to = *asSecret(m)
		return nil
	}
	m := &corev1.ConfigMap{}
	if err := c.Reader.Get(ctx, key, m, opts...); err != nil {
		return err
	}
	return secretOf(m, o)
}

// List implements client.Reader. A list of the metadata of Secrets contains that of ConfigMaps.
func (c ConfigMapReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	all, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || c.Off || all.Kind != "SecretList" {
		return nil
	}
	maps := &metav1.PartialObjectMetadataList{}
	maps.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.Reader.List(ctx, maps, opts...); err != nil {
		return err
	}
	for i := range maps.Items {
		all.Items = append(all.Items, *asSecret(&maps.Items[i]))
	}
	return nil
}

// ConfigMapMetadata returns an empty ConfigMap for reads of its metadata only.
func ConfigMapMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

// ConfigMapEvents returns a handler of events of ConfigMaps that calls one of Secrets.
func ConfigMapEvents(h handler.EventHandler) handler.EventHandler {
	type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]
	as := func(o client.Object) client.Object {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			return asSecret(m)
		}
		return o
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) {
			e.Object = as(e.Object)
			h.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			e.ObjectOld, e.ObjectNew = as(e.ObjectOld), as(e.ObjectNew)
			h.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) {
			e.Object = as(e.Object)
			h.Delete(ctx, e, q)
		},
	}
}

// asSecret returns the metadata of a ConfigMap as that of a Secret.
func asSecret(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	s := *m // The maps are shared, because objects of a cache are not changed.
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	s.Name = v1alpha1.ConfigMapTarget + m.Name
	return &s
}

// secretOf writes a ConfigMap to o, which is a Secret.
func secretOf(m *corev1.ConfigMap, o client.Object) error {
	s, ok := o.(*corev1.Secret)
	if !ok {
		return errors.Errorf("a %T is no target", o)
	}
	if len(m.BinaryData) > 0 {
		return invalid("ConfigMap %q has binaryData, which is not supported; remove binaryData, or choose another spec.target.name", m.Name)
	}
	*s = corev1.Secret{ObjectMeta: m.ObjectMeta, Immutable: m.Immutable, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}}
	s.Name = v1alpha1.ConfigMapTarget + m.Name
	for k, v := range m.Data {
		s.Data[k] = []byte(v)
	}
	return nil
}

// AsConfigMap returns the ConfigMap that a Secret stands for. The error names a value that is not text.
func AsConfigMap(s *corev1.Secret) (*corev1.ConfigMap, error) {
	text, err := textOf(s.Data)
	m := &corev1.ConfigMap{ObjectMeta: *s.ObjectMeta.DeepCopy(), Immutable: s.Immutable, Data: text}
	m.Name = strings.TrimPrefix(s.Name, v1alpha1.ConfigMapTarget)
	return m, err
}

// textOf returns the data of a ConfigMap for that of a Secret.
func textOf(data map[string][]byte) (map[string]string, error) {
	text := make(map[string]string, len(data))
	for k, v := range data {
		if !utf8.Valid(v) {
			return nil, invalid("the value of key %q is not text, as a ConfigMap needs; write it to a Secret", k)
		}
		text[k] = string(v)
	}
	return text, nil
}

// A ConfigMapClient is a Client for which a ConfigMap is a Secret, as for a ConfigMapReader.
type ConfigMapClient struct{ client.Client }

// Get implements client.Reader.
func (c ConfigMapClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return ConfigMapReader{Reader: c.Client}.Get(ctx, key, o, opts...)
}

// Create implements client.Writer.
func (c ConfigMapClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	s, ok := o.(*corev1.Secret)
	if configMapOf(o) == nil || !ok {
		return c.Client.Create(ctx, o, opts...)
	}
	m, err := AsConfigMap(s)
	if err != nil {
		return err
	}
	if err := c.Client.Create(ctx, m, opts...); err != nil {
		return err
	}
	return secretOf(m, o)
}

// Patch implements client.Writer.
func (c ConfigMapClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	m := configMapOf(o)
	if m == nil {
		return c.Client.Patch(ctx, o, p, opts...)
	}
	body, err := p.Data(o)
	if err == nil && p.Type() == types.ApplyPatchType {
		body, err = configMapPatch(body, m.Name)
	}
	if err != nil {
		return err
	}
	if err := c.Client.Patch(ctx, m, client.RawPatch(p.Type(), body), opts...); err != nil {
		return err
	}
	return secretOf(m, o)
}

// configMapPatch returns the apply of a Secret as that of a ConfigMap.
func configMapPatch(body []byte, name string) ([]byte, error) {
	var s map[string]any
	var d struct {
		Data map[string][]byte `json:"data"`
	}
	if err := errors.Join(json.Unmarshal(body, &s), json.Unmarshal(body, &d)); err != nil {
		return nil, errors.New("cannot decode an apply of a Secret")
	}
	text, err := textOf(d.Data)
	if err != nil {
		return nil, err
	}
	delete(s, "type")
	s["kind"], s["metadata"].(map[string]any)["name"] = "ConfigMap", name //nolint:forcetypeassert // An apply has metadata.
	if s["data"] != nil {
		s["data"] = text
	}
	var out bytes.Buffer
	err = json.NewEncoder(&out).Encode(s)
	return out.Bytes(), err
}

// Delete implements client.Writer.
func (c ConfigMapClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	m := configMapOf(o)
	if m == nil {
		return c.Client.Delete(ctx, o, opts...)
	}
	return c.Client.Delete(ctx, m, opts...)
}

// configMapOf returns the ConfigMap that o stands for, with namespace and name only; nil if there is none.
func configMapOf(o client.Object) *corev1.ConfigMap {
	name, ok := strings.CutPrefix(o.GetName(), v1alpha1.ConfigMapTarget)
	if !ok {
		return nil
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name}}
}
