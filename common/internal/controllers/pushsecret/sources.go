package pushsecret

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/templatesource"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

// refs are the versions of sources.
type refs map[watch.ObjectRef]version

// version is the version of a source: its resourceVersion, and the version of the pushed values. They differ only for a
// part, which can change without its values.
type version struct{ known, pushed string }

func plain(v string) version { return version{v, v} }

func (r refs) hash() string {
	flat := make(map[string]string, len(r))
	for ref, v := range r {
		flat[ref.Resource.Resource+"/"+ref.Name+"/"+ref.Selector] = v.pushed
	}
	return watch.VersionOf(flat)
}

// versions are the versions of all sources of an object: the Secrets, and the objects that hold templates.
type versions struct {
	generation int64
	// changes is the number of changes that had been seen when the versions were read.
	changes int64
	refs    refs
	// at is the resourceVersion of a list of Secrets.
	at string
}

// sourceMemory is the state of the sources of one object. It is safe for concurrent use.
type sourceMemory struct {
	// changes counts the changes that watches have reported.
	changes atomic.Int64

	mu sync.Mutex
	// seen are the versions of the sources; nil if they must be read.
	seen *versions
	// valueRequest is the last request for values, and requestedAt when this process first saw it.
	valueRequest kit.Attempt
	requestedAt  time.Time
}

// stale records that a source has changed.
func (m *sourceMemory) stale() { m.changes.Add(1) }

// changed reports whether a source has changed since the versions were read.
func (m *sourceMemory) changed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen != nil && m.seen.changes != m.changes.Load()
}

// since returns when this process first saw a request.
func (m *sourceMemory) since(w kit.Attempt, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.valueRequest != w {
		m.valueRequest, m.requestedAt = w, now
	}
	return m.requestedAt
}

// A selection is what spec.selector of an object selects.
type selection interface {
	// readVersions adds the versions of the selected sources. It reads metadata only.
	readVersions(ctx context.Context, to *versions) error
	// room is how many bytes must be held for read.
	room() int64
	// read returns the Secrets and adds the versions read. generated is the version of the values if a generator made
	// them. An error of package provider must be fixed by a user.
	read(ctx context.Context, held *room.Held, is refs) (secrets []corev1.Secret, generated string, err error)
}

// sources reads what one object pushes.
type sources struct {
	client       client.Reader
	objects      *room.Reader
	object       *v1alpha1.PushSecret
	templateRefs []render.TextRef
	selection    selection
}

// readVersions returns the versions of the sources. It reads metadata only.
func (s *sources) readVersions(ctx context.Context, changes int64) (*versions, error) {
	v := &versions{generation: s.object.Generation, changes: changes, refs: refs{}}
	err := s.selection.readVersions(ctx, v)
	for _, t := range s.templateRefs {
		version, failed := templatesource.Version(ctx, s.client, s.object.Namespace, t)
		v.refs[templatesource.WatchRef(s.object.Namespace, t)] = plain(version)
		err = errors.Join(err, failed)
	}
	return v, errors.Wrap(err, "cannot read the versions of the Secrets to push")
}

// pushed is a Secret to push, after its template was applied.
type pushed struct {
	push.Source

	labels map[string]string
}

// content is everything to push, as read.
type content struct {
	secrets []pushed
	refs    refs
	// generated is the version of the values, if a generator made them.
	generated string
}

// load waits for room, and reads what is pushed. The caller must release the room when it no longer needs the values. known are versions read before. An error of package provider must be fixed by a user.
func (s *sources) load(ctx context.Context, known refs) (c content, held *room.Held, err error) {
	held, err = s.objects.Hold(ctx, s.object.Namespace, s.selection.room()+templatesource.Room(s.templateRefs))
	if err != nil {
		return content{}, nil, err
	}
	read := false
	defer func() {
		if !read { // It has failed, or panics.
			held.Release()
		}
	}()
	c, err = s.read(ctx, held, known)
	read = err == nil
	return c, held, err
}

// read is load with room.
func (s *sources) read(ctx context.Context, held *room.Held, known refs) (content, error) {
	c := content{refs: maps.Clone(known)}
	secrets, generated, err := s.selection.read(ctx, held, c.refs)
	if err != nil {
		return content{}, err
	}
	c.generated = generated
	templates, err := templatesource.ReadAll(ctx, held, s.object.Namespace, s.templateRefs, func(ref render.TextRef, all map[string]string, version string) map[string]string {
		c.refs[templatesource.WatchRef(s.object.Namespace, ref)] = plain(version)
		return all
	})
	if err != nil {
		return content{}, err
	}
	size := 0
	for _, from := range secrets {
		data, err := kit.Heavy(ctx, s.object.Namespace, func() (map[string][]byte, error) {
			return render.ShapeData(s.object.Spec.Template, from.Data, templates)
		})
		if err != nil {
			return content{}, err
		}
		for key, v := range data {
			size += len(key) + len(v)
		}
		switch {
		case size > maxSelected:
			return content{}, errLarge
		case ctx.Err() != nil:
			return content{}, ctx.Err()
		}
		c.secrets = append(c.secrets, pushed{push.Source{Namespace: from.Namespace, Name: from.Name, Data: data}, from.Labels})
	}
	return c, nil
}

// owner identifies the watches of one PushSecret.
type owner types.NamespacedName

// follower watches the sources of objects.
type follower struct {
	watches *watch.Watches
	// wake requeues an object.
	wake func(types.NamespacedName)
}

// versions returns the versions of the sources of an object, and watches the sources. It reads them only after a
// change.
func (f follower) versions(ctx context.Context, s *sources, m *sourceMemory) (*versions, error) {
	changes := m.changes.Load()
	m.mu.Lock()
	was := m.seen
	m.mu.Unlock()
	if was != nil && was.changes == changes && was.generation == s.object.Generation {
		return was, nil
	}
	is, err := s.readVersions(ctx, changes)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if was = m.seen; was != nil && (was.generation > is.generation || was.changes > is.changes) {
		return is, nil // Another walk over the object has read later versions.
	}
	key := client.ObjectKeyFromObject(s.object)
	if was != nil && slices.ContainsFunc(slices.Collect(maps.Keys(was.refs)), func(r watch.ObjectRef) bool { _, ok := is.refs[r]; return !ok }) {
		f.forget(key) // A source is no longer named.
	}
	m.seen = is
	for ref, version := range is.refs {
		at := version.known
		if ref.Name == "" {
			at = is.at
		}
		f.watches.AddAt(ref, owner(key), version.known, at, func() {
			m.stale()
			f.wake(key)
		})
	}
	return is, nil
}

// forget stops the watches of an object.
func (f follower) forget(key types.NamespacedName) { f.watches.Remove(owner(key)) }
