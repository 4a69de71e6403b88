package presence

import "testing"

// TestMissingFields reads schemas of older and present CRDs.
func TestMissingFields(t *testing.T) {
	cases := map[string]struct{ reason, schema, want string }{
		"Present": {"A CRD with all fields misses none.", `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":[{"kind":"PushSecret"}],
			"properties":{"spec":{"properties":{"dryRun":{},"suspend":{},"syncWindows":{}}}}}}}}`, ""},
		"Older": {"The fields of an older CRD are named, each with its Kind.", `{"components":{"schemas":{
			"a":{"x-kubernetes-group-version-kind":[{"kind":"PushSecret"}],"properties":{"spec":{"properties":{"suspend":{},"syncWindows":{}}}}},
			"b":{"x-kubernetes-group-version-kind":[{"kind":"ExternalSecret"}],"properties":{"spec":{}}}}}}`, "ExternalSecret spec.suspend, ExternalSecret spec.syncWindows, PushSecret spec.dryRun"},
		"Other": {"Other Kinds, such as lists, are ignored.", `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":[{"kind":"PushSecretList"}]},"b":{}}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := missingFields([]byte(tc.schema)); err != nil || got != tc.want {
				t.Errorf("\n%s\nmissingFields(): %q, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
	if _, err := missingFields([]byte("<html>")); err == nil {
		t.Error("missingFields of a document that is no schema: no error")
	}
}
