package part

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// maxMessage bounds the message of a part.
const maxMessage = 1024

// told is what the status of an object was last made to say about its part.
type told struct {
	said *v1alpha1.PartStatus
	// version is the resourceVersion of the object with it.
	version string
}

// module is the name under which this operator records its parts.
func (r *Reconciler) module() string {
	if r.opts.ControllerClass == "" {
		return r.opts.Module
	}
	return r.opts.Module + "/" + r.opts.ControllerClass
}

// tell records the part in the status of the object, if the status does not say so already. m is nil if
// there is none. Each module has a field manager of its own, so that none takes away what another wrote.
func (p *pass) tell(ctx context.Context, m metav1.Object, anew bool) error {
	var want *v1alpha1.PartStatus
	if !isNil(m) || p.message != "" {
		want = &v1alpha1.PartStatus{Module: p.module(), Message: cut(p.message)}
	}
	is := p.recorded()
	if t := p.obj.told; t != nil {
		if c, err := resourceversion.CompareResourceVersion(p.user.GetResourceVersion(), t.version); err == nil && c < 0 {
			is = t.said // The cache is behind.
		}
	}
	switch {
	case !isNil(m):
		want.Name, want.UID, want.ResourceVersion = m.GetName(), m.GetUID(), m.GetResourceVersion()
	case want != nil && is != nil: // What is there is not known to be gone.
		want.Name, want.UID, want.ResourceVersion = is.Name, is.UID, is.ResourceVersion
	}
	if !anew && want != nil && is != nil && want.UID == is.UID {
		want.ResourceVersion = is.ResourceVersion // It tells of other values, not of each write.
	}
	if same(is, want) {
		return nil
	}
	version, err := p.apply(ctx, want)
	if err == nil && version != "" {
		p.obj.told = &told{said: want, version: version}
	}
	return err
}

// recorded returns what the status of the object says about the part, as the cache shows it.
func (p *pass) recorded() *v1alpha1.PartStatus {
	i := slices.IndexFunc(p.user.parts, func(s v1alpha1.PartStatus) bool { return s.Module == p.module() })
	if i < 0 {
		return nil
	}
	return &p.user.parts[i]
}

func same(a, b *v1alpha1.PartStatus) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return *a == *b
}

func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}

// apply writes the entry, or takes it out, and returns the resourceVersion of the object; empty if it is another
// by now.
func (p *pass) apply(ctx context.Context, s *v1alpha1.PartStatus) (string, error) {
	parts := []v1alpha1.PartStatus{}
	if s != nil {
		parts = append(parts, *s)
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": p.req.kind,
		"metadata": map[string]any{"name": p.req.Name, "namespace": p.req.Namespace, "uid": p.user.GetUID()},
		"status":   map[string]any{"parts": parts},
	})
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the status")
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(p.req.kind))
	out.SetNamespace(p.req.Namespace)
	out.SetName(p.req.Name)
	err = p.client.Status().Patch(ctx, out, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner("direct-secrets-part:"+p.module()), client.ForceOwnership)
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		return "", nil // It is another object by now, or none.
	}
	return out.GetResourceVersion(), errors.Wrap(err, "cannot record the part")
}
