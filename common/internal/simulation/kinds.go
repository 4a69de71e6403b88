package simulation

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

var errAbsent = errors.New("the object to which the uid or resourceVersion belongs does not exist")

// Kinds are the Kinds that an APIServer serves.
type Kinds struct {
	byKind map[schema.GroupVersionKind]*kind
}

// kind defines how an API server handles the objects of a Kind.
type kind struct {
	gvk      schema.GroupVersionKind
	resource schema.GroupResource
	main     *managedfields.FieldManager
	// status is nil for a Kind without that subresource.
	status *managedfields.FieldManager
	// merged caches the results of merge, because the runs of an exploration repeat the requests of each other.
	mu     sync.Mutex
	merged map[merge]*Object
}

// merge is a request to apply a patch to an object.
type merge struct {
	object, patch        uint64
	subresource, manager string
	force                bool
	time                 int64 // in seconds, as managedFields have it
}

// maxMerged limits the memory for results of merge.
const maxMerged = 10000

// NewKinds returns the Kinds Secret and Namespace, and those of CRDs.
func NewKinds(crds ...[]byte) (*Kinds, error) {
	ks := &Kinds{map[schema.GroupVersionKind]*kind{}}
	for kindName, plural := range map[string]string{"Secret": "secrets", "Namespace": "namespaces"} {
		k := &kind{gvk: corev1.SchemeGroupVersion.WithKind(kindName), resource: schema.GroupResource{Resource: plural}}
		var err error
		k.main, err = managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), sameVersion{}, sameVersion{}, sameVersion{}, k.gvk, k.gvk.GroupVersion(), "", nil)
		if err != nil {
			return nil, err
		}
		ks.byKind[k.gvk] = k
	}
	for _, raw := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			return nil, err
		}
		k, err := kindOfCRD(crd)
		if err != nil {
			return nil, err
		}
		ks.byKind[k.gvk] = k
	}
	return ks, nil
}

