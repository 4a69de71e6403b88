package externalsecret

import (
	"context"
	"slices"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/templatesource"
)

// templateStates are the resourceVersions of the template sources of one object, as last seen; empty for a source that does
// not exist. A source that has changed since is left out.
type templateStates struct {
	mu sync.Mutex
	// Bound: the template sources of one spec; keep drops all others.
	m map[render.TextRef]string
}

// get returns the version of a source; false if it is not known.
func (t *templateStates) get(ref render.TextRef) (version string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	version, known = t.m[ref]
	return version, known
}

// set records the version of a source, before its watch starts.
func (t *templateStates) set(ref render.TextRef, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[render.TextRef]string{}
	}
	t.m[ref] = version
}

// saw records the version that was read with the templates, unless a watch has reported a change since set: it may be of
// a later version.
func (t *templateStates) saw(ref render.TextRef, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.m[ref]; known {
		t.m[ref] = version
	}
}

// changed records that a watch has reported a change of a source.
func (t *templateStates) changed(ref render.TextRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, ref)
}

// keep drops all sources unless they are all in refs. It returns false if it has dropped some.
func (t *templateStates) keep(refs []render.TextRef) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref := range t.m {
		if !slices.Contains(refs, ref) {
			t.m = nil
			return false
		}
	}
	return true
}

// versions returns the versions of sources, in order.
func (t *templateStates) versions(refs []render.TextRef) []string {
	var all []string
	for _, ref := range refs {
		version, _ := t.get(ref)
		all = append(all, version)
	}
	return all
}

// followTemplates updates the versions of an object's template sources, and watches the sources from then on. The versions
// count like labels: the status stores a hash of them, so a change while the operator was down is noticed, too.
func (r *Reconciler) followTemplates(ctx context.Context, s *subject) error {
	owner, seen := watchOwner{s.key(), true}, &s.obj.signals.templates
	if !seen.keep(s.plan.TemplateRefs) {
		r.watches.Remove(owner) // The spec no longer names some of them.
	}
	for _, ref := range s.plan.TemplateRefs {
		if _, known := seen.get(ref); known {
			continue
		}
		version, err := templatesource.Version(ctx, r.live, s.es.Namespace, ref)
		if err != nil {
			return err
		}
		seen.set(ref, version)
		r.watches.Add(templatesource.WatchRef(s.es.Namespace, ref), owner, version, func() {
			seen.changed(ref)
			r.enqueue(owner.key, queue.High)
		})
	}
	return nil
}

// readTemplates returns the templates of the sources. A source that does not exist is left out. The caller calls release when it
// no longer needs them.
func readTemplates(ctx context.Context, from *room.Reader, s *subject) (all render.TemplateSources, release func(), err error) {
	if len(s.plan.TemplateRefs) == 0 {
		return nil, func() {}, nil
	}
	held, err := from.Hold(ctx, s.es.Namespace, templatesource.Room(s.plan.TemplateRefs))
	if err != nil {
		return nil, nil, err
	}
	read := false
	defer func() {
		if !read { // It has failed, or panics.
			held.Release()
		}
	}()
	all, err = templatesource.ReadAll(ctx, held, s.es.Namespace, s.plan.TemplateRefs, func(ref render.TextRef, all map[string]string, version string) map[string]string {
		s.obj.signals.templates.saw(ref, version)
		return render.KeysUsed(s.es, ref, all)
	})
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for _, lines := range all {
		for key, text := range lines {
			size += len(key) + len(text)
		}
	}
	held.Keep(int64(size))
	read = true
	return all, held.Release, nil
}
