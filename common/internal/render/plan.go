// Package render turns an ExternalSecret and the remote values that it names into the keys and values of its Secret.
// It does no I/O.
package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// DefaultRefreshInterval is the time between two refreshes if the spec does not set it.
const DefaultRefreshInterval = time.Hour

// A Source is one read that a spec needs. It is comparable: equal sources are one read.
type Source struct {
	Store v1alpha1.StoreRef
	provider.Read
	// Generator is true for the values that the generator named by Store has made for the object. Then Read is empty.
	Generator bool `json:",omitempty"`
}

// A Plan holds what a valid spec needs to read.
type Plan struct {
	// Sources has no duplicates, and the order of the spec.
	Sources []Source
	// Interval is the time between two refreshes.
	Interval time.Duration
	// Target is the name of the Secret.
	Target string
	// Windows are the sync windows.
	Windows windows.Windows
	// TemplateRefs are the ConfigMaps and Secrets with templates.
	TemplateRefs []TextRef
}

// Stores returns the stores that the plan reads, without duplicates.
func (p Plan) Stores() []v1alpha1.StoreRef {
	var refs []v1alpha1.StoreRef
	for _, s := range p.Sources {
		if !slices.Contains(refs, s.Store) {
			refs = append(refs, s.Store)
		}
	}
	return refs
}

// isTarget reports whether it is the object with a TargetName.
func (r TextRef) isTarget(name string) bool {
	if r.Secret {
		return name == r.Name
	}
	return name == v1alpha1.ConfigMapTarget+r.Name
}

// NewPlan validates a spec and returns its plan. The error names the field and the fix.
func NewPlan(es *v1alpha1.ExternalSecret) (Plan, error) {
	interval, err := es.Spec.RefreshInterval.Interval(DefaultRefreshInterval)
	if err != nil {
		return Plan{}, errors.Wrap(err, "spec.refreshInterval")
	}
	p := Plan{Interval: interval, Target: es.TargetName(), TemplateRefs: templateRefsOf(es.Spec.Target.Template)}
	if name := cmp.Or(es.Spec.Target.Name, es.Name); len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Plan{}, errors.Errorf("spec.target.name: %q cannot be the name of a Secret: %s", name, validation.IsDNS1123Subdomain(name)[0])
	}
	if err := unsupported(es); err != nil {
		return Plan{}, err
	}
	if p.Windows, err = windows.Parse(es.Spec.SyncWindows); err != nil {
		return Plan{}, errors.Wrap(err, "spec.syncWindows")
	}
	if len(es.Spec.Data)+len(es.Spec.DataFrom) == 0 {
		return Plan{}, errors.New("spec: nothing to read; add an entry to data or dataFrom")
	}
	for i, e := range es.Spec.DataFrom {
		if err := checkMany(storeOfDataFrom(es, e), e); err != nil {
			return Plan{}, errors.Wrapf(err, "spec.dataFrom[%d]", i)
		}
	}
	seen := map[string]int{}
	for i, e := range es.Spec.Data {
		if msgs := validation.IsConfigMapKey(e.SecretKey); len(msgs) > 0 {
			return Plan{}, errors.Errorf("spec.data[%d].secretKey: %q cannot be a key of a Secret; use letters, digits, '-', '_' and '.'", i, e.SecretKey)
		}
		if j, twice := seen[e.SecretKey]; twice {
			return Plan{}, errors.Errorf("spec.data[%d].secretKey: %q is already filled by spec.data[%d]; remove one of them", i, e.SecretKey, j)
		}
		seen[e.SecretKey] = i
		if err := check(storeOfData(es, e), "remoteRef", e.RemoteRef); err != nil {
			return Plan{}, errors.Wrapf(err, "spec.data[%d]", i)
		}
	}
	p.Sources = Sources(es)
	return p, nil
}

// Sources returns the reads that a spec needs as in a Plan. The spec can be invalid: it compiles no expression, so that an index of a
// cache can use it.
func Sources(es *v1alpha1.ExternalSecret) (all []Source) {
	seen := map[Source]bool{}
	add := func(ref *v1alpha1.StoreRef, s Source) {
		if ref == nil {
			return
		}
		if s.Store = *ref; !seen[s] {
			seen[s], all = true, append(all, s)
		}
	}
	for _, e := range es.Spec.DataFrom {
		switch {
		case generatorOf(e) != nil:
			add(generatorOf(e), Source{Generator: true})
		case e.Extract != nil:
			add(storeOfDataFrom(es, e), Source{Read: provider.Read{Ref: RefOf(*e.Extract)}})
		case e.Find != nil:
			add(storeOfDataFrom(es, e), Source{Read: provider.Read{Search: searchOf(*e.Find)}})
		}
	}
	for _, e := range es.Spec.Data {
		add(storeOfData(es, e), Source{Read: provider.Read{Ref: RefOf(e.RemoteRef)}})
	}
	return all
}

