package pushsecret

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// manySecrets serves Secrets of a size in pages.
type manySecrets struct {
	client.Reader

	n, size, served int
}

func (m *manySecrets) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	list := into.(*corev1.SecretList)
	first, _ := strconv.Atoi(o.Continue)
	for i := first; i < m.n; i++ {
		if o.Limit > 0 && i == first+int(o.Limit) {
			list.Continue = strconv.Itoa(i)
			break
		}
		m.served++
		list.Items = append(list.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Data: map[string][]byte{"k": make([]byte, m.size)}})
	}
	return nil
}

// TestSelectedSecrets reads the Secrets that a label selector selects.
func TestSelectedSecrets(t *testing.T) {
	cases := map[string]struct {
		reason  string
		n, size int
		class   provider.Class
		// served is the number of Secrets that the API server sends at most.
		served int
	}{
		"Pages": {"All pages are read.", 100, 10, "", 100},
		"None":  {"A selector that selects nothing is an error.", 0, 0, provider.NotFound, 0},
		"Large": {"Large Secrets are not read to the end.", 120, 1 << 20, provider.Invalid, 2 * selectedPage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &manySecrets{n: tc.n, size: tc.size}
			held, err := room.NewReader(m).Hold(t.Context(), room.Total)
			if err != nil {
				t.Fatal(err)
			}
			all, _, err := (&labelledSecrets{client: m, namespace: "n", labels: labels.Everything()}).read(t.Context(), held, refs{})
			class, want := provider.Class(""), tc.n
			if err != nil {
				class, want = provider.ClassOf(err), 0
			}
			if diff := cmp.Diff([]any{tc.class, want, tc.served}, []any{class, len(all), m.served}); diff != "" {
				t.Errorf("%s\nerror %v; class, Secrets, and those sent: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
