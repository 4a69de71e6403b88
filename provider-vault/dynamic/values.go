package dynamic

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// partOf validates the requested part of an answer.
func partOf(t v1alpha1.ResultType) (v1alpha1.ResultType, error) {
	switch t = cmp.Or(t, v1alpha1.ResultData); t {
	case v1alpha1.ResultData, v1alpha1.ResultAuth, v1alpha1.ResultRaw:
		return t, nil
	}
	return "", provider.NewError(provider.Invalid, "spec.resultType: %q is not valid; write Data, Auth or Raw", session.Shortened(string(t)))
}

// valuesOf returns the members of a part of an answer as Secret values: strings unquoted, null as an empty
// value, and everything else as JSON.
func valuesOf(a session.Answer, part v1alpha1.ResultType) (map[string][]byte, error) {
	var all struct {
		Data json.RawMessage `json:"data"`
		Auth json.RawMessage `json:"auth"`
	}
	if len(a.Raw) > 0 && json.Unmarshal(a.Raw, &all) != nil {
		return nil, provider.NewError(provider.Unavailable, "the response of Vault cannot be read")
	}
	raw := map[v1alpha1.ResultType]json.RawMessage{
		v1alpha1.ResultData: all.Data, v1alpha1.ResultAuth: all.Auth, v1alpha1.ResultRaw: a.Raw,
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw[part], &members); err != nil || len(members) == 0 {
		return nil, provider.NewError(provider.Invalid, "spec.resultType: the response of Vault has no %s; %s", strings.ToLower(string(part)), insteadOf(part, a))
	}
	values := map[string][]byte{}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if len(validation.IsConfigMapKey(key)) > 0 {
			return nil, provider.NewError(provider.Invalid, "spec.path: the response of Vault has the key %q, which is not valid in a Secret", session.Shortened(key))
		}
		values[key] = textOf(members[key])
	}
	return values, nil
}

// textOf returns a member as a Secret value.
func textOf(member json.RawMessage) []byte {
	var s *string
	switch err := json.Unmarshal(member, &s); {
	case err != nil:
		return member // It is not a string.
	case s == nil:
		return []byte{}
	}
	return []byte(*s)
}

// insteadOf returns the fix for an answer whose requested part is empty.
func insteadOf(part v1alpha1.ResultType, a session.Answer) string {
	switch {
	case part == v1alpha1.ResultData && a.Auth != nil:
		return "write Auth"
	case part == v1alpha1.ResultAuth && a.Auth == nil:
		return "write Data, or correct spec.path"
	}
	return "correct spec.path or spec.method"
}
