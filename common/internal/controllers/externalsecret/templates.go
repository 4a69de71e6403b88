package externalsecret

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/templatesource"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

// templateOwner is the owner of the watches of the ConfigMaps and Secrets that hold the templates of an
// ExternalSecret.
type templateOwner types.NamespacedName

// templateState is the known state of one template source.
type templateState struct {
	// version is the resourceVersion of the source; empty if it does not exist.
	version string
	// told counts the changes that a watch has reported; seen is the value of told when version was read.
	told, seen int
}

// stale reports whether the source has changed since version was read.
func (s templateState) stale() bool { return s.told != s.seen }

// templateStates are the template sources of one object, as last seen.
type templateStates struct {
	mu sync.Mutex
	m  map[render.TextRef]templateState
}

// get returns the states. The map is never changed afterwards.
func (t *templateStates) get() map[render.TextRef]templateState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m
}

// set replaces the states. Changes that a watch has reported since get are kept.
func (t *templateStates) set(states map[render.TextRef]templateState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, s := range states {
		s.told = max(s.told, t.m[ref].told)
		states[ref] = s
	}
	t.m = states
}

// saw records the versions that were read with the templates. A watch may already have reported later ones, so told
// and seen stay.
func (t *templateStates) saw(versions map[render.TextRef]string) {
	t.change(func(ref render.TextRef, s *templateState) {
		if v, ok := versions[ref]; ok {
			s.version = v
		}
	})
}

// outdate records that a watch has reported a change of a source.
func (t *templateStates) outdate(changed render.TextRef) {
	t.change(func(ref render.TextRef, s *templateState) {
		if ref == changed {
			s.told++
		}
	})
}

func (t *templateStates) change(f func(render.TextRef, *templateState)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := maps.Clone(t.m)
	for ref, s := range states {
		f(ref, &s)
		states[ref] = s
	}
	t.m = states
}

// versions returns the versions of sources, in order.
func (t *templateStates) versions(refs []render.TextRef) []string {
	states := t.get()
	var all []string
	for _, ref := range refs {
		all = append(all, states[ref].version)
	}
	return all
}

// A templateReader reads and watches template sources.
type templateReader struct {
	// client does not read from a cache.
	client  client.Client
	watches *watch.Watches
	enqueue func(key types.NamespacedName, priority int)
}

// follow updates the versions of an object's template sources, and watches the sources from then on. The versions
// count like labels: the status stores a hash of them, so a change while the operator was down is noticed, too.
func (r templateReader) follow(ctx context.Context, es *v1alpha1.ExternalSecret, refs []render.TextRef, seen *templateStates) error {
	owner := templateOwner(client.ObjectKeyFromObject(es))
	states := seen.get()
	for ref := range states {
		if !slices.Contains(refs, ref) {
			r.watches.Remove(owner) // The spec no longer names it.
			seen.set(nil)
			states = nil
			break
		}
	}
	next := make(map[render.TextRef]templateState, len(refs))
	for _, ref := range refs {
		if s, ok := states[ref]; ok && !s.stale() {
			next[ref] = s
			continue
		}
		version, err := templatesource.Version(ctx, r.client, es.Namespace, ref)
		if err != nil {
			return err
		}
		next[ref] = templateState{version: version, told: states[ref].told, seen: states[ref].told}
	}
	seen.set(next)
	for ref, s := range next {
		if old, ok := states[ref]; !ok || old.stale() {
			r.watches.Add(templatesource.WatchRef(es.Namespace, ref), owner, s.version, func() {
				seen.outdate(ref)
				r.enqueue(types.NamespacedName(owner), queue.High)
			})
		}
	}
	return nil
}

// read returns the templates of the sources. A source that does not exist is left out.
func (r templateReader) read(ctx context.Context, es *v1alpha1.ExternalSecret, refs []render.TextRef, seen *templateStates) (render.Texts, error) {
	texts, versions := render.Texts{}, map[render.TextRef]string{}
	for _, ref := range refs {
		all, version, err := templatesource.Read(ctx, r.client, es.Namespace, ref)
		if err != nil {
			return nil, err
		}
		if version != "" {
			texts[ref] = render.TextsUsed(es, ref, all)
		}
		versions[ref] = version
	}
	seen.saw(versions)
	return texts, nil
}
