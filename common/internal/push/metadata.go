package push

import (
	"bytes"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// maxMetadata is the maximum size of the metadata of one remote secret, in bytes.
const maxMetadata = 64 << 10

func checkMetadata(m *runtime.RawExtension) error {
	if m == nil {
		return nil
	}
	if len(m.Raw) > maxMetadata {
		return errors.Errorf("has %d bytes, at most %d are allowed", len(m.Raw), maxMetadata)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(m.Raw, &object); err != nil {
		return errors.New("is not a JSON object; write it as {field: value}")
	}
	return nil
}

// raw returns metadata as normalized JSON, for comparison; nil for none.
func raw(m *runtime.RawExtension) []byte {
	if m == nil {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(m.Raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return m.Raw
	}
	out, err := render.Marshal(v)
	if err != nil {
		return m.Raw
	}
	return out
}
