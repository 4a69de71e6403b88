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
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// identifyTimeout bounds how long a push waits for a client to tell where it leads.
	identifyTimeout = 5 * time.Second
	// identifyAgain is how long one that could not tell is not asked again.
	identifyAgain = 10 * time.Minute
	// placesFor is how long a store is remembered to which nothing is pushed.
	placesFor = 25 * time.Hour
)

// places remembers where stores lead, as far as their clients could tell. The zero places are empty.
type places struct {
	mu    sync.Mutex
	known map[concurrency.Key]lead
}

// lead is where a store leads.
type lead struct {
	// Identity is zero if it is not known.
	provider.Identity

	generation int64
	at         time.Time
}

// laneOf names a store, as it is used by objects in a namespace.
func laneOf(s provider.Object, namespace string) concurrency.Key {
	return concurrency.Key{UID: s.GetUID(), Beside: resolve.Beside(s, namespace)}
}

// of returns where a store leads; the zero Identity if that is not known. It calls nobody: who is about to remove a secret
// must not wait for the servers of others.
func (p *places) of(s provider.Object, namespace string) provider.Identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.known[laneOf(s, namespace)]
	if is.generation != s.GetGeneration() {
		return provider.Identity{}
	}
	return is.Identity
}

// leads reports whether a store is known to lead to a place.
func (p *places) leads(s provider.Object, namespace string, to provider.Identity) bool {
	return to.Place != "" && p.of(s, namespace) == to
}

// learn asks the client of a store where it leads. A client remembers it, so that this costs one call.
func (p *places) learn(ctx context.Context, s provider.Object, namespace string, c provider.Client) provider.Identity {
	lane, now := laneOf(s, namespace), time.Now()
	p.mu.Lock()
	was, ok := p.known[lane]
	p.mu.Unlock()
	if ok && was.Place == "" && was.generation == s.GetGeneration() && now.Sub(was.at) < identifyAgain {
		return provider.Identity{}
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	is, err := provider.Identify(ctx, c)
	if err != nil && ctx.Err() == context.Canceled {
		return provider.Identity{} // That says nothing of the client.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[concurrency.Key]lead{}
	}
	maps.DeleteFunc(p.known, func(_ concurrency.Key, other lead) bool { return now.Sub(other.at) > placesFor })
	p.known[lane] = lead{is, s.GetGeneration(), now}
	return is
}

// origin is a store that a Secret came from.
type origin struct {
	resolve.Handle

	secret string
}

// origins returns the other stores of the module that Secrets of a namespace came from, as far as it may read them.
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
				return nil, errors.Wrap(err, "cannot read the store that a Secret came from")
			}
			if refusal == nil {
				out = append(out, origin{h, secret})
			}
		}
	}
	return out, nil
}

// circle returns an error if a Secret that a task pushes came from the place that it is pushed to, as far as that can be
// told.
func (r *runner) circle(ctx context.Context, t *task) error {
	if t.lead.Place == "" {
		return nil
	}
	for _, from := range t.origins {
		loader := r.pool.Loader(from.Kind, from.Store, from.Beside)
		c, err := connect(ctx, loader, r.timeout)
		if err != nil {
			continue // Nothing is read from it now.
		}
		if r.places.learn(ctx, from.Store, t.object.Namespace, c).Overlaps(t.lead) {
			return circular(from.secret, from.GVK.Kind+" \""+from.Key.Name+"\", which leads to the same place as this store")
		}
	}
	return nil
}

// circular is the error where what is pushed came from where it is pushed to.
func circular(secret, from string) error {
	return provider.NewError(provider.Invalid, "Secret %q came from %s, and pushing it back would go round in circles; push another Secret, or to another place", secret, from)
}
