package externalsecret

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/templatesource"
)

// textOwner owns the watches of the ConfigMaps and Secrets in which an ExternalSecret keeps templates.
type textOwner types.NamespacedName

// textState is what is known of one of them.
type textState struct {
	// version is its resourceVersion, empty if it does not exist.
	version string
	// told counts how often a watch has shown another version, seen how often it had when this one was
	// asked for.
	told, seen int
}

// stale reports whether there is a later version.
func (s textState) stale() bool { return s.told != s.seen }

// follow brings the versions of the sources of templates up to date, and watches them from then on. They
// count like labels: the status remembers what they were at the last refresh, so that a change while the
// operator did not run is seen, too.
func (p *pass) follow(ctx context.Context) error {
	owner := textOwner(client.ObjectKeyFromObject(p.es))
	states := p.obj.textStates()
	for ref := range states {
		if !slices.Contains(p.plan.Texts, ref) {
			p.watches.Remove(owner) // It is named no more.
			p.obj.setTexts(nil)
			states = nil
			break
		}
	}
	next := make(map[render.TextRef]textState, len(p.plan.Texts))
	for _, ref := range p.plan.Texts {
		if s, ok := states[ref]; ok && !s.stale() {
			next[ref] = s
			continue
		}
		version, err := templatesource.Version(ctx, p.client, p.es.Namespace, ref)
		if err != nil {
			return err
		}
		next[ref] = textState{version: version, told: states[ref].told, seen: states[ref].told}
	}
	p.obj.setTexts(next)
	for ref := range next {
		if s, ok := states[ref]; !ok || s.stale() {
			p.watchText(owner, ref, next[ref].version)
		}
	}
	return nil
}

func (p *pass) watchText(owner textOwner, ref render.TextRef, version string) {
	obj := p.obj
	p.watches.Add(templatesource.WatchRef(p.es.Namespace, ref), owner, version, func() {
		obj.staleText(ref)
		p.enqueue(types.NamespacedName(owner), queue.High)
	})
}

// texts reads the templates that are kept elsewhere; one that does not exist is left out.
func (p *pass) texts(ctx context.Context) (render.Texts, error) {
	read := render.Texts{}
	versions := map[render.TextRef]string{}
	for _, ref := range p.plan.Texts {
		all, version, err := templatesource.Read(ctx, p.client, p.es.Namespace, ref)
		if err != nil {
			return nil, err
		}
		if version != "" {
			read[ref] = render.TextsUsed(p.es, ref, all)
		}
		versions[ref] = version
	}
	p.obj.sawTexts(versions)
	return read, nil
}

// metadata is the hash of all that lies outside of the spec and has the object refreshed.
func (p *pass) metadata() string {
	states := p.obj.textStates()
	var versions []string
	for _, ref := range p.plan.Texts {
		versions = append(versions, states[ref].version)
	}
	versions = append(versions, p.handed.versions...)
	if p.obj.contributes.Load() {
		versions = append(versions, content(p.es)) // A part knows no generation.
	}
	return metadataHash(p.es, versions...)
}

// textStates returns the sources as they were seen last; they are not changed any more.
func (o *object) textStates() map[render.TextRef]textState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.texts
}

// setTexts notes what is known of the sources now. What a watch has told since the states were read is
// not forgotten.
func (o *object) setTexts(states map[render.TextRef]textState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref, s := range states {
		s.told = max(s.told, o.texts[ref].told)
		states[ref] = s
	}
	o.texts = states
}

// sawTexts notes the versions that were read: what the status says was read is what was read. What a watch
// has shown meanwhile may be later still.
func (o *object) sawTexts(versions map[render.TextRef]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	states := maps.Clone(o.texts)
	for ref, v := range versions {
		if s, ok := states[ref]; ok {
			s.version = v
			states[ref] = s
		}
	}
	o.texts = states
}

func (o *object) staleText(ref render.TextRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.texts[ref]; ok {
		states := maps.Clone(o.texts)
		s.told++
		states[ref] = s
		o.texts = states
	}
}
