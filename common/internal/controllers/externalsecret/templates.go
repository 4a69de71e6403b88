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

// templateOwner owns the watches of the ConfigMaps and Secrets that hold templates of an ExternalSecret.
type templateOwner types.NamespacedName

// templateState is what is known of one of them.
type templateState struct {
	// version is its resourceVersion, empty if it does not exist.
	version string
	// told counts how often a watch has shown another version, seen how often it had when this one was
	// asked for.
	told, seen int
}

// stale reports whether there is a later version.
func (s templateState) stale() bool { return s.told != s.seen }

// templateStates are the template sources of one object, as they were seen last.
type templateStates struct {
	mu sync.Mutex
	m  map[render.TextRef]templateState
}

// get returns the states; they are not changed any more.
func (t *templateStates) get() map[render.TextRef]templateState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m
}

// set notes what is known of the sources now. What a watch has told since the states were read is not forgotten.
func (t *templateStates) set(states map[render.TextRef]templateState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, s := range states {
		s.told = max(s.told, t.m[ref].told)
		states[ref] = s
	}
	t.m = states
}

// saw notes the versions that were read: what the status says was read is what was read. What a watch has shown
// meanwhile may be later still.
func (t *templateStates) saw(versions map[render.TextRef]string) {
	t.change(func(ref render.TextRef, s *templateState) {
		if v, ok := versions[ref]; ok {
			s.version = v
		}
	})
}

// outdate notes that a watch has shown another version of a source.
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

// A templateReader reads and follows template sources.
type templateReader struct {
	// client does not read from a cache.
	client  client.Client
	watches *watch.Watches
	enqueue func(key types.NamespacedName, priority int)
}

// follow brings the versions of the sources of an object up to date, and watches them from then on. They count like
// labels: the status remembers what they were at the last refresh, so that a change while the operator did not run is
// seen, too.
func (r templateReader) follow(ctx context.Context, es *v1alpha1.ExternalSecret, refs []render.TextRef, seen *templateStates) error {
	owner := templateOwner(client.ObjectKeyFromObject(es))
	states := seen.get()
	for ref := range states {
		if !slices.Contains(refs, ref) {
			r.watches.Remove(owner) // It is named no more.
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

// read returns the templates of the sources; one that does not exist is left out.
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