func checkMany(ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) error {
	if g := generatorOf(e); g != nil {
		if g.Kind == "" || g.Name == "" {
			return errors.New("sourceRef.generatorRef: kind or name is empty; set both")
		}
		return nil
	}
	if e.Extract != nil {
		return check(ref, "extract", *e.Extract)
	}
	s := searchOf(*e.Find)
	if s == (provider.Search{}) {
		return errors.New("find is empty; set path, name or tags")
	}
	if _, err := s.Query(); err != nil {
		return err
	}
	return checkStore(ref)
}

// check checks the read of a field of an entry.
func check(ref *v1alpha1.StoreRef, field string, r v1alpha1.RemoteRef) error {
	if strings.TrimSpace(r.Key) == "" {
		return errors.Errorf("%s.key is empty; name the remote secret", field)
	}
	return checkStore(ref)
}

func checkStore(ref *v1alpha1.StoreRef) error {
	if ref == nil {
		return errors.New("no store to read from; set spec.storeRef or sourceRef.storeRef")
	}
	if ref.Kind == "" || ref.Name == "" {
		return errors.New("storeRef: kind or name is empty; set both")
	}
	return nil
}

// generatorOf returns the generator of an entry; nil if it reads a store.
func generatorOf(e v1alpha1.DataFromEntry) *v1alpha1.StoreRef {
	if e.SourceRef == nil {
		return nil
	}
	return e.SourceRef.GeneratorRef
}

func generatedBy(generator v1alpha1.StoreRef) Source {
	return Source{Store: generator, Generator: true}
}

// GeneratorKey returns the key under which the status lists the values of a generator.
func GeneratorKey(ref v1alpha1.StoreRef) string { return ref.Kind + "/" + ref.Name }

// Generators returns the generators whose values the plan needs, each once.
func (p Plan) Generators() []v1alpha1.StoreRef {
	var refs []v1alpha1.StoreRef
	for _, s := range p.Sources {
		if s.Generator {
			refs = append(refs, s.Store)
		}
	}
	return refs
}

// RefOf returns the read for a remoteRef. The property is extracted later, so that ten properties of one secret need
// one read.
func RefOf(r v1alpha1.RemoteRef) provider.Ref {
	return provider.Ref{Key: r.Key, Version: r.Version, Metadata: r.MetadataPolicy == metadataFetch}
}

func searchOf(f v1alpha1.Find) provider.Search {
	name := ""
	if f.Name != nil {
		name = f.Name.RegExp
	}
	return provider.NewSearch(f.Path, name, f.Tags)
}

func storeOfData(es *v1alpha1.ExternalSecret, e v1alpha1.DataEntry) *v1alpha1.StoreRef {
	if e.SourceRef != nil {
		return &e.SourceRef.StoreRef
	}
	return es.Spec.StoreRef
}

func storeOfDataFrom(es *v1alpha1.ExternalSecret, e v1alpha1.DataFromEntry) *v1alpha1.StoreRef {
	if e.SourceRef != nil && e.SourceRef.StoreRef != nil {
		return e.SourceRef.StoreRef
	}
	return es.Spec.StoreRef
}

func sourceAt(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) Source {
	return Source{Store: *ref, Read: provider.Read{Ref: RefOf(rr)}}
}

// Required reports whether the object is out of sync without a source, because an entry that is not optional uses it.
func Required(es *v1alpha1.ExternalSecret, s Source) bool {
	return slices.ContainsFunc(es.Spec.Data, func(e v1alpha1.DataEntry) bool {
		ref := storeOfData(es, e)
		return !e.Optional && ref != nil && sourceAt(ref, e.RemoteRef) == s
	}) || slices.ContainsFunc(es.Spec.DataFrom, func(e v1alpha1.DataFromEntry) bool {
		ref := storeOfDataFrom(es, e)
		switch {
		case ref == nil, e.Optional:
			return false
		case e.Find != nil:
			return Source{Store: *ref, Read: provider.Read{Search: searchOf(*e.Find)}} == s
		}
		return e.Extract != nil && sourceAt(ref, *e.Extract) == s
	})
}
