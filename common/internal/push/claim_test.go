package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestHolder compares a value with another one that a second object wants at the same place.
func TestHolder(t *testing.T) {
	const me, other = "me", "other"
	recorded := v1alpha1.PushEntryStatus{Version: "1", ID: "i", Source: "source"}
	claim := func(change ...func(*Claim)) []Claim {
		c := Claim{Mark: other, By: "PushSecret n/other"}
		for _, f := range change {
			f(&c)
		}
		return []Claim{c}
	}
	first := func(c *Claim) { c.First = true }
	ours := func(c *Claim) { c.Mark = me }
	at := func(property string) func(*Claim) { return func(c *Claim) { c.Property = property } }
	type want struct {
		Action Action
		Held   bool
		// Listed is true if an entry records that this object uses the place.
		Listed bool
	}
	cases := map[string]struct {
		reason   string
		mark     string
		known    []v1alpha1.PushEntryStatus
		claims   []Claim
		property string
		seen     string
		want     want
	}{
		"Alone":     {"Without a claim, the value is written.", "", nil, nil, "", "theirs", want{Action: Update}},
		"Same":      {"An equal value is no conflict.", "", nil, claim(), "", "ours", want{Listed: true}},
		"Marked":    {"The object that the mark names holds the value.", other, []v1alpha1.PushEntryStatus{recorded}, claim(), "", "theirs", want{Held: true, Listed: true}},
		"Ours":      {"So does this one.", me, nil, claim(first), "", "theirs", want{Action: Update}},
		"New":       {"Without a mark, the object with an entry holds the value.", "", nil, claim(), "", "theirs", want{Held: true, Listed: true}},
		"Recorded":  {"Both have an entry, and this object is older.", "", []v1alpha1.PushEntryStatus{recorded}, claim(), "", "theirs", want{Action: Update}},
		"Younger":   {"Both have an entry, and the other object is older.", "", []v1alpha1.PushEntryStatus{recorded}, claim(first), "", "theirs", want{Held: true, Listed: true}},
		"Former":    {"The mark of an object without a claim holds nothing.", "former", nil, nil, "", "theirs", want{Action: Update}},
		"SameOwner": {"The same object pushes another value by an earlier store.", me, []v1alpha1.PushEntryStatus{recorded}, claim(ours, first), "", "theirs", want{Held: true, Listed: true}},
		"SameLater": {"A later store does not hold it.", me, []v1alpha1.PushEntryStatus{recorded}, claim(ours), "", "theirs", want{Action: Update}},
		"Property":  {"A property is held like a secret.", "", nil, claim(at("a")), "a", `{"a":"x"}`, want{Held: true, Listed: true}},
		"Absent":    {"A property that does not exist is held by no other object.", "", nil, claim(at("a")), "a", `{}`, want{Action: Update}},
		"Sibling":   {"Another property is another place.", "", nil, claim(at("b")), "a", `{"a":"x"}`, want{Action: Update}},
		"Part":      {"An object that pushes the whole secret holds all its properties.", other, nil, claim(), "a", `{"a":"x"}`, want{Held: true, Listed: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Policies: Policies{Mark: me, Features: provider.Features{Exclusive: true, Guarded: true}},
				Want:     []Value{{Property: tc.property, Data: []byte("ours"), Source: "source"}}, Known: tc.known, Claims: tc.claims,
				Seen: &provider.Observed{Data: []byte(tc.seen), Version: "1", ID: "i", Mark: tc.mark},
			})
			got := want{d.Action, d.Holder != nil, d.Action == Nothing && len(d.Then) == 1}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nDecide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
