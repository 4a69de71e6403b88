package pushsecret

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	stderrors "errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// identifyTimeout is how long a push waits for a client to report where its secrets are stored.
const identifyTimeout = 5 * time.Second

// location is where a store keeps its secrets.
type location struct {
	// place is what the status records. It is a hash, because the status must not reveal an account or a server.
	place string
	// Identity is what the client reports; zero if it cannot.
	provider.Identity
	naming
}

// equal reports whether two locations, and the names there, are the same.
func (l location) equal(o location) bool {
	return l.place == o.place && l.Identity == o.Identity && l.spelled == o.spelled && maps.Equal(l.names, o.names)
}

// site identifies a remote secret by its place and name.
func (l location) site(key string) string {
	is, _ := l.name(key)
	return l.place + "/" + cmp.Or(is.Key, key)
}

// locate asks the client of a store where its secrets are stored. A store whose client does not know is a place of its own.
// Clients keep the answer, so this costs one call. An error means that the place is unknown for now.
func locate(ctx context.Context, s provider.Object, namespace string, c *provider.Link) (location, error) {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	at := location{place: ownPlace(s, namespace), naming: naming{spelled: c.HasSpellings()}}
	is, err := c.Identify(ctx)
	switch {
	case err == nil:
		at.place, at.Identity = hashOf(is.Place), is
	case errors.Is(err, stderrors.ErrUnsupported):
		err = nil
	}
	return at, err
}

// ownPlace is the place of a store whose client does not know where its secrets are stored.
func ownPlace(s provider.Object, namespace string) string {
	return hashOf(fmt.Sprintf("store %s %s", s.GetUID(), resolve.CredentialsNamespace(s, namespace)))
}

func hashOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	return hex.EncodeToString(sum[:8])
}

// open connects a task to its store. It returns an error if the pushed Secrets were read from there.
func (r *runner) open(ctx context.Context, loader *dispatch.Loader, t *task) error {
	c, err := connect(ctx, loader, r.timeout)
	if err != nil {
		return err
	}
	t.pusher.Store = c
	if t.pusher.Features, err = c.Features(); err != nil {
		return provider.Safe(err)
	}
	var unknown error
	if t.location, unknown = t.others.self.locate(ctx, t.to, t.others.unit.Namespace, c); unknown == nil {
		t.place = t.location.place
	}
	t.others.at, t.others.unknown = t.location, unknown
	return r.circle(ctx, t)
}

// locate returns where a store keeps its secrets. If the client does not know it now, this is the place in the status, or the
// store itself if the status records none; the error is why.
func (o *object) locate(ctx context.Context, d *destination, namespace string, c *provider.Link) (location, error) {
	at, err := locate(ctx, d.store, namespace, c)
	if err != nil {
		at.place = cmp.Or(d.status.Place, at.place)
		return at, err
	}
	return o.stores.move(idOf(d.status), func(was location) location {
		at.names = was.names
		return at
	}), nil
}

// move drops the entries of a store that leads to another place than before. It returns those that this object created, which
// stay.
func (t *task) move() (elsewhere []v1alpha1.PushEntryStatus) {
	was := t.to.status.Place
	if was == "" || t.location.Place == "" || was == t.location.place || was == ownPlace(t.to.store, t.others.unit.Namespace) || t.pusher.DryRun {
		return nil
	}
	jobs := slices.Clone(t.jobs)
	t.jobs = nil
	for _, j := range jobs {
		elsewhere = append(elsewhere, slices.DeleteFunc(slices.Concat(j.known, j.kept), func(e v1alpha1.PushEntryStatus) bool { return !e.Created })...)
		if j.known, j.kept = nil, nil; len(j.want) > 0 {
			t.jobs = append(t.jobs, j)
		}
	}
	return elsewhere
}

func connect(ctx context.Context, loader *dispatch.Loader, timeout time.Duration) (*provider.Link, error) {
	type made struct {
		link *provider.Link
		err  error
	}
	// The Link is valid as long as ctx, which is the context of all jobs.
	answer := make(chan made, 1)
	go func() {
		c, err := loader.Link(ctx)
		answer <- made{c, err}
	}()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-t.C:
		return nil, provider.NewError(provider.Unavailable, "the provider did not answer in time")
	case m := <-answer:
		return m.link, m.err
	}
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
// the places are known.
func (r *runner) circle(ctx context.Context, t *task) error {
	if t.location.Place == "" {
		return nil
	}
	for _, from := range t.origins {
		loader := r.pool.Loader(from.Kind, from.Store, from.CredentialsNamespace)
		c, err := connect(ctx, loader, r.timeout)
		if err != nil {
			continue // Nothing can be read from it now.
		}
		if is, err := locate(ctx, from.Store, t.others.unit.Namespace, c); err == nil && is.Overlaps(t.location.Identity) {
			return circular(from.secret, from.GVK.Kind+" \""+from.Key.Name+"\", which reads the same place as this store")
		}
	}
	return nil
}

// circular returns the error for a Secret that was read from the place that it is pushed to.
func circular(secret, from string) error {
	return provider.NewError(provider.Invalid, "Secret %q was read from %s, and cannot be pushed back to it; push another Secret, or push to another store", secret, from)
}
