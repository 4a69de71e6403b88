package generation

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// pages lists Secrets in pages.
type pages struct {
	client.Client
	all   [][]metav1.PartialObjectMetadata
	lists int
	most  int64
}

func (p *pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	p.most = max(p.most, o.Limit)
	at := 0
	if o.Continue != "" {
		at = int(o.Continue[0] - '0')
	}
	into := list.(*metav1.PartialObjectMetadataList)
	if into.Items = p.all[at]; at+1 < len(p.all) {
		into.Continue = fmt.Sprint(at + 1)
	}
	p.lists++
	return nil
}

// TestInUse looks for a Secret that was written for an object, in pages.
func TestInUse(t *testing.T) {
	secret := func(name, uid string, change ...func(*metav1.PartialObjectMetadata)) []metav1.PartialObjectMetadata {
		s := metav1.PartialObjectMetadata{}
		s.Annotations = map[string]string{target.MarkKey(name): fmt.Sprintf(`{"name":%q,"uid":%q}`, name, uid)}
		for _, f := range change {
			f(&s)
		}
		return []metav1.PartialObjectMetadata{s}
	}
	deleted := func(s *metav1.PartialObjectMetadata) { s.DeletionTimestamp = &metav1.Time{} }
	none := []metav1.PartialObjectMetadata{{}}
	cases := map[string]struct {
		reason string
		all    [][]metav1.PartialObjectMetadata
		of     []types.UID
		used   bool
		lists  int
	}{
		"FirstPage": {"The other pages need not be read.", [][]metav1.PartialObjectMetadata{secret("db", "1"), none}, []types.UID{"1"}, true, 1},
		"LastPage":  {"Every page counts.", [][]metav1.PartialObjectMetadata{none, {}, secret("db", "2")}, []types.UID{"1", "2"}, true, 3},
		"Others":    {"They were written for other objects.", [][]metav1.PartialObjectMetadata{secret("db", "2"), secret("other", "1")}, []types.UID{"1"}, false, 2},
		"Deleted":   {"A Secret that is being deleted holds nothing.", [][]metav1.PartialObjectMetadata{secret("db", "1", deleted)}, []types.UID{"1"}, false, 1},
		"NoObject":  {"Nothing is asked for.", [][]metav1.PartialObjectMetadata{secret("db", "1")}, nil, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &pages{all: tc.all}
			r := &Reconciler{client: p}
			used, err := r.inUse(t.Context(), "shop", "db", tc.of...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.used, tc.lists}, []any{used, p.lists}); diff != "" {
				t.Errorf("%s\nwhether it is in use, and the lists: -want, +got:\n%s", tc.reason, diff)
			}
			if limited := p.most > 0 && p.most <= secretsPage; limited != (tc.lists > 0) {
				t.Errorf("a page has up to %d Secrets, want at most %d", p.most, secretsPage)
			}
		})
	}
}
