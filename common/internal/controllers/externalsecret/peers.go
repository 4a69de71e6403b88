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

var _ target.Peers = &peers{}

// maxLookups is the maximum number of ExternalSecrets read live in one pass. Anyone who can write Secrets can put
// thousands of marks on one.
//
//limit:objects ExternalSecrets that one reconcile reads to check whether other owners of the keys of a Secret still exist | The operator assumes that the others exist, so it takes no key from them.
const maxLookups = 100

// peers answers questions about the other ExternalSecrets in the namespace of es, during one pass.
type peers struct {
	cache client.Reader
	// live does not read from a cache.
	live client.Reader
	es   *v1alpha1.ExternalSecret
	// asked holds the ExternalSecrets that were read live, by name; nil for one that does not exist.
	asked   map[string]*v1alpha1.ExternalSecret
	lookups int
}

// Exists implements target.Peers.
func (c *peers) Exists(ctx context.Context, name string, uid types.UID) bool {
	return c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return es.UID == uid })
}

// Writes implements target.Peers.
func (c *peers) Writes(ctx context.Context, name string, uid types.UID, secret string) bool {
	return c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return es.UID == uid && writes(es, secret) })
}

// writes reports whether an ExternalSecret writes a Secret of this name.
func writes(es *v1alpha1.ExternalSecret, secret string) bool {
	return es.TargetName() == secret && es.Spec.Target.CreationPolicy != v1alpha1.CreateNone
}

// find reports whether the ExternalSecret of a name exists and matches is. The cache may be behind, so only a live
// read can return false. It also returns true after an error, and after maxLookups live reads.
func (c *peers) find(ctx context.Context, name string, is func(*v1alpha1.ExternalSecret) bool) bool {
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

// others returns how to treat the other field managers and owners of a Secret.
func (c *peers) others(ctx context.Context, secret metav1.Object) target.Others {
	names := map[string]string{}
	for name := range target.Marks(secret.GetAnnotations()) {
		names[target.Manager(name)] = name
	}
	return target.Others{
		ManagerDeleted: once(func(manager string) bool {
			name, ok := c.nameOf(ctx, manager, names)
			return ok && !c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return writes(es, secret.GetName()) })
		}),
		Older: once(func(manager string) bool {
			name, ok := c.nameOf(ctx, manager, names)
			return ok && c.find(ctx, name, func(es *v1alpha1.ExternalSecret) bool { return olderThan(es, c.es) })
		}),
		OwnerDeleted: func(owner metav1.OwnerReference) bool { return !c.Exists(ctx, owner.Name, owner.UID) },
	}
}

// once caches the results of f: it is called for each key, and may read live.
func once(f func(string) bool) func(string) bool {
	known := map[string]bool{}
	return func(s string) bool {
		if _, ok := known[s]; !ok {
			known[s] = f(s)
		}
		return known[s]
	}
}

// nameOf returns the name of the ExternalSecret of a field manager. A hashed manager does not contain the name: it is
// looked up by its mark, and without a mark among all ExternalSecrets of the namespace. It returns false if no name
// is found; the manager then counts as existing and younger.
func (c *peers) nameOf(ctx context.Context, manager string, byMark map[string]string) (string, bool) {
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

// olderThan reports whether a was created before b. Within the same second, the smaller uid counts as older.
func olderThan(a, b *v1alpha1.ExternalSecret) bool {
	if a.UID == b.UID {
		return false
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
