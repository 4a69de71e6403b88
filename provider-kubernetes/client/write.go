package client

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// markKey is the annotation with the mark of a provider.Writer.
const markKey = provider.Reserved + "/created-by"

// settings is the metadata of a provider.Target.
type settings struct {
	Type        corev1.SecretType `json:"type"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func settingsOf(t provider.Target) (s settings, err error) {
	if strings.HasPrefix(t.Key, configMap) {
		return s, provider.NewError(provider.Invalid, "secret %q: ConfigMaps are read only; push to a Secret", t.Key)
	}
	if err := provider.DecodeMetadata(t.Metadata, &s, "type, labels and annotations, which are objects of strings"); err != nil {
		return s, err
	}
	if s.Type == corev1.SecretTypeServiceAccountToken || s.Type == corev1.SecretTypeBootstrapToken {
		return s, provider.NewError(provider.Invalid, "metadata: type: %s is refused, because the cluster would make it a login; choose another type", s.Type)
	}
	if err := provider.CheckSettings("labels", s.Labels, reserved); err != nil {
		return s, err
	}
	return s, provider.CheckSettings("annotations", s.Annotations, reserved)
}

// reserved refuses names of this project, and those with which the other cluster makes a Secret a login.
func reserved(key, _ string) (wrong string) {
	if domain, name, _ := strings.Cut(key, "/"); strings.HasSuffix(domain, provider.Reserved) || domain == "kubernetes.io" && strings.HasPrefix(name, "service-account") {
		return "is reserved; choose another name"
	}
	return ""
}

// drift returns the settings that a Secret does not have.
func (s settings) drift(of *corev1.Secret) []string {
	names := slices.Concat(provider.Differing("annotations", s.Annotations, of.Annotations), provider.Differing("labels", s.Labels, of.Labels))
	if s.Type != "" && s.Type != of.Type {
		names = append(names, "type")
	}
	return names
}

// apply sets the settings and the data of a Secret. nil keeps the data.
func (s settings) apply(to *corev1.Secret, raw []byte) error {
	to.Labels, to.Annotations = provider.Merged(to.Labels, s.Labels), provider.Merged(to.Annotations, s.Annotations)
	if raw == nil {
		return nil
	}
	text, ok := provider.DecodeStrings(raw)
	if !ok {
		return provider.NewError(provider.Invalid, "the value is not a JSON object of strings, which a Secret needs; write a dot in a key as \\., such as tls\\.crt, set property, or push the whole Secret")
	}
	to.Data = make(map[string][]byte, len(text))
	for k, v := range text {
		to.Data[k] = []byte(v)
	}
	return nil
}

// Features implements provider.Writer.
func (*Client) Features() provider.Features { return provider.Features{Exclusive: true, Guarded: true} }

// Observe implements provider.Writer.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	_, seen, err := c.observe(ctx, t)
	return seen, err
}

func (c *Client) observe(ctx context.Context, t provider.Target) (*corev1.Secret, provider.Observed, error) {
	wanted, err := settingsOf(t)
	if err != nil {
		return nil, provider.Observed{}, err
	}
	s, err := c.object(ctx, t.Key)
	if err != nil {
		return nil, provider.Observed{}, err
	}
	v := valueOf(provider.Ref{Key: t.Key}, s)
	return s, provider.Observed{Data: v.Data, Version: v.Version, ID: idOf(s), Mark: s.Annotations[markKey], Drift: wanted.drift(s)}, nil
}

// Create implements provider.Writer.
func (c *Client) Create(ctx context.Context, t provider.Target, raw []byte, mark string) (provider.Written, error) {
	wanted, err := settingsOf(t)
	s := &corev1.Secret{Type: wanted.Type, ObjectMeta: metav1.ObjectMeta{Name: t.Key, Annotations: map[string]string{markKey: mark}}}
	if err == nil {
		err = wanted.apply(s, raw)
	}
	if err != nil {
		return provider.Written{}, err
	}
	made := &corev1.Secret{} // A decoder would keep the keys of another one.
	err = c.do(ctx, c.calls.Post().Namespace(c.namespace).Resource("secrets").Body(s), made)
	return c.written(made, err, t, "create")
}

// Update implements provider.Writer.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, raw []byte) (provider.Written, error) {
	return c.patch(ctx, t, seen, func(s *corev1.Secret) error {
		wanted, err := settingsOf(t)
		switch {
		case err != nil:
			return err
		case slices.Contains(seen.Drift, "type"):
			return provider.NewError(provider.Invalid, "metadata: type: the type of the Secret %q cannot be changed; delete it, or correct type", t.Key)
		}
		if raw != nil { // An update would lose the key.
			if err := checkText(s); err != nil {
				return err
			}
		}
		was := s.Data
		if err := wanted.apply(s, raw); err != nil {
			return err
		}
		if s.Immutable != nil && *s.Immutable && !maps.EqualFunc(was, s.Data, bytes.Equal) {
			return provider.NewError(provider.Invalid, "secret %q: is immutable, so its keys and values cannot be changed; delete it, and it is created again, or push to another Secret", t.Key)
		}
		return nil
	})
}

// checkText returns an error for a Secret with a key that is not in its value, so that a caller would lose it without notice.
func checkText(s *corev1.Secret) error {
	for k := range valueOf(provider.Ref{}, s).Binary {
		return provider.NewError(provider.Invalid, "secret %q: its key %.64q is not text, so nothing can be pushed to it or deleted; remove the key, or push to another Secret", s.Name, k)
	}
	return nil
}

// Mark implements provider.Writer.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	_, err := c.patch(ctx, t, seen, func(s *corev1.Secret) error {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, markKey, mark)
		return nil
	})
	return err
}

// Delete implements provider.Writer.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	s, err := c.unchanged(ctx, t, seen)
	if err == nil {
		err = checkText(s)
	}
	if err != nil {
		return err
	}
	o := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}}
	err = c.do(ctx, c.calls.Delete().Namespace(c.namespace).Resource("secrets").Name(t.Key).Body(o), &corev1.Secret{})
	_, err = c.written(s, err, t, "delete")
	return err
}

// unchanged returns the Secret if it is the one that was seen.
func (c *Client) unchanged(ctx context.Context, t provider.Target, seen provider.Observed) (*corev1.Secret, error) {
	s, now, err := c.observe(ctx, t)
	if err == nil {
		err = now.Unchanged(seen)
	}
	return s, err
}

// patch changes the version of a Secret that was seen, and no later one.
func (c *Client) patch(ctx context.Context, t provider.Target, seen provider.Observed, change func(*corev1.Secret) error) (provider.Written, error) {
	s, err := c.unchanged(ctx, t, seen)
	if err != nil {
		return provider.Written{}, err
	}
	from := s.DeepCopy()
	from.UID, from.ResourceVersion = "", "" // The patch then has those of s, which the API server compares.
	if err := change(s); err != nil {
		return provider.Written{}, err
	}
	raw, err := client.MergeFrom(from).Data(s)
	s = &corev1.Secret{} // A decoder would keep the keys of another one.
	if err == nil {
		err = c.do(ctx, c.calls.Patch(types.MergePatchType).Namespace(c.namespace).Resource("secrets").Name(t.Key).Body(raw), s)
	}
	return c.written(s, err, t, "patch")
}

// written returns the result of a write.
func (c *Client) written(s *corev1.Secret, err error, t provider.Target, verb string) (provider.Written, error) {
	if err != nil {
		e := c.explain(c.namespaceError(err), fmt.Sprintf("secret %q", t.Key), fmt.Sprintf("grant the identity %s on secrets in namespace %s", verb, c.namespace))
		if isMissing(err, "secrets", t.Key) { // It was deleted in the meantime, or its namespace was.
			e.Class = provider.Conflict
		}
		return provider.Written{}, e
	}
	return provider.Written{Version: versionOf(s), ID: idOf(s)}, nil
}
