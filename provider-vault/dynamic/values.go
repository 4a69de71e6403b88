package dynamic

import (
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/render"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// partOf checks which part of an answer is asked for.
func partOf(t v1alpha1.ResultType) (v1alpha1.ResultType, error) {
	switch t = cmp.Or(t, v1alpha1.ResultData); t {
	case v1alpha1.ResultData, v1alpha1.ResultAuth, v1alpha1.ResultRaw:
		return t, nil
	}
	return "", store.NewError(store.Invalid, "spec.resultType: %q is none; write Data, Auth or Raw", session.Shortened(string(t)))
}

// valuesOf returns the members of a part of an answer as Secrets hold them: strings as they are, null as
// nothing, and everything else as JSON.
func valuesOf(a session.Answer, part v1alpha1.ResultType) (map[string][]byte, error) {
	var all struct {
		Data json.RawMessage `json:"data"`
		Auth json.RawMessage `json:"auth"`
	}
	if len(a.Raw) > 0 && json.Unmarshal(a.Raw, &all) != nil {
		return nil, store.NewError(store.Unavailable, "the answer of Vault cannot be read")
	}
	raw := map[v1alpha1.ResultType]json.RawMessage{
		v1alpha1.ResultData: all.Data, v1alpha1.ResultAuth: all.Auth, v1alpha1.ResultRaw: a.Raw,
	}
	members, err := render.Extract(raw[part])
	if err != nil || len(members) == 0 {
		return nil, store.NewError(store.Invalid, "spec.resultType: the answer of Vault has nothing under %s; %s", strings.ToLower(string(part)), insteadOf(part, a))
	}
	values := map[string][]byte{}
	for _, m := range members {
		if len(validation.IsConfigMapKey(m.Key)) > 0 {
			return nil, store.NewError(store.Invalid, "spec.path: the answer of Vault has the key %q, which a Secret cannot have", session.Shortened(m.Key))
		}
		values[m.Key] = m.Value
	}
	return values, nil
}

// insteadOf says what to do where a part of an answer is empty.
func insteadOf(part v1alpha1.ResultType, a session.Answer) string {
	switch {
	case part == v1alpha1.ResultData && a.Auth != nil:
		return "write Auth"
	case part == v1alpha1.ResultAuth && a.Auth == nil:
		return "write Data, or correct spec.path"
	}
	return "correct spec.path or spec.method"
}
