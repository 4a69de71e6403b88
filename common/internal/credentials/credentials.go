// Package credentials reads the objects that the auth of a store refers to, within the limits of the store's
// namespace. Provider code reads Kubernetes objects only through this package.
package credentials

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Ambient is which stores without auth can use the operator's own cloud identity.
type Ambient string

// The values of --ambient-credentials.
const (
	AmbientCluster Ambient = "cluster"
	AmbientAll     Ambient = "all"
	AmbientNone    Ambient = "none"
)

// tokenSeconds is the lifetime of a ServiceAccount token. Providers exchange it at once, so it is the shortest that
// the API server accepts.
const tokenSeconds = 600

// A Fence limits where a store can read.
type Fence struct {
	// Cluster is true for a store of a cluster Kind.
	Cluster bool
	// Namespace is the only namespace to read in: that of a namespaced store, or that of the object that refers to a
	// cluster store with authenticationScope ManifestNamespace. It is empty if the references name their namespaces.
	Namespace string
	// Tenant is whose room the objects that are read take.
	Tenant string
	// Rules are the operator's rules.
	Rules
}

// Rules are the operator's rules for all stores.
type Rules struct {
	// Ambient is the rule for stores without auth.
	Ambient Ambient
	// PlainHTTP allows addresses without TLS.
	PlainHTTP bool
	// Accepts reports whether the API server accepts a token. Only OwnToken calls it.
	Accepts func(ctx context.Context, token string) (bool, error)
}

// A Reader implements provider.Credentials.
type Reader struct {
	client  client.Client
	objects *room.Reader
	fence   Fence
	read    func(o watch.ObjectRef, resourceVersion string)
}

// NewReader returns a Reader that gets tokens from a client, and reads objects. It calls read with every object that it has read,
// and with an empty resourceVersion if the object does not exist.
func NewReader(c client.Client, o *room.Reader, f Fence, read func(watch.ObjectRef, string)) *Reader {
	return &Reader{client: c, objects: o, fence: f, read: read}
}

// SecretValue implements provider.Credentials.
func (r *Reader) SecretValue(ctx context.Context, sel v1alpha1.SecretKeySelector) ([]byte, error) {
	s := &corev1.Secret{}
	return r.value(ctx, sel, "Secret", watch.SecretRef, s, func() []byte { return s.Data[sel.Key] })
}

// ConfigMapValue implements provider.Credentials.
func (r *Reader) ConfigMapValue(ctx context.Context, sel v1alpha1.ConfigMapKeySelector) ([]byte, error) {
	m := &corev1.ConfigMap{}
	return r.value(ctx, v1alpha1.SecretKeySelector(sel), "ConfigMap", watch.ConfigMapRef, m, func() []byte {
		if text, ok := m.Data[sel.Key]; ok {
			return []byte(text)
		}
		return m.BinaryData[sel.Key]
	})
}

// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get

// value reads the object that sel names into o, and returns the value that found extracts from o. what and refTo are
// the name and the reference of the object's kind.
func (r *Reader) value(ctx context.Context, sel v1alpha1.SecretKeySelector, what string, refTo func(namespace, name string) watch.ObjectRef, o client.Object, found func() []byte) ([]byte, error) {
	ref, err := r.get(ctx, sel.Namespace, sel.Name, what, refTo, o)
	if err != nil {
		return nil, err
	}
	v := found()
	if len(v) == 0 {
		return nil, provider.NewError(provider.Invalid, "auth: %s %s has no value under key %q; add it or correct the reference", what, ref, sel.Key)
	}
	return v, nil
}

// get reads the object with a name into o, and returns its reference.
func (r *Reader) get(ctx context.Context, namespace, name, what string, refTo func(namespace, name string) watch.ObjectRef, o client.Object) (watch.ObjectRef, error) {
	ns, err := r.namespace(namespace, what, name)
	if err != nil {
		return watch.ObjectRef{}, err
	}
	ref := refTo(ns, name)
	held, err := r.objects.HoldIn(ctx, r.fence.Tenant, room.One)
	if err != nil {
		return ref, provider.NewError(provider.Unavailable, "auth: %s %s was not read in time; retrying", what, ref)
	}
	defer held.Release()
	err = held.Get(ctx, ref.NamespacedName, o)
	if client.IgnoreNotFound(err) == nil {
		r.read(ref, o.GetResourceVersion())
	}
	switch {
	case kerrors.IsNotFound(err):
		return ref, provider.NewError(provider.Invalid, "auth: %s %s does not exist; create it or correct the reference", what, ref)
	case kerrors.IsForbidden(err):
		return ref, provider.NewError(provider.Denied, "auth: the operator has no permission to read %s %s; grant it get, list and watch on %s in that namespace%s", what, ref, ref.Resource.Resource, chartSetting[what])
	case err != nil:
		return ref, provider.NewError(provider.Unavailable, "auth: cannot read %s %s: %s", what, ref, kerrors.ReasonForError(err))
	}
	return ref, nil
}

