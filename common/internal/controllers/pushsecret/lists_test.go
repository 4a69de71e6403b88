package pushsecret

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
)

// pages is an API server with a number of small Secrets. It counts the lists.
type pages struct {
	client.Reader

	secrets int
	lists   int
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	p.lists++
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	from, _ := strconv.Atoi(o.Continue)
	to := min(p.secrets, from+int(o.Limit))
	if to < p.secrets {
		into.SetContinue(strconv.Itoa(to))
	}
	switch list := into.(type) {
	case *corev1.SecretList:
		for i := from; i < to; i++ {
			list.Items = append(list.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}, Data: map[string][]byte{"a": []byte("b")}})
		}
	case *metav1.PartialObjectMetadataList:
		list.Items = make([]metav1.PartialObjectMetadata, to-from)
	}
	return nil
}

// TestListRate reads the Secrets that a selector selects, as each push does, for a second.
func TestListRate(t *testing.T) {
	api := &pages{secrets: 200}
	q := &quota.Quotas{}
	l := &labelledSecrets{objects: room.NewReader(api, q), namespace: "team", labels: labels.Everything()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := l.readVersions(ctx, &versions{refs: refs{}}); err != nil {
			break
		}
		held, err := l.objects.Hold(ctx, l.namespace, l.room())
		if err != nil {
			break
		}
		_, _, err = l.read(ctx, held, refs{})
		held.Release()
		if err != nil {
			break
		}
	}
	if api.lists > 2*20 {
		t.Errorf("%d lists at the API server in a second, want at most 20 for a tenant", api.lists)
	}
}
