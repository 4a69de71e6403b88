package externalsecret

import (
	"context"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

var _ target.Census = &census{}

// maxLookups is how many ExternalSecrets are read live in one pass. Anybody who may write Secrets can put thousands of
// marks on one.
const maxLookups = 100

// A census knows the ExternalSecrets of the namespace of one of them, for one pass.
type census struct {
	cache client.Reader
	// live does not read from a cache.
	live client.Reader
	es   *v1alpha1.ExternalSecret
	// asked are those that were read live, by name; nil for one that does not exist.
	asked   map[string]*v1alpha1.ExternalSecret
	lookups int
}

// Lives implements target.Census.
func (c *census) Lives(ctx context.Context, name string, uid types.UID) bool {
	return c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return es.UID == uid })
}

// Writes implements target.Census.
func (c *census) Writes(ctx context.Context, name string, uid types.UID, secret string) bool {
	return c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return es.UID == uid && writes(es, secret) })
}

// writes reports whether an ExternalSecret writes a Secret.
func writes(es *v1alpha1.ExternalSecret, secret string) bool {
	return es.TargetName() == secret && es.Spec.Target.CreationPolicy != v1alpha1.CreateNone
}

// find reports whether the ExternalSecret of a name is as asked. The cache may be behind, so only a
// live read says no; an error, or one too many, says yes.
func (c *census) find(ctx context.Context, name string, is func(*v1alpha1.ExternalSecret) bool) bool {
	key := types.NamespacedName{Namespace: c.es.Namespace, Name: name}
	cached := &v1alpha1.ExternalSecret{}
	if err := c.cache.Get(ctx, key, cached); err == nil && is(cached) {
		return true
	}
	live, known := c.asked[name]
	if !known {
		if c.lookups++; c.lookups > maxLookups {
			return true
		}
		live = &v1alpha1.ExternalSecret{}
		err := c.live.Get(ctx, key, live)
		switch {
		case kerrors.IsNotFound(err):
			live = nil
		case err != nil:
			return true
		}
		if c.asked == nil {
			c.asked = map[string]*v1alpha1.ExternalSecret{}
		}
		c.asked[name] = live
	}
	return live != nil && is(live)
}

// contest judges the other field managers of a Secret.
func (c *census) contest(ctx context.Context, secret metav1.Object) target.Contest {
	names := map[string]string{}
	for name := range target.Marks(secret.GetAnnotations()) {
		names[target.Manager(name)] = name
	}
	return target.Contest{
		Dead: once(func(manager string) bool {
			name, ok := c.nameOf(ctx, manager, names)
			return ok && !c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return writes(es, secret.GetName()) })
		}),
		Older: once(func(manager string) bool {
			name, ok := c.nameOf(ctx, manager, names)
			return ok && c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return olderThan(es, c.es) })
		}),
		Gone: func(owner metav1.OwnerReference) bool { return !c.Lives(ctx, owner.Name, owner.UID) },
	}
}

// once remembers the answers of f: it is asked for each key, and may read live.
func once(f func(string) bool) func(string) bool {
	known := map[string]bool{}
	return func(s string) bool {
		if _, ok := known[s]; !ok {
			known[s] = f(s)
		}
		return known[s]
	}
}

// nameOf returns the name of the ExternalSecret that a field manager belongs to. A manager whose name
// is hashed tells none: it is found by its mark, or, where that was removed, among all ExternalSecrets
// of the namespace. It is false if that is not possible; the manager then counts as living and younger.
func (c *census) nameOf(ctx context.Context, manager string, byMark map[string]string) (string, bool) {
	if name, ok := byMark[manager]; ok {
		return name, true
	}
	name := strings.TrimPrefix(manager, v1alpha1.FieldManagerPrefix)
	if c.find(ctx, name, func(*v1alpha1.ExternalSecret) bool { return true }) {
		return name, true
	}
	var list v1alpha1.ExternalSecretList
	if err := c.cache.List(ctx, &list, client.InNamespace(c.es.Namespace)); err != nil {
		return "", false
	}
	for i := range list.Items {
		if target.Manager(list.Items[i].Name) == manager {
			return list.Items[i].Name, true
		}
	}
	return name, target.Manager(name) == manager
}

// olderThan reports whether a was made before b; of two made in the same second that with the
// smaller uid counts as the older.
func olderThan(a, b *v1alpha1.ExternalSecret) bool {
	if a.UID == b.UID {
		return false
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
