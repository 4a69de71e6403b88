package testenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// A Client is the client of a namespace, with what the suites of the controllers expect.
type Client struct{ *operatortest.Client }

// NewClient returns the client of a namespace. Its objects stay when the test ends.
func NewClient(t testing.TB, p *Plane, ns string) *Client {
	return &Client{&operatortest.Client{TB: t, Plane: p, Ctx: t.Context(), NS: ns}}
}

// Meta returns the metadata of an object in this namespace.
func (c *Client) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.NS, Name: name}
}

// Update changes a live object, and retries after a conflict.
func Update[T client.Object](c *Client, o T, change func(T)) T {
	c.Helper()
	c.Update(o, func() { change(o) })
	return o
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

// WantReady waits until the Ready condition of an ExternalSecret has a reason, for the current generation.
func (c *Client) WantReady(name, reason string) metav1.Condition {
	c.Helper()
	return c.Want(&v1alpha1.ExternalSecret{ObjectMeta: c.Meta(name)}, reason)
}

// WantPushed waits until the Ready condition of a PushSecret has a reason, for the current generation. It returns the
// message.
func (c *Client) WantPushed(name, reason string) string {
	c.Helper()
	return c.Want(&v1alpha1.PushSecret{ObjectMeta: c.Meta(name)}, reason).Message
}

// WantStore waits until the Ready condition of a store has a reason.
func (c *Client) WantStore(name, reason string) metav1.Condition {
	c.Helper()
	if c.NS == "" {
		return c.Want(&fakev1.ClusterFakeStore{ObjectMeta: c.Meta(name)}, reason)
	}
	return c.Want(&fakev1.FakeStore{ObjectMeta: c.Meta(name)}, reason)
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

// WantRemote waits until a key of a backend has a value; an empty want means no value.
func (c *Client) WantRemote(b *fake.Backend, key, want string) {
	c.Helper()
	c.Eventually(func() string { return cmp.Diff(want, Remote(b, key)) })
}
