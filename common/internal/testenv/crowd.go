package testenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// The annotation and the label of the Lease by which modules find each other.
const (
	MemberAnnotation = "direct-secrets.io/member"
	PresenceLabel    = "direct-secrets.io/presence"
)

// Quickly is a timing with which a stopped module counts as missing after five seconds.
var Quickly = presence.Timing{
	Renew: 200 * time.Millisecond, Duration: 4 * time.Second, GracePeriod: 500 * time.Millisecond, Rollout: time.Second, Schema: 200 * time.Millisecond,
	Shared: 2 * time.Second, SharedDeadline: 1500 * time.Millisecond, SharedRetry: 200 * time.Millisecond,
}

// Crowd is an Env with several modules that find each other.
type Crowd struct{ *Env }

// NewCrowd creates an Env without running modules, with a generator, a Secret to push and a remote secret to read.
func NewCrowd(t *testing.T) *Crowd {
	t.Helper()
	e := NewIdle(t)
	e.Create(&fakev1.FakeGenerator{ObjectMeta: e.Meta("gen"), Spec: fakev1.FakeGeneratorSpec{Backend: "main", Prefix: "u"}})
	e.Source("source", map[string]string{"password": "p"})
	e.Backend.Put("db", []byte("s3cret"))
	return &Crowd{e}
}

// Join runs a module until the returned function is called, or the test ends.
func (c *Crowd) Join(name string, kinds []provider.Kind, more ...operator.Option) (stop func()) {
	c.Helper()
	return c.Module(name, name+"."+v1alpha1.Group, kinds, slices.Concat([]operator.Option{
		operator.WithPresence(Quickly),
		operator.WithFlags(func(f *operator.Flags) {
			f.PresenceNamespace = c.NS
			f.Modules = presence.Catalog{{Group: "vault." + v1alpha1.Group, Kind: "VaultKV"}: "provider-vault"}
		}),
	}, more)...)
}

// Stores runs the module that serves stores, like Join.
func (c *Crowd) Stores(more ...operator.Option) (stop func()) {
	return c.Join("provider-fake", c.Server.Kinds(), more...)
}

// Generators runs the module that serves generators, like Join.
func (c *Crowd) Generators(more ...operator.Option) (stop func()) {
	return c.Join("generator-fake", c.Server.GeneratorKinds(), more...)
}

// WaitForLeaseText waits until the Lease of a module contains a text.
func (c *Crowd) WaitForLeaseText(name, want string) {
	c.Helper()
	c.Eventually(func() string {
		if got := c.Member(name).Annotations[MemberAnnotation]; !strings.Contains(got, want) {
			return fmt.Sprintf("the Lease of %s has %q, want %q", name, got, want)
		}
		return ""
	})
}

// Member returns the Lease of the module with a name that serves only this namespace.
func (c *Crowd) Member(name string) *coordinationv1.Lease {
	c.Helper()
	var list coordinationv1.LeaseList
	if err := c.API.List(c.Ctx, &list, client.InNamespace(c.NS), client.MatchingLabels{PresenceLabel: "true"}); err != nil {
		c.Fatal(err)
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, name+".") {
			return &list.Items[i]
		}
	}
	return &coordinationv1.Lease{}
}
