// Package templatesource reads the ConfigMaps and Secrets that hold templates.
package templatesource

import (
	"context"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// WatchRef returns the reference of a template source for package watch.
func WatchRef(namespace string, ref render.TextRef) watch.ObjectRef {
	if ref.Secret {
		return watch.SecretRef(namespace, ref.Name)
	}
	return watch.ConfigMapRef(namespace, ref.Name)
}

// Version reads the resourceVersion of a template source; empty if it does not exist.
func Version(ctx context.Context, c client.Reader, namespace string, ref render.TextRef) (string, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind()))
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, m)
	return m.ResourceVersion, explain(ref, client.IgnoreNotFound(err))
}

// Room returns how many bytes to hold for template sources.
func Room(refs []render.TextRef) int64 { return min(int64(len(refs))*room.One, MaxSize) }

// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get

// MaxSize limits the texts that one object holds of its template sources, in bytes: a tenant can name any number of large ones.
//
//limit:reads Templates that one object uses of ConfigMaps and Secrets (`templateFrom`) | unit=bytes | `Invalid`; the rest is not read.
const MaxSize = 4 << 20

// ReadAll reads template sources, for which their Room is held. keep gets the texts of each by key, and its resourceVersion, and returns those to hold; both
// are empty for a source that does not exist, which is left out. More than MaxSize are an error of class Invalid.
func ReadAll(ctx context.Context, held *room.Held, namespace string, refs []render.TextRef, keep func(ref render.TextRef, all map[string]string, version string) map[string]string) (render.TemplateSources, error) {
	out, size := render.TemplateSources{}, 0
	for _, ref := range refs {
		all, version, err := read(ctx, held, namespace, ref)
		if err != nil {
			return nil, err
		}
		all = keep(ref, all, version)
		for k, v := range all {
			size += len(k) + len(v)
		}
		if size > MaxSize {
			return nil, provider.NewError(provider.Invalid, "templateFrom: the templates in ConfigMaps and Secrets have more than %d MiB; name fewer or smaller ones", MaxSize>>20)
		}
		if version != "" {
			out[ref] = all
		}
	}
	return out, nil
}

// read reads a template source. It returns its texts by key, and its resourceVersion. Both are empty if it does not
// exist.
func read(ctx context.Context, held *room.Held, namespace string, ref render.TextRef) (map[string]string, string, error) {
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	all := map[string]string{}
	var o client.Object
	var err error
	if ref.Secret {
		s := &corev1.Secret{}
		err = held.Get(ctx, key, s)
		for k, v := range s.Data {
			all[k] = string(v)
		}
		o = s
	} else {
		m := &corev1.ConfigMap{}
		err = held.Get(ctx, key, m)
		maps.Copy(all, m.Data)
		o = m
	}
	if kerrors.IsNotFound(err) {
		return nil, "", nil
	}
	return all, o.GetResourceVersion(), explain(ref, err)
}

func explain(ref render.TextRef, err error) error {
	return errors.Wrapf(err, "cannot read %s %q with the templates", ref.Kind(), ref.Name)
}