const account = "ServiceAccount"

// chartSetting names the setting of the chart that grants what the chart does not always grant.
var chartSetting = map[string]string{account: ": in the chart, set serviceAccountTokens.enabled"}

// ServiceAccountAnnotations implements provider.ServiceAccountReader. Each module that calls this method has the RBAC marker next to
// the call.
func (r *Reader) ServiceAccountAnnotations(ctx context.Context, sel v1alpha1.ServiceAccountSelector) (map[string]string, error) {
	sa := &corev1.ServiceAccount{}
	if _, err := r.get(ctx, sel.Namespace, sel.Name, account, watch.ServiceAccountRef, sa); err != nil {
		return nil, err
	}
	return sa.Annotations, nil
}

// ServiceAccountToken implements provider.Credentials. Only few modules need this permission, and it is a powerful
// one. So each module that calls this method has the RBAC marker next to the call.
func (r *Reader) ServiceAccountToken(ctx context.Context, sel v1alpha1.ServiceAccountSelector, audiences ...string) (string, error) {
	ns, err := r.namespace(sel.Namespace, account, sel.Name)
	if err != nil {
		return "", err
	}
	if len(audiences) == 0 {
		audiences = sel.Audiences
	}
	return r.token(ctx, ns, sel.Name, audiences)
}

// token requests a new token of a ServiceAccount.
func (r *Reader) token(ctx context.Context, ns, name string, audiences []string) (string, error) {
	seconds := int64(tokenSeconds)
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:         audiences,
		ExpirationSeconds: &seconds,
	}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	err := r.client.SubResource("token").Create(ctx, sa, req)
	switch {
	case kerrors.IsNotFound(err):
		return "", provider.NewError(provider.Invalid, "auth: ServiceAccount %s/%s does not exist; create it or correct the reference", ns, name)
	case kerrors.IsForbidden(err):
		return "", provider.NewError(provider.Denied, "auth: the operator has no permission to create tokens for ServiceAccount %s/%s; grant it create on serviceaccounts/token: in the chart, set serviceAccountTokens.enabled", ns, name)
	case err != nil:
		return "", provider.NewError(provider.Unavailable, "auth: cannot get a token for ServiceAccount %s/%s: %s", ns, name, kerrors.ReasonForError(err))
	}
	return req.Status.Token, nil
}

// Ambient implements provider.Credentials.
func (r *Reader) Ambient() error {
	if r.fence.Ambient == AmbientAll || (r.fence.Ambient == AmbientCluster && r.fence.Cluster) {
		return nil
	}
	if r.fence.Ambient == AmbientCluster {
		return provider.NewError(provider.Invalid, "auth is not set: a namespaced store is not allowed to use the operator's own identity; set auth, use the cluster Kind, or run the operator with --ambient-credentials=all")
	}
	return provider.NewError(provider.Invalid, "auth is not set, and --ambient-credentials=none refuses the operator's own identity; set auth")
}

// PlainHTTPAllowed implements provider.PlainHTTPAllower.
func (r *Reader) PlainHTTPAllowed() bool { return r.fence.PlainHTTP }

// LimitedTo implements provider.NamespaceLimiter.
func (r *Reader) LimitedTo() string { return r.fence.Namespace }

// namespace returns the namespace to read in. It returns an error if the reference is outside the fence, or if a name
// is not valid.
func (r *Reader) namespace(named, what, name string) (string, error) {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", provider.NewError(provider.Invalid, "auth: %s name %q is not valid; correct the reference", what, name)
	case r.fence.Cluster && r.fence.Namespace != "" && named != "":
		return "", provider.NewError(provider.Invalid, "auth: %s %s must not name a namespace with authenticationScope ManifestNamespace; remove the namespace", what, name)
	case r.fence.Namespace != "" && named == "":
		return r.fence.Namespace, nil
	case r.fence.Cluster && named == "":
		return "", provider.NewError(provider.Invalid, "auth: %s %s needs a namespace on a cluster Kind; set namespace", what, name)
	case r.fence.Cluster && len(validation.IsDNS1123Label(named)) > 0:
		return "", provider.NewError(provider.Invalid, "auth: the namespace %q of %s %s is not valid; correct the reference", named, what, name)
	case r.fence.Cluster:
		return named, nil
	}
	return "", provider.NewError(provider.Invalid, "auth: %s %s must not name a namespace: a namespaced store reads only in its own namespace; remove the namespace", what, name)
}
