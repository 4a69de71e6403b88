// Package push decides what a PushSecret writes to a store, by its spec and by the remote secret as observed. The
// decisions do no I/O; Pusher.Apply carries them out.
package push

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/pattern"
	"github.com/direct-secrets/direct-secrets/common/internal/property"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// DefaultRefreshInterval is the time between two comparisons if the spec sets none.
const DefaultRefreshInterval = time.Hour

const reverseUnicode = "ReverseUnicode"

// MaxEntries limits the remote secrets and properties that one module records in the status of an object, over all stores.
//
//limit:objects Remote secrets and properties that one PushSecret pushes to all stores of a module | `InvalidSpec`, and nothing is created.
const MaxEntries = 2000

// MaxNames limits the total length of their names, and of the names of their Secrets, in bytes.
//
//limit:objects Names of them, and of their Secrets | unit=bytes | `InvalidSpec`, and nothing is created.
const MaxNames = 256 << 10

// A Plan is a validated spec.
type Plan struct {
	// Interval is the time between two comparisons; 0 for none.
	Interval time.Duration
	// Windows are the sync windows.
	Windows windows.Windows
	// TemplateRefs are the ConfigMaps and Secrets that hold templates.
	TemplateRefs []render.TextRef

	spec  *v1alpha1.PushSecretSpec
	match []*regexp.Regexp // by dataTo
}

// NewPlan validates a spec. The error names the field and the fix.
func NewPlan(spec *v1alpha1.PushSecretSpec) (*Plan, error) {
	interval, err := spec.RefreshInterval.Interval(DefaultRefreshInterval)
	if err != nil {
		return nil, errors.Wrap(err, "spec.refreshInterval")
	}
	p := &Plan{Interval: interval, TemplateRefs: render.TemplateRefsOf(spec.Template), spec: spec}
	if p.Windows, err = windows.Parse(spec.SyncWindows); err != nil {
		return nil, errors.Wrap(err, "spec.syncWindows")
	}
	if err := checkSelector(spec.Selector); err != nil {
		return nil, err
	}
	if err := checkStoreRefs(spec.StoreRefs); err != nil {
		return nil, err
	}
	if len(spec.Data)+len(spec.DataTo) == 0 {
		return nil, errors.New("spec: nothing to push; add an entry to data or dataTo")
	}
	for i, d := range spec.Data {
		if err := checkData(d); err != nil {
			return nil, errors.Wrapf(err, "spec.data[%d]", i)
		}
	}
	for i, d := range spec.DataTo {
		re, err := checkDataTo(d)
		if err != nil {
			return nil, errors.Wrapf(err, "spec.dataTo[%d]", i)
		}
		if ref := d.StoreRef; ref != nil && !slices.ContainsFunc(spec.StoreRefs, func(r v1alpha1.PushStoreRef) bool {
			return r.LabelSelector != nil || same(*ref, v1alpha1.StoreRef{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name})
		}) {
			return nil, errors.Errorf("spec.dataTo[%d].storeRef: %s %q is not in spec.storeRefs; correct it, or add that store", i, ref.Kind, ref.Name)
		}
		p.match = append(p.match, re)
	}
	return p, render.CheckTemplate(spec.Template)
}

func checkSelector(s v1alpha1.PushSelector) error {
	switch {
	case s.GeneratorRef != nil && s.Secret != nil:
		return errors.New("spec.selector: set either secret or generatorRef")
	case s.GeneratorRef != nil && (s.GeneratorRef.Kind == "" || s.GeneratorRef.Name == ""):
		return errors.New("spec.selector.generatorRef: set kind and name")
	case s.GeneratorRef != nil:
		return nil
	case s.Secret == nil, (s.Secret.Name == "") == (s.Secret.Selector == nil):
		return errors.New("spec.selector.secret: set either name or selector")
	case s.Secret.Name != "" && len(validation.IsDNS1123Subdomain(s.Secret.Name)) > 0:
		return errors.New("spec.selector.secret.name: not the name of a Secret; use lower case letters, digits, dots and hyphens")
	}
	if _, err := metav1.LabelSelectorAsSelector(s.Secret.Selector); err != nil {
		return errors.New("spec.selector.secret.selector: invalid label selector; correct its keys, operators and values")
	}
	return nil
}

func checkStoreRefs(refs []v1alpha1.PushStoreRef) error {
	if len(refs) == 0 {
		return errors.New("spec.storeRefs is empty; name a store")
	}
	for i, r := range refs {
		if r.Kind == "" || (r.Name == "") == (r.LabelSelector == nil) {
			return errors.Errorf("spec.storeRefs[%d]: set kind, and either name or labelSelector", i)
		}
		if _, err := metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
			return errors.Errorf("spec.storeRefs[%d].labelSelector: invalid label selector; correct its keys, operators and values", i)
		}
	}
	return nil
}

