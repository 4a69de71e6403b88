package status

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Kind describes how to write the status of an API Kind.
type Kind[O client.Object, S any] struct {
	// New returns an empty object.
	New func() O
	// Status returns the status of an object.
	Status func(O) *S
	// Except are the status fields that Patch does not write, because others own them.
	Except []string
	// Keep copies to a status what other writers own in live, such as their conditions. Nil: they own whole fields only.
	Keep func(next, live *S)
	// Overtaken reports whether another operator has written a status after seen, for work that it has done itself.
	// Then the status to write is out of date. Nil means never.
	Overtaken func(seen, live *S) bool
}

// ErrOvertaken is returned for a status that was not written because another operator has written a later one.
var ErrOvertaken = errors.New("another operator wrote the status meanwhile")

// Patch writes a status if it differs from before, the status of the object o at version. It uses a merge patch
// guarded by that resourceVersion. After a conflict it reads the object live and retries with the status alone. It
// gives up if uid or generation have changed, so that a result for an old spec does not overwrite one for the current
// spec. It returns ErrOvertaken if another operator has done work that the object o does not show.
//
// Status fields that this version does not know are kept. Patch returns the object with its new status, and false if
// it wrote nothing. c must not read from a cache.
func (k Kind[O, S]) Patch(ctx context.Context, c client.Client, o O, version string, before, next *S) (O, bool, error) {
	var none O
	if equality.Semantic.DeepEqual(before, next) {
		return none, false, nil
	}
	for {
		out := k.New()
		err := Once(ctx, c, o, version, before, next, out, k.Except...)
		if err == nil {
			return out, true, nil
		}
		if !kerrors.IsConflict(err) {
			return none, false, errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
		}
		live := k.New()
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
			return none, false, errors.Wrap(client.IgnoreNotFound(err), "cannot read the object")
		}
		if live.GetUID() != o.GetUID() || live.GetGeneration() != o.GetGeneration() {
			return none, false, nil // The event of that change enqueues the object again.
		}
		if k.Overtaken != nil && k.Overtaken(before, k.Status(live)) {
			return none, false, ErrOvertaken
		}
		if k.Keep != nil {
			k.Keep(next, k.Status(live))
		}
		before, version = k.Status(live), live.GetResourceVersion()
	}
}

// Once writes the difference between two statuses of the object o, and returns the API server's error unchanged. out
// becomes the written object. The patch is guarded by version; with an empty version only by uid. Use it where a
// conflict must not be retried, or where the object cannot be read live.
func Once(ctx context.Context, c client.Client, o client.Object, version string, before, next any, out client.Object, except ...string) error {
	guard := map[string]any{"resourceVersion": version}
	if version == "" {
		guard = map[string]any{"uid": o.GetUID()}
	}
	diff, err := difference(before, next, except)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": guard, "status": diff})
	if err != nil {
		return errors.Wrap(err, "cannot encode the status")
	}
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return c.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
}

// difference returns a merge patch between two statuses. Neither contains fields that this version does not know, so
// the patch keeps them.
func difference(before, next any, except []string) (map[string]any, error) {
	from, err := fields(before)
	if err != nil {
		return nil, err
	}
	to, err := fields(next)
	if err != nil {
		return nil, err
	}
	for _, name := range except {
		delete(from, name)
		delete(to, name)
	}
	return changedFields(from, to), nil
}

// changedFields returns a merge patch between two objects. In such a patch, a field that is absent stays as it is, at any depth.
func changedFields(from, to map[string]any) map[string]any {
	diff := map[string]any{}
	for name, v := range to {
		was, ok := from[name].(map[string]any)
		is, ok2 := v.(map[string]any)
		switch {
		case equality.Semantic.DeepEqual(from[name], v):
		case ok && ok2:
			diff[name] = changedFields(was, is)
		default:
			diff[name] = v
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			diff[name] = nil
		}
	}
	return diff
}

func fields(status any) (map[string]any, error) {
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the status")
	}
	m := map[string]any{}
	return m, errors.Wrap(json.Unmarshal(raw, &m), "cannot decode the status")
}

// Apply writes those status fields of an object that a field manager owns, by server-side apply. Fields of other
// managers are kept. out becomes the written object. It returns false if o was deleted, or replaced by another object
// of the same name.
//
// The API server does not compare uids here, so the request is guarded by the resourceVersion of o, or of a live
// read. c must not read from a cache. same reports whether the fields of this manager in out, as read live, are as the caller
// knows them; otherwise nothing is written, and the error is a conflict. Nil: they may have changed.
func Apply(ctx context.Context, c client.Client, kind string, o client.Object, manager string, fields any, out client.Object, same func() bool) (bool, error) {
	for version := o.GetResourceVersion(); ; version = out.GetResourceVersion() {
		body, err := json.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
			"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace(), "resourceVersion": version},
			"status":   fields,
		})
		if err != nil {
			return false, errors.Wrap(err, "cannot encode the status")
		}
		out.SetNamespace(o.GetNamespace())
		out.SetName(o.GetName())
		err = c.Status().Patch(ctx, out, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager), client.ForceOwnership)
		if !kerrors.IsConflict(err) {
			return err == nil, errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
		}
		conflict := err
		switch err := c.Get(ctx, client.ObjectKeyFromObject(o), out); {
		case err != nil:
			return false, errors.Wrap(client.IgnoreNotFound(err), "cannot read the object")
		case out.GetUID() != o.GetUID():
			return false, nil
		case same != nil && !same():
			return false, errors.Wrap(conflict, "another process has written the status")
		}
	}
}
