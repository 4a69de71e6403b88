package generation

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// shared are the fields of a generator's spec that control when and for which namespaces values are made, but do not
// affect the values.
var shared = fieldsOf(v1alpha1.GeneratorSpec{}, v1alpha1.RetrySpec{}, v1alpha1.RevocationSpec{}, v1alpha1.ClusterGeneratorSpec{}, v1alpha1.ScopeSpec{})

func fieldsOf(structs ...any) map[string]bool {
	names := map[string]bool{}
	for _, s := range structs {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(s)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
				names[name] = true
			}
		}
	}
	return names
}

// specHash returns a hash of the fields of a generator's spec that affect its values. It covers only what a user wrote,
// and no defaults. Otherwise an upgrade with a new field or a new default would change it, and every value would be
// replaced.
func specHash(o provider.GeneratorObject) (string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the generator")
	}
	var manifest struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return "", errors.Wrap(err, "cannot decode the generator")
	}
	own := map[string]any{}
	for k, v := range manifest.Spec {
		if shared[k] {
			continue
		}
		var value any // Decoded, so that the order of fields in the code has no effect.
		if err := json.Unmarshal(v, &value); err != nil {
			return "", errors.Wrap(err, "cannot decode the generator")
		}
		own[k] = value
	}
	canonical, err := json.Marshal(own)
	return handoff.Hash(string(canonical)), errors.Wrap(err, "cannot encode the generator")
}