func checkData(d v1alpha1.PushData) error {
	if strings.TrimSpace(d.Match.RemoteRef.RemoteKey) == "" {
		return errors.New("match.remoteRef.remoteKey is empty; name the remote secret")
	}
	if p := d.Match.RemoteRef.Property; p != "" {
		if err := checkProperty(p); err != nil {
			return errors.Wrap(err, "match.remoteRef")
		}
	}
	return errors.Wrap(checkMetadata(d.Metadata), "metadata")
}

func checkDataTo(d v1alpha1.PushDataTo) (*regexp.Regexp, error) {
	if err := render.CheckRewrite(d.Rewrite); err != nil {
		return nil, err
	}
	if err := checkMetadata(d.Metadata); err != nil {
		return nil, errors.Wrap(err, "metadata")
	}
	if d.Match == nil {
		return nil, nil
	}
	re, err := pattern.Compile(d.Match.RegExp)
	return re, errors.Wrap(err, "match.regexp")
}

// A Source is a Secret to push, after its template was applied.
type Source struct {
	Namespace, Name string
	Data            map[string][]byte
}

// A Remote is the wanted state of a remote secret: one Value without a property, or several properties.
type Remote struct {
	Target provider.Target
	Values []Value
}

// A Value is the wanted value of a remote secret, or of a property of it.
type Value struct {
	// Property is empty for the whole secret.
	Property string
	Data     []byte
	// Source is the name of the Secret that holds the value.
	Source string
	// Err is why there is no Data. The remote value then stays unchanged.
	Err error

	// field is that of the spec, and metadata is the same if it sets the metadata of the secret, too.
	field, metadata string
	// dotted is the property without the difference between dots that separate names and those in a name.
	dotted string
}

