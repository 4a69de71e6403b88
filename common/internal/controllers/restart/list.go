package restart

import (
	"context"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/restart"
)

const (
	// page is the number of workloads that one request reads.
	page = 250
	// pause is the minimum time between two looks at the workloads of a namespace. It is longer after a look that has read much:
	// a namespace gets perSecond bytes.
	//limit:objects Time between two lists of the workloads of a namespace for `spec.target.restart` | The next list waits.
	pause = time.Second
	// perSecond is in bytes.
	//limit:objects Workloads of a namespace that are read for `spec.target.restart` | unit=bytes a second | The next list waits longer. One workload at a time is in memory.
	perSecond = 4 << 20
)

// A lister reads workloads one by one. A client would have 250 of them in memory, as text and decoded.
type lister struct{ api rest.Interface }

func newLister(cfg *rest.Config, client *http.Client) (lister, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentConfig = rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion(), ContentType: "application/json"}
	api, err := rest.UnversionedRESTClientForConfigAndClient(cfg, client)
	return lister{api}, err
}

// all returns the workloads of a namespace, and how many bytes were read for it. The Kind Rollout need not be installed.
func (l lister) all(ctx context.Context, namespace string, targets restart.Targets) (all []restart.Workload, bytes int64, err error) {
	for _, gvk := range kinds {
		o := metav1.ListOptions{Limit: page}
		for {
			var some []restart.Workload
			var n int64
			some, n, o.Continue, err = l.page(ctx, gvk, namespace, o, targets)
			all, bytes = append(all, some...), bytes+n
			if kerrors.IsNotFound(err) {
				break
			}
			if err != nil {
				return nil, bytes, errors.Wrapf(err, "cannot list %ss", gvk.Kind)
			}
			if o.Continue == "" {
				break
			}
		}
	}
	return all, bytes, nil
}

// exists reports whether a workload is still there, or may be.
func (l lister) exists(ctx context.Context, namespace string, w *restart.Workload) bool {
	for _, gvk := range kinds {
		if gvk.Kind != string(w.Kind) {
			continue
		}
		o := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", w.Name).String()}
		is, _, _, err := l.page(ctx, gvk, namespace, o, restart.Targets{})
		return err != nil && !kerrors.IsNotFound(err) || len(is) > 0 && is[0].UID == w.UID
	}
	return false
}

// page returns some workloads of a Kind, how many bytes were read for it, and the token of the next page.
func (l lister) page(ctx context.Context, gvk schema.GroupVersionKind, namespace string, o metav1.ListOptions, targets restart.Targets) (some []restart.Workload, bytes int64, next string, err error) {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	body, err := l.api.Get().AbsPath("apis", gvk.Group, gvk.Version, "namespaces", namespace, resource.Resource).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.SchemeGroupVersion).Stream(ctx)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { _ = body.Close() }()
	text := &counted{Reader: body}
	next, err = restart.ReadList(text, func(raw []byte) {
		if w, err := restart.Parse(v1alpha1.WorkloadKind(gvk.Kind), raw, targets); err == nil { // No other Kind is decoded by others.
			some = append(some, w)
		}
	})
	return some, text.n, next, err
}

// counted counts what is read.
type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// wait returns the time until the workloads of a namespace can be listed again.
func (r *Reconciler) wait(namespace string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.nextList[namespace].Sub(now))
}

// listed records that a list of the workloads of a namespace has read a number of bytes.
func (r *Reconciler) listed(namespace string, now time.Time, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.nextList, func(_ string, at time.Time) bool { return !at.After(now) })
	r.nextList[namespace] = now.Add(pause + time.Duration(bytes)*time.Second/perSecond)
}
