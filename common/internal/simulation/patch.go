package simulation

import (
	jsonpatch "github.com/evanphx/json-patch/v5"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Patch is a request to change an object.
type Patch struct {
	Type        types.PatchType
	Data        []byte
	Subresource string
	Manager     string
	Force       bool
}

// Patch changes an object. An apply creates a missing object.
func (s *APIServer) Patch(gvk schema.GroupVersionKind, name client.ObjectKey, p Patch) (*Object, error) {
	if p.Type == types.ApplyPatchType {
		return s.apply(gvk, name, p)
	}
	return s.change(gvk, name, p.Subresource, func(_ *kind, was *Object) (*Object, error) {
		raw, err := was.MarshalJSON()
		if err != nil {
			return nil, err
		}
		switch p.Type { //nolint:exhaustive // An apply is handled above; other types are an error.
		case types.MergePatchType:
			raw, err = jsonpatch.MergePatch(raw, p.Data)
		case types.JSONPatchType:
			var patch jsonpatch.Patch
			if patch, err = jsonpatch.DecodePatch(p.Data); err == nil {
				raw, err = patch.Apply(raw)
			}
		default:
			return nil, kerrors.NewBadRequest("the simulated API server does not know " + string(p.Type))
		}
		if err != nil {
			return nil, kerrors.NewBadRequest(err.Error())
		}
		return decode(raw)
	}, p.Manager)
}

func decode(raw []byte) (*Object, error) {
	o := &Object{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, kerrors.NewBadRequest(err.Error())
	}
	return o, nil
}

func (s *APIServer) apply(gvk schema.GroupVersionKind, name client.ObjectKey, p Patch) (*Object, error) {
	k, err := s.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	config, err := decode(p.Data)
	if err != nil {
		return nil, err
	}
	config.SetGroupVersionKind(gvk)
	key := Key{gvk.Kind, name}
	was := s.objects[key]
	if was == nil && p.Subresource != "" {
		return nil, kerrors.NewNotFound(k.resource, name.Name)
	}
	live := was
	if live == nil {
		live = k.empty(key)
	}
	config.SetNamespace(name.Namespace)
	config.SetName(name.Name)
	is, err := k.merge(live, s.digestOf(live), config, p)
	if err != nil {
		return nil, err
	}
	if was == nil {
		if is.GetUID() != "" || is.GetResourceVersion() != "" {
			return nil, kerrors.NewConflict(k.resource, name.Name, errAbsent)
		}
		k.prepare(is)
		return s.insert(key, k, is), nil
	}
	if err := guarded(k, was, is, p.Subresource); err != nil {
		return nil, err
	}
	k.restrict(was, is, p.Subresource)
	return s.replace(k, was, is)
}
