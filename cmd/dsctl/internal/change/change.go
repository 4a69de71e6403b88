// Package change decides which objects `dsctl refresh`, `suspend` and `resume` change, and how. It makes no
// requests.
package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Target is an object named on the command line.
type Target struct {
	Kind snapshot.Kind
	Name string
}

// ParseTarget parses KIND/NAME, or the NAME of an ExternalSecret. It accepts only Kinds for which ok is true.
func ParseTarget(kinds []snapshot.Kind, arg string, ok func(snapshot.Kind) bool) (Target, error) {
	kind, name, both := strings.Cut(arg, "/")
	if !both {
		kind, name = snapshot.ExternalSecret, arg
	}
	if name == "" {
		return Target{}, fmt.Errorf("%q has no name: write KIND/NAME", arg)
	}
	for _, k := range kinds {
		switch {
		case !k.Named(kind):
		case !ok(k):
			return Target{}, fmt.Errorf("%s: this command does not support the Kind %s", arg, k.Kind)
		default:
			return Target{Kind: k, Name: name}, nil
		}
	}
	return Target{}, fmt.Errorf("%s: the cluster has no Kind %q of direct-secrets", arg, kind)
}

// CanRefresh reports whether a Kind has refresh requests. The cluster Kinds pass them on to the objects that
// they create.
func CanRefresh(k snapshot.Kind) bool { return requestField(k) != nil }

func requestField(k snapshot.Kind) []string {
	if k.Group != v1alpha1.Group {
		return nil
	}
	return map[string][]string{
		snapshot.ExternalSecret:        {"metadata", "annotations"},
		snapshot.PushSecret:            {"metadata", "annotations"},
		snapshot.ClusterExternalSecret: {"spec", "externalSecretMetadata", "annotations"},
		snapshot.ClusterPushSecret:     {"spec", "pushSecretMetadata", "annotations"},
	}[k.Kind]
}

// CanSuspend reports whether a Kind can be suspended. For a cluster Kind, this suspends the objects that it
// creates.
func CanSuspend(k snapshot.Kind) bool { return suspendField(k) != nil }

func suspendField(k snapshot.Kind) []string {
	if k.Group != v1alpha1.Group {
		return nil
	}
	return map[string][]string{
		snapshot.ExternalSecret:        {"spec"},
		snapshot.PushSecret:            {"spec"},
		snapshot.ClusterExternalSecret: {"spec", "externalSecretSpec"},
		snapshot.ClusterPushSecret:     {"spec", "pushSecretSpec"},
	}[k.Kind]
}

// errMade is the error for an object that a cluster Kind has created, which would revert any change of its
// spec.
var errMade = errors.New("a cluster Kind created it and reverts changes of its spec")

// SuspendPatch returns the merge patch that suspends or resumes an object, or nil if nothing changes. Resuming
// removes the field, because it has no default.
func SuspendPatch(o *snapshot.Object, suspend bool) ([]byte, error) {
	if _, made := o.Meta.Annotations[v1alpha1.FanOutAnnotation]; made {
		return nil, fmt.Errorf("%s: %w: change the object that created it", o.Ref(), errMade)
	}
	if o.Suspended == suspend {
		return nil, nil
	}
	var value any
	if suspend {
		value = true
	}
	return patch(suspendField(o.Kind), "suspend", value)
}

var errSuspended = errors.New("it is suspended, so nothing is read or written; resume it first")

// RefreshPatch returns the merge patch that requests a refresh of an object. request must be a new value.
func RefreshPatch(o *snapshot.Object, request string) ([]byte, error) {
	if o.Suspended {
		return nil, fmt.Errorf("%s: %w", o.Ref(), errSuspended)
	}
	return patch(requestField(o.Kind), v1alpha1.RefreshRequestAnnotation, request)
}

// patch returns the merge patch that sets a key in a field.
func patch(field []string, key string, value any) ([]byte, error) {
	p := map[string]any{key: value}
	for _, f := range slices.Backward(field) {
		p = map[string]any{f: p}
	}
	return json.Marshal(p)
}

// Answered reports whether the operators have handled a refresh request, successfully or not. Operators of earlier versions
// record only success.
func Answered(o *snapshot.Object, request string) bool {
	switch {
	case o.ExternalSecret != nil:
		return o.ExternalSecret.Status.AttemptedRefreshRequest == request || o.ExternalSecret.Status.ObservedRefreshRequest == request
	case o.PushSecret != nil && o.PushSecret.Status.AttemptedRefreshRequest == request:
		return true
	case o.PushSecret != nil:
		for _, s := range o.PushSecret.Status.Stores {
			if s.ObservedRefreshRequest != request {
				return false
			}
		}
		return len(o.PushSecret.Status.Stores) > 0
	}
	return false
}

// UsesStore reports whether an object refers to a store or generator.
func UsesStore(o *snapshot.Object, store Target) bool {
	for _, u := range o.Uses() {
		if u.Selector == nil && u.Name == store.Name && u.Matches(store.Kind.GroupKind()) {
			return true
		}
	}
	return false
}
