package testenv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Client writes and reads the objects of a namespace for a test, and waits for their expected state.
type Client struct {
	*testing.T
	*Plane
	Ctx context.Context
	// NS is the namespace; empty for cluster objects.
	NS string
}

// Meta returns the metadata of an object in this namespace.
func (c *Client) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.NS, Name: name}
}

// Create creates an object.
func (c *Client) Create(o client.Object) {
	c.Helper()
	if err := c.API.Create(c.Ctx, o); err != nil {
		c.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// Delete deletes an object.
func (c *Client) Delete(o client.Object) {
	c.Helper()
	if err := c.API.Delete(c.Ctx, o); err != nil {
		c.Fatalf("delete %s: %v", o.GetName(), err)
	}
}

// Update changes a live object, and retries after a conflict.
func Update[T client.Object](c *Client, o T, change func(T)) T {
	c.Helper()
	for {
		if err := c.API.Get(c.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
			c.Fatalf("get %s: %v", o.GetName(), err)
		}
		change(o)
		err := c.API.Update(c.Ctx, o)
		if err == nil {
			return o
		}
		if !kerrors.IsConflict(err) {
			c.Fatalf("update %s: %v", o.GetName(), err)
		}
	}
}

// Eventually waits until f returns an empty string. Until then f returns what is missing.
func (c *Client) Eventually(f func() string) {
	c.Helper()
	controlplane.Eventually(c, f)
}

func (c *Client) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.NS, Name: name}
}

// Get reads an ExternalSecret live.
func (c *Client) Get(name string) *v1alpha1.ExternalSecret {
	c.Helper()
	es := &v1alpha1.ExternalSecret{}
	if err := c.API.Get(c.Ctx, c.key(name), es); err != nil {
		c.Fatalf("get ExternalSecret %s: %v", name, err)
	}
	return es
}

// GetPush reads a PushSecret live.
func (c *Client) GetPush(name string) *v1alpha1.PushSecret {
	c.Helper()
	ps := &v1alpha1.PushSecret{}
	if err := c.API.Get(c.Ctx, c.key(name), ps); err != nil {
		c.Fatalf("get PushSecret %s: %v", name, err)
	}
	return ps
}

// Secret returns a Secret; nil if it does not exist.
func (c *Client) Secret(name string) *corev1.Secret {
	c.Helper()
	s := &corev1.Secret{}
	err := c.API.Get(c.Ctx, c.key(name), s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.Fatalf("get Secret %s: %v", name, err)
	}
	return s
}

// Value returns the value of a Secret's key; empty if there is none.
func (c *Client) Value(name, key string) string {
	c.Helper()
	s := c.Secret(name)
	if s == nil {
		return ""
	}
	return string(s.Data[key])
}

// WantSecret waits until a key of a Secret has a value.
func (c *Client) WantSecret(name, key, value string) *corev1.Secret {
	c.Helper()
	var s *corev1.Secret
	c.Eventually(func() string {
		if s = c.Secret(name); s == nil {
			return "Secret " + name + " does not exist"
		}
		if got := string(s.Data[key]); got != value {
			return "Secret " + name + " key " + key + " is " + got + ", want " + value
		}
		return ""
	})
	return s
}

// WantReady waits until the Ready condition of an ExternalSecret has a reason, for the current generation.
func (c *Client) WantReady(name, reason string) metav1.Condition {
	c.Helper()
	return c.wantReady(name, func() (client.Object, *[]metav1.Condition) {
		es := &v1alpha1.ExternalSecret{}
		return es, &es.Status.Conditions
	}, reason)
}

// WantPushed waits until the Ready condition of a PushSecret has a reason, for the current generation. It returns the
// message.
func (c *Client) WantPushed(name, reason string) string {
	c.Helper()
	return c.wantReady(name, func() (client.Object, *[]metav1.Condition) {
		ps := &v1alpha1.PushSecret{}
		return ps, &ps.Status.Conditions
	}, reason).Message
}

// WantStore waits until the Ready condition of a store has a reason.
func (c *Client) WantStore(name, reason string) metav1.Condition {
	c.Helper()
	return c.wantReady(name, func() (client.Object, *[]metav1.Condition) {
		var s provider.Object = &fakev1.FakeStore{}
		if c.NS == "" {
			s = &fakev1.ClusterFakeStore{}
		}
		return s, &s.StoreStatus().Conditions
	}, reason)
}

