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
		"Added":         {"What each of them added is there.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"x":"1","b":"1"}`, true, `{"a":"1","b":"1","x":"1"}`},
		"Nothing":       {"Ours keeps its bytes where they did nothing.", `{"x":"1"}`, `{ "x":"1", "a":"1"}`, `{"x":"1"}`, true, `{ "x":"1", "a":"1"}`},
		"Changed":       {"What they changed is taken over.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"x":"2"}`, true, `{"a":"1","x":"2"}`},
		"OnlyOurs":      {"What we changed alone stays changed.", `{"x":"1"}`, `{"x":"2"}`, `{"x":"1","b":"1"}`, true, `{"b":"1","x":"2"}`},
		"Both":          {"Where both changed it theirs counts; ours is decided about again.", `{"x":"1"}`, `{"x":"2"}`, `{"x":"3"}`, true, `{"x":"3"}`},
		"Removed":       {"Who had seen it and has it no more has removed it.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{}`, true, `{"a":"1"}`},
		"RemovedOurs":   {"What we changed ourselves is not removed.", `{"x":"1"}`, `{"x":"2"}`, `{}`, true, `{"x":"2"}`},
		"NeverSeen":     {"Who had not seen it has removed nothing.", `{"x":"1"}`, `{"x":"1","a":"1"}`, `{"b":"1"}`, false, `{"a":"1","b":"1","x":"1"}`},
		"BroughtBack":   {"What we left out and they have is there.", `{"x":"1"}`, `{"a":"1"}`, `{"x":"1"}`, false, `{"a":"1","x":"1"}`},
		"Nested":        {"Objects inside are joined likewise.", `{"o":{"x":"1"}}`, `{"o":{"x":"1","a":"1"}}`, `{"o":{"b":"1"}}`, true, `{"o":{"a":"1","b":"1"}}`},
		"NestedNew":     {"Also where both of them began the object.", `{}`, `{"o":{"a":"1"}}`, `{"o":{"b":"1"}}`, true, `{"o":{"a":"1","b":"1"}}`},
		"NoBase":        {"A secret without a value had nothing.", ``, `{"a":"1"}`, `{"b":"1"}`, true, `{"a":"1","b":"1"}`},
		"NoObject":      {"What is no object is theirs.", `{}`, `{"a":"1"}`, `text`, true, `text`},
		"NotJoined":     {"A value that was an object before may be none now.", `{"o":{"x":"1"}}`, `{"o":{"x":"1"},"a":"1"}`, `{"o":"2"}`, true, `{"a":"1","o":"2"}`},
		"OddKeys":       {"Any key will do.", `{}`, `{"a.b":"1"}`, `{"":"1","#":"2","<":"3"}`, true, `{"":"1","#":"2","<":"3","a.b":"1"}`},
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
