package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// parallel is the maximum number of concurrent requests of one batch.
	parallel = 8
	// few is the number of secrets up to which a batch reads each, instead of a list.
	few = 8
	// page is the maximum number of secrets in one list.
	page = 250
	// configMap is the prefix of the keys of ConfigMaps.
	configMap = "configmap/"
)

// A Client reads and writes the Secrets of one namespace.
type Client struct {
	calls            rest.Interface
	tokens           *provider.Tokens
	transport        *http.Transport
	namespace, place string
	// server and login are the fields of the spec with the address and the credentials.
	server, login string
	// noLists is set once a list has failed, for example because the identity may only get secrets.
	noLists atomic.Bool
}

var (
	_ provider.Batcher    = &Client{}
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
	_ provider.Writer     = &Client{}
)

// Close closes idle connections, and cancels a login in progress.
func (c *Client) Close() error {
	c.tokens.Close()
	c.transport.CloseIdleConnections()
	return nil
}

// do sends a request with a token, and decodes its answer. The next request has another token if the server refuses this one.
func (c *Client) do(ctx context.Context, r *rest.Request, into runtime.Object) error {
	token, err := c.tokens.Get(ctx)
	if err != nil {
		return err
	}
	if token != "" {
		r.SetHeader("Authorization", "Bearer "+token)
	}
	err = r.MaxRetries(0).Do(ctx).Into(into)
	if kerrors.IsUnauthorized(err) {
		c.tokens.Forget(token)
	}
	return err
}

// Identity returns the address of the API server and the namespace.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.place}, nil
}

// Check checks address and login, and warns if the identity cannot read all secrets.
func (c *Client) Check(ctx context.Context) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: "get", Resource: "secrets"},
	}}
	err := c.do(ctx, c.calls.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(review), review)
	switch {
	case err != nil:
		return c.explain(err, "logging in", "")
	case !review.Status.Allowed:
		return provider.Warnings{fmt.Sprintf("spec.remoteNamespace: the identity cannot get all secrets in namespace %s; grant it get and list on secrets there", c.namespace)}
	}
	return nil
}

// Get reads a Secret, or a ConfigMap if the key starts with configmap/. The value is a JSON object.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	s, err := c.object(ctx, ref.Key)
	if err != nil {
		return provider.Value{}, err
	}
	v := valueOf(ref, s)
	if ref.Version != "" && ref.Version != v.Version {
		return provider.Value{}, provider.NewError(provider.Invalid, "secret %q: has no version %.64q, because Kubernetes keeps only the current value; remove version", ref.Key, ref.Version)
	}
	return v, nil
}

// object reads a Secret, or a ConfigMap as a Secret.
func (c *Client) object(ctx context.Context, key string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	name, isConfigMap := strings.CutPrefix(key, configMap)
	if !isConfigMap {
		return s, c.read(ctx, "secrets", name, s)
	}
	m := &corev1.ConfigMap{}
	if err := c.read(ctx, "configmaps", name, m); err != nil {
		return nil, err
	}
	s.ObjectMeta, s.Data = m.ObjectMeta, map[string][]byte{}
	maps.Copy(s.Data, m.BinaryData)
	for k, v := range m.Data {
		s.Data[k] = []byte(v)
	}
	return s, nil
}

// read reads an object. An answer without its name is not that of an API server.
func (c *Client) read(ctx context.Context, resource, name string, o client.Object) error {
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return provider.NewError(provider.Invalid, "secret %q: is not the name of a Secret; write name, or %sname", name, configMap)
	}
	err := c.do(ctx, c.calls.Get().Namespace(c.namespace).Resource(resource).Name(name), o)
	if err == nil && (o.GetName() != name || o.GetNamespace() != c.namespace || o.GetUID() == "") {
		err = errForeign
	}
	if err != nil {
		return c.missing(ctx, err, resource, name)
	}
	return nil
}

