package conformance

import (
	"encoding/json"
	"testing"
)

// ResultPrefix is before each Result in the output of a test. `make conformance` collects them in a table.
const ResultPrefix = "conformance result: "

// A Result says how one capability of a Kind did with one service.
type Result struct {
	Kind string `json:"kind"`
	// Service is the name and the version of the server.
	Service    string `json:"service"`
	Capability string `json:"capability"`
	Passed     int    `json:"passed"`
	Failed     int    `json:"failed"`
	// Without are checks that were not made, with the reason.
	Without map[string]string `json:"without,omitempty"`
}

// Log writes the Result to the output of the test. A Result without a Kind or a Service is not published.
func (r Result) Log(t testing.TB) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != "" && r.Service != "" {
		t.Log(ResultPrefix + string(raw))
	}
}