func kindOfCRD(crd *apiextensionsv1.CustomResourceDefinition) (*kind, error) {
	version := crd.Spec.Versions[0]
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
	k := &kind{gvk: gvk, resource: schema.GroupResource{Group: gvk.Group, Resource: crd.Spec.Names.Plural}}
	raw, err := json.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	s := &spec.Schema{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	s.Properties["metadata"] = *spec.RefSchema("#/components/schemas/ObjectMeta")
	s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	meta := &spec.Schema{}
	if err := json.Unmarshal([]byte(objectMeta), meta); err != nil {
		return nil, err
	}
	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.Kind: s, "ObjectMeta": meta}, false)
	if err != nil {
		return nil, err
	}
	reset := func(fields ...string) map[fieldpath.APIVersion]fieldpath.Filter {
		set := fieldpath.NewSet()
		for _, f := range fields {
			set.Insert(fieldpath.MakePathOrDie(f))
		}
		return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gvk.GroupVersion().String()): fieldpath.NewExcludeSetFilter(set)}
	}
	for sub, m := range map[string]struct {
		into  **managedfields.FieldManager
		reset map[fieldpath.APIVersion]fieldpath.Filter
	}{"": {&k.main, reset("status")}, "status": {&k.status, reset("metadata", "spec")}} {
		*m.into, err = managedfields.NewDefaultCRDFieldManager(converter, sameVersion{}, sameVersion{}, sameVersion{}, gvk, gvk.GroupVersion(), sub, m.reset)
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// objectMeta is the schema of metadata, with the fields that matter for merging.
const objectMeta = `{"type":"object","properties":{
 "name":{"type":"string"},"namespace":{"type":"string"},"generateName":{"type":"string"},"uid":{"type":"string"},"resourceVersion":{"type":"string"},
 "selfLink":{"type":"string"},"generation":{"type":"integer"},"creationTimestamp":{"type":"string"},"deletionTimestamp":{"type":"string"},"deletionGracePeriodSeconds":{"type":"integer"},
 "labels":{"type":"object","additionalProperties":{"type":"string"}},"annotations":{"type":"object","additionalProperties":{"type":"string"}},
 "finalizers":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
 "managedFields":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"atomic"},
 "ownerReferences":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["uid"],"items":{"type":"object","x-kubernetes-map-type":"atomic","required":["uid"],"properties":{
  "apiVersion":{"type":"string"},"kind":{"type":"string"},"name":{"type":"string"},"uid":{"type":"string"},"controller":{"type":"boolean"},"blockOwnerDeletion":{"type":"boolean"}}}}}}`

// sameVersion converts for Kinds with a single version.
type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error { return errors.New("there is one version only") }

func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (sameVersion) Default(runtime.Object) {}

func (sameVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	o := &Object{Object: map[string]any{}}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

func (k *kind) manager(subresource string) *managedfields.FieldManager {
	if subresource == "status" {
		return k.status
	}
	return k.main
}

// merge returns an object after a patch is applied to it. digest is the digest of the object.
func (k *kind) merge(live *Object, digest uint64, config *Object, p Patch) (*Object, error) {
	id := merge{digest, join(config.GetNamespace(), config.GetName(), string(p.Data)), p.Subresource, p.Manager, p.Force, time.Now().Unix()}
	k.mu.Lock()
	is := k.merged[id]
	k.mu.Unlock()
	if is != nil {
		return is.DeepCopy(), nil
	}
	merged, err := k.manager(p.Subresource).Apply(live.DeepCopy(), config, p.Manager, p.Force)
	if err != nil {
		return nil, err
	}
	is = merged.(*Object)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.merged == nil || len(k.merged) >= maxMerged {
		k.merged = map[merge]*Object{}
	}
	k.merged[id] = is.DeepCopy()
	return is, nil
}

func (k *kind) empty(key Key) *Object {
	o := &Object{Object: map[string]any{}}
	o.SetGroupVersionKind(k.gvk)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// complement sets the defaults of a CRD that an object lacks: those of the status.
func (k *kind) complement(o *Object) {
	if k.status != nil && o.Object["status"] == nil {
		o.Object["status"] = map[string]any{"observedGeneration": int64(-1)}
	}
}

// prepare removes fields that a create request cannot set, and sets defaults.
func (k *kind) prepare(o *Object) {
	o.SetUID("")
	o.SetDeletionTimestamp(nil)
	if k.status != nil {
		delete(o.Object, "status")
		return
	}
	if t, _ := o.Object["type"].(string); t == "" && k.gvk.Kind == "Secret" {
		o.Object["type"] = string(corev1.SecretTypeOpaque)
	}
}

// restrict restores the fields that a request cannot change.
func (k *kind) restrict(was, is *Object, subresource string) {
	if k.status == nil {
		return
	}
	keep := func(from *Object, name string) {
		if v, ok := from.Object[name]; ok {
			is.Object[name] = runtime.DeepCopyJSONValue(v)
			return
		}
		delete(is.Object, name)
	}
	if subresource != "status" {
		keep(was, "status")
		return
	}
	managed := is.GetManagedFields()
	keep(was, "spec")
	keep(was, "metadata")
	is.SetManagedFields(managed)
}

// complete sets the fields that only the server sets.
func (k *kind) complete(was, is *Object) {
	is.SetUID(was.GetUID())
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	is.SetDeletionTimestamp(was.GetDeletionTimestamp())
	is.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	is.SetResourceVersion(was.GetResourceVersion())
	is.SetGeneration(was.GetGeneration())
	if k.status != nil && !equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"]) {
		is.SetGeneration(was.GetGeneration() + 1)
	}
	if k.gvk.Kind == "Secret" {
		if t, _ := is.Object["type"].(string); t == "" {
			is.Object["type"] = string(corev1.SecretTypeOpaque)
		}
		if held, _ := is.Object["data"].(map[string]any); len(held) == 0 {
			delete(is.Object, "data")
		}
	}
}

// validate returns an error for a forbidden change of a Secret.
func (k *kind) validate(was, is *Object) error {
	if k.status != nil {
		return nil
	}
	var errs field.ErrorList
	if was.Object["type"] != is.Object["type"] {
		errs = append(errs, field.Invalid(field.NewPath("type"), is.Object["type"], "field is immutable"))
	}
	if was.Object["immutable"] == true && (is.Object["immutable"] != true || !equality.Semantic.DeepEqual(was.Object["data"], is.Object["data"])) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	if len(errs) > 0 {
		return kerrors.NewInvalid(k.gvk.GroupKind(), is.GetName(), errs)
	}
	return nil
}

// digest returns a hash of the JSON of a value.
func digest(v any) uint64 {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // Objects are JSON.
	}
	h := fnv.New64a()
	_, _ = h.Write(raw)
	return h.Sum64()
}

// join returns a hash of texts.
func join(parts ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(parts, "\x00")))
	return h.Sum64()
}
