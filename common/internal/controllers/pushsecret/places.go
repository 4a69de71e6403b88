package pushsecret

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// identifyTimeout is how long a push waits for a client to report its identity.
	identifyTimeout = 5 * time.Second
	// identifyAgain is how long a client that could not report its identity is not asked again.
	identifyAgain = 10 * time.Minute
	// placesFor is how long the identity of a store is kept to which nothing is pushed.
	placesFor = 25 * time.Hour
)

// places caches the identities of stores: where they keep their secrets, as reported by their clients. The zero value
// is ready to use.
type places struct {
	mu    sync.Mutex
	known map[kit.Place]cachedIdentity
}

// cachedIdentity is the cached identity of a store.
type cachedIdentity struct {
	// Identity is zero if the client could not report it.
	provider.Identity

	generation int64
	at         time.Time
}

// useOf returns the use of a store by the objects of a namespace, whatever their tenant.
func useOf(s provider.Object, namespace string) kit.Place {
	return kit.Place{Store: s.GetUID(), Credentials: resolve.CredentialsNamespace(s, namespace)}
}

// of returns the identity of a store; zero if it is not known. It makes no call: the removal of a secret must not wait
// for servers of other tenants.
func (p *places) of(s provider.Object, namespace string) provider.Identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.known[useOf(s, namespace)]
	if is.generation != s.GetGeneration() {
		return provider.Identity{}
	}
	return is.Identity
}

// hasIdentity reports whether a store is known to have the identity to.
func (p *places) hasIdentity(s provider.Object, namespace string, to provider.Identity) bool {
	return to.Place != "" && p.of(s, namespace) == to
}

// learn asks the client of a store for its identity. Clients cache it, so this costs one call.
func (p *places) learn(ctx context.Context, s provider.Object, namespace string, c provider.Client) provider.Identity {
	use, now := useOf(s, namespace), time.Now()
	p.mu.Lock()
	was, ok := p.known[use]
	p.mu.Unlock()
	if ok && was.Place == "" && was.generation == s.GetGeneration() && now.Sub(was.at) < identifyAgain {
		return provider.Identity{}
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	is, err := provider.Identify(ctx, c)
	if err != nil && ctx.Err() == context.Canceled {
		return provider.Identity{} // A cancelled call is no answer of the client.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[kit.Place]cachedIdentity{}
	}
	maps.DeleteFunc(p.known, func(_ kit.Place, other cachedIdentity) bool { return now.Sub(other.at) > placesFor })
	p.known[use] = cachedIdentity{is, s.GetGeneration(), now}
	return is
}

// origin is a store that a Secret was read from.
type origin struct {
	resolve.Handle

	secret string
}

// origins returns the other stores of the module that Secrets of a namespace were read from, if the namespace may read
// them.
func (r storeReader) origins(ctx context.Context, d *destination, namespace string, secrets []pushed) (out []origin, err error) {
	from := map[string]string{}
	for _, s := range secrets {
		for l := range s.labels {
			if strings.HasPrefix(l, v1alpha1.StoreLabelPrefix) {
				from[l] = s.Name
			}
		}
	}
	for _, k := range r.routes.Kinds {
		if len(from) == 0 || k.Generator || k.GVK.Group != d.route.GVK.Group {
			continue
		}
		names, err := r.selected(ctx, k, namespace, &metav1.LabelSelector{})
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			key := k.Key(name, namespace)
			secret, ok := from[target.StoreLabel(k.GVK.Group, k.GVK.Kind, key.Namespace, key.Name)]
			if !ok {
				continue
			}
			ref := v1alpha1.StoreRef{APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Name: name}
			h, refusal, err := r.routes.Resolve(ctx, ref, namespace, resolve.Read)
			if err != nil {
				return nil, errors.Wrap(err, "cannot read the store that a Secret was read from")
			}
			if refusal == nil {
				out = append(out, origin{h, secret})
			}
		}
	}
	return out, nil
}

// circle returns an error if a Secret that a task pushes was read from the place that it is pushed to, as far as
// identities are known.
func (r *runner) circle(ctx context.Context, t *task) error {
	if t.identity.Place == "" {
		return nil
	}
	for _, from := range t.origins {
		loader := r.pool.Loader(from.Kind, from.Store, from.CredentialsNamespace)
		c, err := connect(ctx, loader, r.timeout)
		if err != nil {
			continue // Nothing can be read from it now.
		}
		if r.places.learn(ctx, from.Store, t.namespace, c).Overlaps(t.identity) {
			return circular(from.secret, from.GVK.Kind+" \""+from.Key.Name+"\", which reads the same place as this store")
		}
	}
	return nil
}

// circular returns the error for a Secret that was read from the place that it is pushed to.
func circular(secret, from string) error {
	return provider.NewError(provider.Invalid, "Secret %q was read from %s, and cannot be pushed back to it; push another Secret, or push to another store", secret, from)
}