// valueOf returns the value of a Secret. Values that are not text are not a part of the JSON object.
func valueOf(ref provider.Ref, s *corev1.Secret) provider.Value {
	text := make(map[string]string, len(s.Data))
	v := provider.Value{Key: ref.Key, Version: versionOf(s)}
	for k, b := range s.Data {
		if utf8.Valid(b) {
			text[k] = string(b)
			continue
		}
		if v.Binary == nil {
			v.Binary = map[string][]byte{}
		}
		v.Binary[k] = b
	}
	v.Data = provider.EncodeJSON(text)
	if ref.Metadata {
		v.Metadata = map[string]string{}
		maps.Copy(v.Metadata, s.Annotations)
		maps.Copy(v.Metadata, s.Labels)
	}
	return v
}

// idOf returns a hash of the UID, which is the key of versions.
func idOf(s *corev1.Secret) string { return provider.HashedID(string(s.UID)) }

// versionOf returns a version of the data alone, unlike resourceVersion, which changes with each label. Its key is the UID: an id that is
// in no status.
func versionOf(s *corev1.Secret) string { return provider.Fingerprint(string(s.UID), s.Data) }

// BatchSize implements provider.Batcher.
func (c *Client) BatchSize() int { return page }

// GetBatch reads many secrets with one list, and each that is not in it alone.
func (c *Client) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	listed := map[string]*corev1.Secret{}
	if len(refs) > few && !c.noLists.Load() {
		list, err := c.list(ctx, metav1.ListOptions{Limit: page})
		c.noLists.Store(kerrors.IsForbidden(err))
		for i := range list.Items {
			listed[list.Items[i].Name] = &list.Items[i]
		}
	}
	results := make([]provider.Result, len(refs))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, ref := range refs {
		if s := listed[ref.Key]; s != nil && ref.Version == "" {
			results[i].Value = valueOf(ref, s)
			continue
		}
		g.Go(func() error {
			results[i].Value, results[i].Err = c.Get(ctx, ref)
			return nil
		})
	}
	_ = g.Wait() // Each result has its own error.
	return results
}

// list returns one page of the secrets, without the records of Helm releases, which are large.
func (c *Client) list(ctx context.Context, o metav1.ListOptions) (corev1.SecretList, error) {
	var list corev1.SecretList
	o.FieldSelector = "type!=helm.sh/release.v1"
	err := c.do(ctx, c.calls.Get().Namespace(c.namespace).Resource("secrets").VersionedParams(&o, scheme.ParameterCodec), &list)
	if err == nil && list.ResourceVersion == "" {
		err = errForeign
	}
	return list, err
}

// Find lists the secrets that have the labels of the query.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		selector, err := labels.ValidatedSelectorFromSet(q.Tags)
		if err != nil { // In a request, a comma of a value would begin another condition.
			yield(provider.Value{}, provider.NewError(provider.Invalid, "find: tags: a key or a value cannot be that of a label; use letters, digits, '-', '_' and '.'"))
			return
		}
		for o := (metav1.ListOptions{Limit: page, LabelSelector: selector.String()}); ; {
			list, err := c.list(ctx, o)
			if o.Limit > 1 && provider.IsTooLarge(err) {
				o.Limit = (o.Limit + 7) / 8
				continue
			}
			if err == nil && len(list.Items) == 0 && o.Continue == "" && list.Continue == "" {
				err = c.checkNamespace(ctx)
			}
			if err != nil {
				yield(provider.Value{}, c.explain(err, "listing secrets", fmt.Sprintf("grant the identity list on secrets in namespace %s", c.namespace)))
				return
			}
			for i := range list.Items {
				s := &list.Items[i]
				if strings.HasPrefix(s.Name, q.Path) && (q.Name == nil || q.Name.MatchString(s.Name)) && !yield(valueOf(provider.Ref{Key: s.Name}, s), nil) {
					return
				}
			}
			if o.Continue = list.Continue; o.Continue == "" {
				return
			}
		}
	}
}
