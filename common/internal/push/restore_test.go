package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerged(t *testing.T) {
	cases := map[string]struct {
		reason             string
		base, ours, theirs string
		hadSeen            bool
		want               string
	}{
		"Added":         {"The additions of both are kept.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"x":"1","b":"1"}`, true, `{"a":"1","b":"1","x":"1"}`},
		"Nothing":       {"Ours keeps its bytes if theirs changed nothing.", `{"x":"1"}`, `{ "x":"1", "a":"1"}`, `{"x":"1"}`, true, `{ "x":"1", "a":"1"}`},
		"Changed":       {"A change by theirs is taken over.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"x":"2"}`, true, `{"a":"1","x":"2"}`},
		"OnlyOurs":      {"A change by ours alone is kept.", `{"x":"1"}`, `{"x":"2"}`, `{"x":"1","b":"1"}`, true, `{"b":"1","x":"2"}`},
		"Both":          {"Theirs wins if both changed it; the next decision handles ours.", `{"x":"1"}`, `{"x":"2"}`, `{"x":"3"}`, true, `{"x":"3"}`},
		"Removed":       {"A member that theirs knew and lacks was removed.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{}`, true, `{"a":"1"}`},
		"RemovedOurs":   {"A member that ours changed is not removed.", `{"x":"1"}`, `{"x":"2"}`, `{}`, true, `{"x":"2"}`},
		"NeverSeen":     {"A member that theirs did not know was not removed.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"b":"1"}`, false, `{"a":"1","b":"1","x":"1"}`},
		"BroughtBack":   {"A member that ours removed and theirs has is kept.", `{"x":"1"}`, `{"a":"1"}`, `{"x":"1"}`, false, `{"a":"1","x":"1"}`},
		"Nested":        {"Nested objects are joined in the same way.", `{"o":{"x":"1"}}`, `{"o":{"x":"1","a":"1"}}`, `{"o":{"b":"1"}}`, true, `{"o":{"a":"1","b":"1"}}`},
		"NestedNew":     {"Nested objects are joined also if both created them.", `{}`, `{"o":{"a":"1"}}`, `{"o":{"b":"1"}}`, true, `{"o":{"a":"1","b":"1"}}`},
		"NoBase":        {"An empty base counts as no members.", ``, `{"a":"1"}`, `{"b":"1"}`, true, `{"a":"1","b":"1"}`},
		"NoObject":      {"A value that is no object is taken from theirs.", `{}`, `{"a":"1"}`, `text`, true, `text`},
		"NotJoined":     {"A member that was an object may become a string.", `{"o":{"x":"1"}}`, `{"o":{"x":"1"},"a":"1"}`, `{"o":"2"}`, true, `{"a":"1","o":"2"}`},
		"OddKeys":       {"Any key is allowed.", `{}`, `{"a.b":"1"}`, `{"":"1","#":"2","<":"3"}`, true, `{"":"1","#":"2","<":"3","a.b":"1"}`},
		"BytesOfValues": {"Values keep their spelling.", `{}`, `{"a":1.50}`, `{"b":"<\u00e9>"}`, true, `{"a":1.50,"b":"<\u00e9>"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := merged([]byte(tc.base), []byte(tc.ours), []byte(tc.theirs), tc.hadSeen)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nmerged(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
