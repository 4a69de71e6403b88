package templatesource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// configMaps serves ConfigMaps of one size, and counts them.
type configMaps struct {
	client.Reader

	size, served int
}

func (c *configMaps) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.served++
	m := into.(*corev1.ConfigMap)
	m.Name, m.ResourceVersion, m.Data = key.Name, "1", map[string]string{"t": strings.Repeat("x", c.size), "other": "y"}
	return nil
}

// TestReadAll reads many template sources. An object can hold a limited size of them.
func TestReadAll(t *testing.T) {
	var refs []render.TextRef
	for i := range 60 {
		refs = append(refs, render.TextRef{Name: fmt.Sprint(i)})
	}
	only := func(_ render.TextRef, all map[string]string, _ string) map[string]string {
		return map[string]string{"t": all["t"]}
	}
	held := func(c client.Reader) *room.Held {
		h, err := room.NewReader(c, &quota.Quotas{}).HoldIn(t.Context(), "n", Room(refs))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	c := &configMaps{size: 10}
	if all, err := ReadAll(t.Context(), held(c), "n", refs, only); err != nil || len(all) != len(refs) || len(all[refs[0]]) != 1 {
		t.Errorf("small templates: %d sources, error %v", len(all), err)
	}
	c = &configMaps{size: 1 << 20}
	if _, err := ReadAll(t.Context(), held(c), "n", refs, only); provider.ClassOf(err) != provider.Invalid || c.served > 5 {
		t.Errorf("large templates: error %v after %d sources", err, c.served)
	}
}