// Desire returns the wanted remote secrets of one store, sorted by key. An error is of class Invalid or Template and
// names the field; nothing must be written then.
func (p *Plan) Desire(ref v1alpha1.StoreRef, sources []Source) ([]Remote, error) {
	w := &wants{remotes: map[string]*Remote{}}
	for _, s := range sources {
		for i, d := range p.spec.Data {
			field := fmt.Sprintf("spec.data[%d]", i)
			data, err := whatData(d, s)
			key := place(d.Match.RemoteRef.RemoteKey, s)
			w.add(field, key, Value{Property: d.Match.RemoteRef.Property, Data: data, Source: s.Name, Err: err}, raw(d.Metadata))
		}
		for i, d := range p.spec.DataTo {
			if d.StoreRef != nil && !same(*d.StoreRef, ref) {
				continue
			}
			w.many(fmt.Sprintf("spec.dataTo[%d]", i), p.match[i], d, s)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	var out []Remote
	for _, key := range slices.Sorted(maps.Keys(w.remotes)) {
		out = append(out, *w.remotes[key])
	}
	return out, nil
}

// Unmatched returns an error of class NotFound for each entry of spec.dataTo for a store that matches no key of any source.
func (p *Plan) Unmatched(ref v1alpha1.StoreRef, sources []Source) (all []error) {
	for i, d := range p.spec.DataTo {
		if d.StoreRef != nil && !same(*d.StoreRef, ref) || slices.ContainsFunc(sources, func(s Source) bool { return matches(p.match[i], s) }) {
			continue
		}
		names := make([]string, len(sources))
		for j, s := range sources {
			names[j] = strconv.Quote(s.Name)
		}
		if re := p.match[i]; re != nil {
			all = append(all, provider.NewError(provider.NotFound, "spec.dataTo[%d].match.regexp: %q matches no key of Secret %s; correct it, or add the key", i, re, strings.Join(names, ", ")))
		} else {
			all = append(all, provider.NewError(provider.NotFound, "spec.dataTo[%d]: Secret %s has no keys; add one", i, strings.Join(names, ", ")))
		}
	}
	return all
}

// matches reports whether a source has a key that matches; nil matches any key.
func matches(re *regexp.Regexp, s Source) bool {
	for k := range s.Data {
		if re == nil || re.MatchString(k) {
			return true
		}
	}
	return false
}

// same reports whether two references name the same store. An empty group matches any group.
func same(a, b v1alpha1.StoreRef) bool {
	group := func(r v1alpha1.StoreRef) string { g, _, _ := strings.Cut(r.APIVersion, "/"); return g }
	return a.Kind == b.Kind && a.Name == b.Name && (group(a) == "" || group(b) == "" || group(a) == group(b))
}

func place(key string, s Source) string {
	return strings.NewReplacer("${namespace}", s.Namespace, "${name}", s.Name).Replace(key)
}

// whatData returns the value for an entry of spec.data.
func whatData(d v1alpha1.PushData, s Source) ([]byte, error) {
	if k := d.Match.SecretKey; k != "" {
		v, ok := s.Data[k]
		if !ok {
			return nil, provider.NewError(provider.NotFound, "Secret %q has no key %q; add it or correct match.secretKey", s.Name, k)
		}
		return v, nil
	}
	object := make(map[string]string, len(s.Data))
	for _, k := range slices.Sorted(maps.Keys(s.Data)) {
		v := s.Data[k]
		if !utf8.Valid(v) {
			return nil, provider.NewError(provider.Invalid, "key %q of Secret %q is not UTF-8 text, as JSON requires; set match.secretKey to push keys one by one", k, s.Name)
		}
		if d.ConversionStrategy == reverseUnicode {
			k = render.RevertKey(k)
		}
		if _, twice := object[k]; twice {
			return nil, provider.NewError(provider.Invalid, "two keys of Secret %q become %q; rename one of them", s.Name, k)
		}
		object[k] = string(v)
	}
	return render.Marshal(object)
}

// wants collects the wanted remote secrets, and the first error.
type wants struct {
	remotes map[string]*Remote
	err     error
}

func (w *wants) fail(format string, args ...any) {
	if w.err == nil {
		w.err = provider.NewError(provider.Invalid, format, args...)
	}
}

func (w *wants) add(field, key string, v Value, metadata []byte) {
	v.field, v.dotted = field, dotted(v.Property)
	if metadata != nil {
		v.metadata = field
	}
	r := w.remotes[key]
	if r == nil {
		r = &Remote{Target: provider.Target{Key: key}}
		w.remotes[key] = r
	}
	if err := r.join(Remote{Target: provider.Target{Key: key, Metadata: metadata}, Values: []Value{v}}); err != nil {
		w.fail("%s", err)
	}
}

// Join returns what two parts of a spec want of one remote secret, whose keys can differ. The error names both parts.
func (r Remote) Join(o Remote) (Remote, error) {
	r.Values = slices.Clone(r.Values)
	err := r.join(o)
	return r, err
}

func (r *Remote) join(o Remote) error {
	name := strconv.Quote(r.Target.Key)
	if o.Target.Key != r.Target.Key {
		name += ", which is also the remote secret " + strconv.Quote(o.Target.Key)
	}
	for _, v := range o.Values {
		for _, is := range r.Values {
			switch {
			case is.Property == "" && v.Property == "":
				return errors.Errorf("%s: %s already pushes to %s; remove one of them, or use ${name} in the key if several Secrets are selected", v.field, is.field, name)
			case is.Property == "" || v.Property == "":
				return errors.Errorf("%s: %s also pushes to %s, and only one of them sets a property; set a property in both, or use another key", v.field, is.field, name)
			case cmp.Or(is.dotted, dotted(is.Property)) == cmp.Or(v.dotted, dotted(v.Property)):
				return errors.Errorf("%s: %s already pushes to property %q of %s; remove one of them, or use ${name} in the key if several Secrets are selected", v.field, is.field, is.Property, name)
			}
		}
	}
	if r.Target.Metadata != nil && o.Target.Metadata != nil && !bytes.Equal(r.Target.Metadata, o.Target.Metadata) {
		return errors.Errorf("%s.metadata: %s sets different metadata for %s; set the same in both, or in one only", o.describes(), r.describes(), name)
	}
	if r.Target.Metadata == nil {
		r.Target.Metadata = o.Target.Metadata
	}
	r.Values = append(r.Values, o.Values...)
	return nil
}

// describes returns the field of the spec that sets the metadata.
func (r *Remote) describes() (field string) {
	for _, v := range r.Values {
		field = cmp.Or(field, v.metadata)
	}
	return field
}

// many adds the values of an entry of spec.dataTo.
func (w *wants) many(field string, match *regexp.Regexp, d v1alpha1.PushDataTo, s Source) {
	var kvs []render.KeyValue
	for _, k := range slices.Sorted(maps.Keys(s.Data)) {
		if match != nil && !match.MatchString(k) {
			continue
		}
		v := s.Data[k]
		if d.ConversionStrategy == reverseUnicode {
			k = render.RevertKey(k)
		}
		kvs = append(kvs, render.KeyValue{Key: k, Value: v})
	}
	before := kvs
	kvs, err := render.Rewrite(kvs, d.Rewrite, field)
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	for i, kv := range kvs {
		switch {
		case kv.Key == "":
			w.fail("%s: rewrite makes a key empty%s; correct it", field, render.Former(before, kvs, d.Rewrite, i))
		case d.RemoteKey != "":
			v := Value{Property: property.Escape(kv.Key), Data: kv.Value, Source: s.Name}
			if err := checkProperty(v.Property); err != nil {
				w.fail("%s: %s", field, err)
			}
			w.add(field, place(d.RemoteKey, s), v, raw(d.Metadata))
		default:
			w.add(field, kv.Key, Value{Data: kv.Value, Source: s.Name}, raw(d.Metadata))
		}
	}
}
