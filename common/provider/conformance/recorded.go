package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Fact is one answer that a real service was seen to give. A provider keeps its facts in testdata/recorded.json, written by
// hand: status, codes, names of fields and the words on which a class depends are the service's, all values are our own. A test
// feeds each fact to the real client, and compares the provider's emulator with it.
type Fact struct {
	Operation string // Operation is the call, by the name of the service.
	State     string // State says what the call met: "no such secret".
	Source    string // Source is the recording, issue or page that shows the answer, and Date its day.
	Date      string
	Status    int               // Status is that of HTTP; 0 for gRPC.
	Code      string            // Code is the error's code in the body, or gRPC's; empty for a result.
	Header    map[string]string // Header are the fields on which a result depends.
	Body      json.RawMessage   // Body is the answer of HTTP, or gRPC's text as a JSON string.
	// Want is the class of the error that the client returns, or empty if it returns none.
	Want provider.Class
	// Differs is the reason why the emulator answers otherwise. It is empty if status, code and text are those of the fact.
	Differs string
}

// Facts returns the recorded facts of the package under test, by file name of testdata. Each has a source.
func Facts(t *testing.T, name string) []Fact {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatalf("cannot read the recorded facts: %v", err)
	}
	var facts []Fact
	if err := json.Unmarshal(raw, &facts); err != nil {
		t.Fatalf("cannot decode the recorded facts: %v", err)
	}
	for i, f := range facts {
		if f.Operation == "" || f.State == "" || f.Source == "" || f.Date == "" {
			t.Fatalf("recorded fact %d needs an operation, a state, a source and a date", i)
		}
	}
	return facts
}