// wantReady reads into a new object from fresh each time. For a store it ignores the generation of the condition.
func (c *Client) wantReady(name string, fresh func() (client.Object, *[]metav1.Condition), reason string) metav1.Condition {
	c.Helper()
	var got metav1.Condition
	c.Eventually(func() string {
		o, conditions := fresh()
		if err := c.API.Get(c.Ctx, c.key(name), o); err != nil {
			return err.Error()
		}
		ready := meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return fmt.Sprintf("%T %s has no Ready condition", o, name)
		}
		_, isStore := o.(provider.Object)
		if ready.Reason != reason || !isStore && ready.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("%T %s is %s %s: %s, want %s", o, name, ready.Status, ready.Reason, ready.Message, reason)
		}
		got = *ready
		return ""
	})
	return got
}

// EventsOf returns the reasons of the events of an ExternalSecret, sorted.
func (c *Client) EventsOf(name string) []string {
	c.Helper()
	var list corev1.EventList
	if err := c.API.List(c.Ctx, &list, client.InNamespace(c.NS)); err != nil {
		c.Fatal(err)
	}
	var reasons []string
	for _, ev := range list.Items {
		if ev.InvolvedObject.Kind == "ExternalSecret" && ev.InvolvedObject.Name == name {
			reasons = append(reasons, ev.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// WantNote waits for an event of an object in the namespace whose message contains a text.
func (c *Client) WantNote(name, reason, text string) {
	c.Helper()
	c.Eventually(func() string {
		var list corev1.EventList
		if err := c.API.List(c.Ctx, &list, client.InNamespace(c.NS)); err != nil {
			return err.Error()
		}
		var notes []string
		for _, ev := range list.Items {
			if ev.InvolvedObject.Name == name && ev.Reason == reason {
				notes = append(notes, ev.Message)
			}
		}
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, text) }) {
			return fmt.Sprintf("the events %s of %s are %q, want one with %q", reason, name, notes, text)
		}
		return ""
	})
}

// WantEvent waits for one event of a cluster object, and fails for a second one with the same reason and message.
func (c *Client) WantEvent(name, reason, message string) {
	c.Helper()
	c.Eventually(func() string {
		var list corev1.EventList
		if err := c.API.List(c.Ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err.Error()
		}
		count := int32(0)
		for _, ev := range list.Items {
			if ev.InvolvedObject.Name == name && ev.Reason == reason && ev.Message == message {
				count += max(ev.Count, 1)
			}
		}
		if count != 1 {
			return fmt.Sprintf("%d events %s %q of %s, want one", count, reason, message, name)
		}
		return ""
	})
}

// Credentials creates the Secret "credentials" with one key.
func (c *Client) Credentials(key, value string, change ...func(*corev1.Secret)) *corev1.Secret {
	c.Helper()
	s := &corev1.Secret{ObjectMeta: c.Meta("credentials"), Data: map[string][]byte{key: []byte(value)}}
	for _, f := range change {
		f(s)
	}
	c.Create(s)
	return s
}

// Source creates a Secret to push, or changes its values.
func (c *Client) Source(name string, data map[string]string, labels ...string) {
	c.Helper()
	s := &corev1.Secret{ObjectMeta: c.Meta(name), StringData: data}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&s.ObjectMeta, l, "true")
	}
	err := c.API.Create(c.Ctx, s)
	if kerrors.IsAlreadyExists(err) {
		Update(c, &corev1.Secret{ObjectMeta: c.Meta(name)}, func(s *corev1.Secret) {
			s.Data = map[string][]byte{}
			for k, v := range data {
				s.Data[k] = []byte(v)
			}
		})
		return
	}
	if err != nil {
		c.Fatal(err)
	}
}

// WantRemote waits until a key of a backend has a value; an empty want means no value.
func (c *Client) WantRemote(b *fake.Backend, key, want string) {
	c.Helper()
	c.Eventually(func() string { return cmp.Diff(want, Remote(b, key)) })
}

// OwnedBy reports whether a Secret has an ownerReference to an object.
func OwnedBy(s *corev1.Secret, o client.Object) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
}
