package pushsecret

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// manySecrets serves Secrets of a size, with large annotations, in pages.
type manySecrets struct {
	client.Reader

	n, size, served int
	// page is the largest page of Secrets, and metadataPage that of metadata.
	page, metadataPage int
}

func (m *manySecrets) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	first, _ := strconv.Atoi(o.Continue)
	last, more := m.n, ""
	if o.Limit > 0 && first+int(o.Limit) < m.n {
		last = first + int(o.Limit)
		more = strconv.Itoa(last)
	}
	for i := first; i < last; i++ {
		meta := metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint(i), ResourceVersion: "1", Annotations: map[string]string{"a": strings.Repeat("x", 1000)}}
		switch list := into.(type) {
		case *corev1.SecretList:
			m.served++
			list.Continue = more
			list.Items = append(list.Items, corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": make([]byte, m.size)}})
			m.page = max(m.page, len(list.Items))
		case *metav1.PartialObjectMetadataList:
			list.Continue = more
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: meta})
			m.metadataPage = max(m.metadataPage, len(list.Items))
		}
	}
	return nil
}

// TestSelectedSecrets reads the Secrets that a label selector selects, and applies a template to each.
func TestSelectedSecrets(t *testing.T) {
	cases := map[string]struct {
		reason   string
		n, size  int
		template string
		class    provider.Class
		// served is the number of Secrets that the API server sends at most.
		served int
	}{
		"Pages":    {"All pages are read.", 100, 10, "", "", 100},
		"None":     {"A selector that selects nothing is an error.", 0, 0, "", provider.NotFound, 0},
		"Large":    {"Large Secrets are not read to the end.", 120, 1 << 20, "", provider.Invalid, maxSelected >> 20},
		"Template": {"Templates can multiply small Secrets.", 100, 1, `{{ repeat 1000000 "x" }}`, provider.Invalid, 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &manySecrets{n: tc.n, size: tc.size}
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db"}}
			ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{}}
			if tc.template != "" {
				ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"k": tc.template}}
			}
			objects := room.NewReader(m, &quota.Quotas{})
			selected, err := selectionOf(m, objects, ps, &sourceMemory{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			from := &sources{client: m, objects: objects, object: ps, selection: selected}
			seen, err := from.readVersions(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			is, held, err := from.load(t.Context(), seen.refs)
			class, want := provider.Class(""), tc.n
			if err == nil {
				held.Release()
			}
			if all, err := objects.HoldIn(t.Context(), "n", maxSelected); err != nil {
				t.Error(err) // It waits forever if room was not released.
			} else {
				all.Release()
			}
			if err != nil {
				class, want = provider.ClassOf(err), 0
			} else if is.refs.hash() != seen.refs.hash() || is.secrets[0].Name != "0" {
				t.Errorf("read %v, and the versions were %v", is.refs, seen.refs)
			}
			if diff := cmp.Diff([]any{tc.class, want, tc.served}, []any{class, len(is.secrets), m.served}); diff != "" {
				t.Errorf("%s\nerror %v; class, Secrets, and those sent: -want, +got:\n%s", tc.reason, err, diff)
			}
			if m.page > selectedPage || m.metadataPage > versionsPage {
				t.Errorf("%s\npages of %d Secrets and %d metadata", tc.reason, m.page, m.metadataPage)
			}
		})
	}
}
