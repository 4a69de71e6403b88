// Package offline renders ExternalSecrets with values from a file, and compares the result with a Secret. It
// makes no requests.
package offline

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/manifest"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// file is the content of a values file.
type file struct {
	// Remote are remote secrets of any store, by key. A string is the value itself; any other value is JSON.
	Remote map[string]json.RawMessage `json:"remote"`
	// Stores are remote secrets of one store, by KIND/NAME and key. They take precedence over Remote.
	Stores map[string]map[string]json.RawMessage `json:"stores"`
	// Metadata is the metadata of remote secrets, such as tags, by key.
	Metadata map[string]map[string]string `json:"metadata"`
	// Generators are generated values, by KIND/NAME and key.
	Generators map[string]map[string]string `json:"generators"`
	// Templates are the contents of ConfigMaps and Secrets that templateFrom names, by KIND/NAME and key.
	Templates map[string]map[string]string `json:"templates"`
}

// ParseValues decodes a values file, in YAML or JSON. Its error shows no value.
func ParseValues(raw []byte) (inspect.Remote, error) {
	f := file{}
	err := manifest.Decode(raw, &f)
	switch {
	case errors.Is(err, manifest.ErrSyntax):
		return inspect.Remote{}, fmt.Errorf("the file of values %w", err)
	case err != nil:
		return inspect.Remote{}, fmt.Errorf("%w. The fields are remote, stores, metadata, generators and templates, each a map, and values below the last three must be strings", err)
	}
	return inspect.Remote{
		Secrets: f.secrets,
		Generated: func(g v1alpha1.StoreRef) map[string][]byte {
			made := f.Generators[g.Kind+"/"+g.Name]
			if made == nil {
				return nil
			}
			out := map[string][]byte{}
			for k, v := range made {
				out[k] = []byte(v)
			}
			return out
		},
		Templates: func(kind, name string) map[string]string { return f.Templates[kind+"/"+name] },
	}, nil
}

func (f *file) secrets(store v1alpha1.StoreRef) map[string]provider.Value {
	all := map[string]provider.Value{}
	for _, from := range []map[string]json.RawMessage{f.Remote, f.Stores[store.Kind+"/"+store.Name]} {
		for k, raw := range from {
			v := provider.Value{Key: k, Data: raw, Metadata: f.Metadata[k]}
			var text string
			if json.Unmarshal(raw, &text) == nil {
				v.Data = []byte(text)
			}
			all[k] = v
		}
	}
	return all
}
