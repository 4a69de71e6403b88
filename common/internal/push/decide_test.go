package push

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestDecide(t *testing.T) {
	type entry = v1alpha1.PushEntryStatus
	const (
		mine    = "me"
		replace = v1alpha1.UpdateReplace
		ifNot   = v1alpha1.UpdateIfNotExists
		adopt   = v1alpha1.AdoptionAdopt
		refuse  = v1alpha1.AdoptionRefuse
	)
	strong := provider.Features{Exclusive: true, Guarded: true}
	seen := func(data, version, mark string, drift ...string) *provider.Observed {
		return &provider.Observed{Data: []byte(data), Version: version, ID: "i", Mark: mark, Drift: drift}
	}
	value := func(property, data string) Value { return Value{Property: property, Data: []byte(data)} }
	known := func(property, version string) entry {
		return entry{Property: property, Version: version, ID: "i", Created: true}
	}
	type want struct {
		Action  Action
		Data    string
		Created []string // entries that count as created, by property
		Exists  []string
		Left    int
		Err     string // part of the first error
	}
	cases := map[string]struct {
		reason   string
		update   v1alpha1.PushUpdatePolicy
		adopt    v1alpha1.PushAdoptionPolicy
		deletes  bool
		features provider.Features
		want     []Value
		known    []entry
		seen     *provider.Observed
		former   map[string]string
		then     want
	}{
		"New":          {"What does not exist is created.", replace, adopt, false, strong, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", []string{""}, nil, 0, ""}},
		"NewEmpty":     {"An empty value is a value.", replace, adopt, false, strong, []Value{value("", "")}, nil, nil, nil, want{Create, "", []string{""}, nil, 0, ""}},
		"NewMany":      {"Properties of a new secret are one object.", replace, adopt, false, strong, []Value{value("a", "1"), value("b.c", "2")}, nil, nil, nil, want{Create, `{"a":"1","b":{"c":"2"}}`, []string{"a", "b.c"}, nil, 0, ""}},
		"NewRefuse":    {"What does not exist is nobody's.", replace, refuse, false, strong, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", []string{""}, nil, 0, ""}},
		"NewWeak":      {"Where nothing tells who created it, nothing counts as created.", replace, adopt, true, provider.Features{}, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", nil, nil, 0, ""}},
		"Same":         {"What is in step is left.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 0, ""}},
		"SameOurs":     {"The mark says whose it is, also after a crash before the status was written.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", mine), nil, want{Nothing, "", []string{""}, nil, 0, ""}},
		"Settings":     {"Settings that differ are brought in line, and the value is left.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", "", "tags.a"), nil, want{Update, "", nil, nil, 0, ""}},
		"SettingsElse": {"But not of what others created, under Refuse.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("v", "1", "", "tags.a"), nil, want{Nothing, "", nil, nil, 0, ""}},
		"SettingsKept": {"Nor under IfNotExists.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", mine, "tags.a"), nil, want{Nothing, "", []string{""}, nil, 0, ""}},
		"Replace":      {"What differs is overwritten.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("x", "1", ""), nil, want{Update, "v", nil, nil, 0, ""}},
		"Exists":       {"IfNotExists leaves it alone.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, seen("x", "1", mine), nil, want{Nothing, "", nil, []string{""}, 0, ""}},
		"Hollow":       {"A secret without a value is filled, also under IfNotExists.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, &provider.Observed{Mark: mine}, nil, want{Update, "v", []string{""}, nil, 0, ""}},
		"Refuse":       {"Refuse leaves what others created.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("x", "1", "other"), nil, want{Nothing, "", nil, nil, 0, "did not create it"}},
		"RefuseOurs":   {"It writes what it created itself.", replace, refuse, false, strong, []Value{value("", "v")}, []entry{known("", "1")}, seen("x", "1", mine), nil, want{Update, "v", []string{""}, nil, 0, ""}},
		"RefuseMoved":  {"But not over what others wrote there since.", replace, refuse, false, strong, []Value{value("", "v")}, []entry{known("", "1")}, seen("x", "2", mine), nil, want{Nothing, "", []string{""}, nil, 0, "somebody else has changed it"}},
		"RefuseLost":   {"Without its status it cannot tell, and leaves it.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("x", "1", mine), nil, want{Nothing, "", nil, nil, 0, "somebody else has changed it"}},

		"Property":        {"One property is written, the others stay as they are.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen(`{"a": 1.0,"b":"x"}`, "1", ""), nil, want{Update, `{"a": 1.0,"b":"2"}`, nil, nil, 0, ""}},
		"PropertyNew":     {"One that was not there counts as created.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen(`{"a":1}`, "1", ""), nil, want{Update, `{"a":1,"b":"2"}`, []string{"b"}, nil, 0, ""}},
		"PropertySame":    {"One in step is left.", replace, adopt, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"2"}`, "7", ""), nil, want{Nothing, "", []string{"b"}, nil, 0, ""}},
		"PropertyExists":  {"IfNotExists leaves one and writes the other.", ifNot, adopt, false, strong, []Value{value("a", "1"), value("b", "2")}, nil, seen(`{"a":"x"}`, "1", ""), nil, want{Update, `{"a":"x","b":"2"}`, []string{"b"}, []string{"a"}, 0, ""}},
		"PropertyText":    {"Only an object has properties.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen("text", "1", ""), nil, want{Nothing, "", nil, nil, 0, "no JSON object"}},
		"PropertyWeak":    {"Without a guard the others could be lost.", replace, adopt, false, provider.Features{Exclusive: true}, []Value{value("b", "2")}, nil, seen(`{}`, "1", ""), nil, want{Nothing, "", nil, nil, 0, "not implemented"}},
		"PropertyRemade":  {"One that somebody made anew is overwritten, and no longer ours to delete.", replace, adopt, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"x"}`, "3", ""), map[string]string{"1": `{"b":"old"}`}, want{Update, `{"b":"2"}`, nil, nil, 0, ""}},
		"PropertySibling": {"A change elsewhere in the secret makes ours no other.", replace, refuse, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"a":1,"b":"x"}`, "3", mine), map[string]string{"1": `{"b":"x"}`}, want{Update, `{"a":1,"b":"2"}`, []string{"b"}, nil, 0, ""}},
		"PropertyTheirs":  {"Refuse leaves a property that others wrote.", replace, refuse, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"y"}`, "3", mine), map[string]string{"1": `{"b":"x"}`}, want{Nothing, "", []string{"b"}, nil, 0, "somebody else"}},
		"PropertyNobody":  {"Refuse adds nothing to what others created.", replace, refuse, false, strong, []Value{value("b", "2")}, nil, seen(`{}`, "1", ""), nil, want{Nothing, "", nil, nil, 0, "did not create it"}},
		"PropertyPart":    {"What cannot be written stops no other.", replace, adopt, false, strong, []Value{value("a.x", "1"), value("b", "2")}, nil, seen(`{"a":[]}`, "1", ""), nil, want{Update, `{"a":[],"b":"2"}`, []string{"b"}, nil, 0, "is no JSON object there"}},

		"Remove":          {"What was created goes.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Delete, "", nil, nil, 0, ""}},
		"RemoveKept":      {"Without the policy it stays.", replace, adopt, false, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveAdopted":   {"What was adopted stays.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "i"}}, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveUnmarked":  {"Without our mark it stays, whatever the status says.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveMoved":     {"What others changed stays.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("x", "2", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveHollowed":  {"Also if they made an empty object of it.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("{}", "2", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveRemade":    {"So does another of the same name and version.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "j", Created: true}}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveGone":      {"What is gone needs no removal.", replace, adopt, true, strong, nil, []entry{known("", "1")}, nil, nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveProperty":  {"A property goes, and the others stay.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":"2"}`, "1", mine), nil, want{Update, `{"a":1}`, nil, nil, 0, ""}},
		"RemoveLast":      {"With its last property the secret goes, if this object created it.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", mine), nil, want{Delete, "", nil, nil, 0, ""}},
		"RemoveEmptied":   {"So it does where somebody else took the property out: nothing is left in it.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{}`, "2", mine), nil, want{Delete, "", nil, nil, 0, ""}},
		"RemoveEmptyElse": {"What another created and nobody has anything in is theirs.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{}`, "2", "other"), nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveLastElse":  {"If another created it, it stays without properties.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", "other"), nil, want{Update, `{}`, nil, nil, 0, ""}},
		"RemoveSome":      {"One is taken out while the other is written, by one update.", replace, adopt, true, strong, []Value{value("a", "1")}, []entry{known("a", "1"), known("b", "1")}, seen(`{"a":"x","b":"2"}`, "1", mine), nil, want{Update, `{"a":"1"}`, []string{"a"}, nil, 0, ""}},
		"RemoveChanged":   {"A property that others changed stays.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"y"}`, "2", mine), map[string]string{"1": `{"b":"x"}`}, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveOther":     {"So does one of another secret that has the same name and version.", replace, adopt, true, strong, nil, []entry{{Property: "b", Version: "1", ID: "j", Created: true}}, seen(`{"b":"x"}`, "1", ""), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveAdoptedP":  {"A property that others made stays.", replace, adopt, true, strong, nil, []entry{{Property: "b", Version: "1", ID: "i"}}, seen(`{"b":"x"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveUnknown":   {"So does one of which the former value cannot be had.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"x"}`, "2", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveForObject": {"The whole secret is no longer wanted, but a property of it is: it stays.", replace, adopt, true, strong, []Value{value("a", "1")}, []entry{known("", "1")}, seen(`{"a":"1"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, ""}},
		"RemoveInUse":     {"What another object pushes to stays.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemoveInUseP":    {"So does a secret of which another object pushes a property.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen(`{"x":1}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemovePInUse":    {"So does a property inside of which another object pushes one.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":{"c":"2"}}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemovePInside":   {"And one inside of what another object pushes.", replace, adopt, true, strong, nil, []entry{known("b.c", "1")}, seen(`{"a":1,"b":{"c":"2"}}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, ""}},
		"RemovePOther":    {"A property that only begins alike is another.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":"2"}`, "1", mine), nil, want{Update, `{"a":1}`, nil, nil, 0, ""}},
		"RemoveLastUse":   {"A secret to which another object is about to push a property stays without its last one.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", mine), nil, want{Update, `{}`, nil, nil, 0, ""}},
	}
	inUse := map[string][]Use{"RemoveInUse": {{}}, "RemoveInUseP": {{Property: "x"}}, "RemovePInUse": {{Property: "b.c"}}, "RemovePInside": {{Property: "b"}}, "RemovePOther": {{Property: "bc"}}, "RemoveLastUse": {{Property: "x"}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Policies: Policies{Update: tc.update, Adoption: tc.adopt, Deletes: tc.deletes, Mark: mine, Features: tc.features},
				Want:     tc.want, Known: tc.known, Seen: tc.seen,
				InUse:  inUse[name],
				Former: func(v string) ([]byte, bool) { data, ok := tc.former[v]; return []byte(data), ok },
			})
			got := want{Action: d.Action, Data: string(d.Data), Exists: d.Exists, Left: len(d.Left) + len(d.Released)}
			for _, e := range d.Then {
				if e.Created {
					got.Created = append(got.Created, e.Property)
				}
			}
			if len(d.Errs) > 0 && tc.then.Err != "" && strings.Contains(d.Errs[0].Error(), tc.then.Err) {
				got.Err = tc.then.Err
			} else if len(d.Errs) > 0 {
				got.Err = d.Errs[0].Error()
			}
			if diff := cmp.Diff(tc.then, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBequeath has an object go whose remote secret others use. Who removes what they created gets what they push, and its
// mark.
func TestBequeath(t *testing.T) {
	const me = "me"
	created := func(property string) v1alpha1.PushEntryStatus {
		return v1alpha1.PushEntryStatus{Property: property, Version: "1", ID: "i", Created: true}
	}
	type want struct {
		Action   Action
		Bequests []Bequest
		Heir     string
		Released []string
	}
	cases := map[string]struct {
		reason string
		wants  []Value
		known  string
		data   string
		mark   string
		others []Use
		want   want
	}{
		"Nobody":     {"What nobody uses goes.", nil, "", "v", me, nil, want{Action: Delete}},
		"Whole":      {"The other one gets it.", nil, "", "v", me, []Use{{"", "b"}}, want{Bequests: []Bequest{{"", "b"}}, Heir: "b"}},
		"Keeps":      {"One that removes nothing gets nothing.", nil, "", "v", me, []Use{{"", ""}}, want{Released: []string{""}}},
		"Second":     {"Whoever removes it gets it, whoever else uses it.", nil, "", "v", me, []Use{{"", ""}, {"", "c"}}, want{Bequests: []Bequest{{"", "c"}}, Heir: "c"}},
		"Property":   {"A property is for who pushes it, and so is the secret.", nil, "a", `{"a":"1"}`, me, []Use{{"a", "b"}}, want{Bequests: []Bequest{{"a", "b"}}, Heir: "b"}},
		"Properties": {"Everyone who pushes it gets it; the secret has one mark.", nil, "a", `{"a":"1"}`, me, []Use{{"a", "b"}, {"a", "c"}}, want{Bequests: []Bequest{{"a", "b"}, {"a", "c"}}, Heir: "b"}},
		"Part":       {"Who pushes a part has not made the whole, but has the secret.", nil, "", `{"a":"1"}`, me, []Use{{"a", "b"}}, want{Heir: "b", Released: []string{""}}},
		"Beside":     {"A secret that others have properties in goes with the last of them.", nil, "a", `{"a":"1","b":"2"}`, me, []Use{{"b", "b"}}, want{Action: Update, Heir: "b"}},
		"WholeFirst": {"First of all it is for one that pushes all of it.", nil, "a", `{"a":"1"}`, me, []Use{{"a", "b"}, {"", "c"}}, want{Bequests: []Bequest{{"a", "b"}}, Heir: "c"}},
		"Others":     {"What another created is not this one's to give.", nil, "a", `{"a":"1"}`, "z", []Use{{"a", "b"}}, want{Bequests: []Bequest{{"a", "b"}}}},
		"Own":        {"What this object pushes by another store stays its own.", nil, "", "v", me, []Use{{"", "b"}, {"", me}}, want{Bequests: []Bequest{{"", "b"}, {"", me}}}},
		"Stays":      {"Who keeps a property keeps the secret.", []Value{{Property: "b", Data: []byte("2")}}, "a", `{"a":"1","b":"2"}`, me, []Use{{"a", "b"}}, want{Bequests: []Bequest{{"a", "b"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Policies: Policies{Deletes: true, Mark: me, Features: provider.Features{Exclusive: true, Guarded: true}},
				Want:     tc.wants, Known: []v1alpha1.PushEntryStatus{created(tc.known)}, InUse: tc.others,
				Seen: &provider.Observed{Data: []byte(tc.data), Version: "1", ID: "i", Mark: tc.mark},
			})
			got := want{Action: d.Action, Bequests: d.Bequests, Heir: d.Heir}
			for _, e := range d.Released {
				got.Released = append(got.Released, e.Property)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nDecide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
