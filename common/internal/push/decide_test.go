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
		own     = v1alpha1.AdoptionOwn
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
		Created []string // properties of the entries with created: true
		Exists  []string
		Left    int
		Err     string // substring of the first error
		Marks   bool   // the secret gets the mark of this object
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
		"New":          {"A missing secret is created.", replace, adopt, false, strong, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", []string{""}, nil, 0, "", false}},
		"NewEmpty":     {"An empty value is a value.", replace, adopt, false, strong, []Value{value("", "")}, nil, nil, nil, want{Create, "", []string{""}, nil, 0, "", false}},
		"NewMany":      {"Properties of a new secret are one object.", replace, adopt, false, strong, []Value{value("a", "1"), value("b.c", "2")}, nil, nil, nil, want{Create, `{"a":"1","b":{"c":"2"}}`, []string{"a", "b.c"}, nil, 0, "", false}},
		"NewRefuse":    {"Refuse allows creating a missing secret.", replace, refuse, false, strong, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", []string{""}, nil, 0, "", false}},
		"NewWeak":      {"Without a mark in the store, no entry counts as created.", replace, adopt, true, provider.Features{}, []Value{value("", "v")}, nil, nil, nil, want{Create, "v", nil, nil, 0, "", false}},
		"Same":         {"A value in sync is not written.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"SameOurs":     {"The mark identifies the owner, also after a crash before the status was written.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", mine), nil, want{Nothing, "", []string{""}, nil, 0, "", false}},
		"Settings":     {"Metadata that differs is updated, without writing the value.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", "", "tags.a"), nil, want{Update, "", nil, nil, 0, "", false}},
		"SettingsElse": {"Under Refuse, the metadata of secrets that others created is unchanged.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("v", "1", "", "tags.a"), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"SettingsKept": {"Under IfNotExists, metadata is unchanged.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, seen("v", "1", mine, "tags.a"), nil, want{Nothing, "", []string{""}, nil, 0, "", false}},
		"Replace":      {"A value that differs is overwritten.", replace, adopt, false, strong, []Value{value("", "v")}, nil, seen("x", "1", ""), nil, want{Update, "v", nil, nil, 0, "", false}},
		"Exists":       {"IfNotExists leaves an existing value unchanged.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, seen("x", "1", mine), nil, want{Nothing, "", nil, []string{""}, 0, "", false}},
		"Hollow":       {"A secret without a value gets one, also under IfNotExists.", ifNot, adopt, false, strong, []Value{value("", "v")}, nil, &provider.Observed{Mark: mine}, nil, want{Update, "v", []string{""}, nil, 0, "", false}},
		"Refuse":       {"Refuse leaves secrets unchanged that others created.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("x", "1", "other"), nil, want{Nothing, "", nil, nil, 0, "did not create it", false}},
		"RefuseOurs":   {"Refuse writes to a secret that this object created.", replace, refuse, false, strong, []Value{value("", "v")}, []entry{known("", "1")}, seen("x", "1", mine), nil, want{Update, "v", []string{""}, nil, 0, "", false}},
		"RefuseMoved":  {"Refuse does not overwrite what others wrote since.", replace, refuse, false, strong, []Value{value("", "v")}, []entry{known("", "1")}, seen("x", "2", mine), nil, want{Nothing, "", []string{""}, nil, 0, "another client changed", false}},
		"RefuseLost":   {"Without a status entry, Refuse cannot tell who wrote the value, and leaves it unchanged.", replace, refuse, false, strong, []Value{value("", "v")}, nil, seen("x", "1", mine), nil, want{Nothing, "", nil, nil, 0, "another client changed", false}},

		"Property":        {"One property is written, the others stay unchanged.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen(`{"a": 1.0,"b":"x"}`, "1", ""), nil, want{Update, `{"a": 1.0,"b":"2"}`, nil, nil, 0, "", false}},
		"PropertyNew":     {"A property that did not exist counts as created.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen(`{"a":1}`, "1", ""), nil, want{Update, `{"a":1,"b":"2"}`, []string{"b"}, nil, 0, "", false}},
		"PropertySame":    {"A property in sync is not written.", replace, adopt, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"2"}`, "7", ""), nil, want{Nothing, "", []string{"b"}, nil, 0, "", false}},
		"PropertyExists":  {"IfNotExists leaves the existing property unchanged and writes the other.", ifNot, adopt, false, strong, []Value{value("a", "1"), value("b", "2")}, nil, seen(`{"a":"x"}`, "1", ""), nil, want{Update, `{"a":"x","b":"2"}`, []string{"b"}, []string{"a"}, 0, "", false}},
		"PropertyText":    {"Only a JSON object has properties.", replace, adopt, false, strong, []Value{value("b", "2")}, nil, seen("text", "1", ""), nil, want{Nothing, "", nil, nil, 0, "not a JSON object", false}},
		"PropertyWeak":    {"Without a version check, a write could lose other properties.", replace, adopt, false, provider.Features{Exclusive: true}, []Value{value("b", "2")}, nil, seen(`{}`, "1", ""), nil, want{Nothing, "", nil, nil, 0, "not implemented", false}},
		"PropertyRemade":  {"A property that another writer created again is overwritten, and no longer counts as created.", replace, adopt, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"x"}`, "3", ""), map[string]string{"1": `{"b":"old"}`}, want{Update, `{"b":"2"}`, nil, nil, 0, "", false}},
		"PropertySibling": {"A change of another property does not affect who wrote ours.", replace, refuse, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"a":1,"b":"x"}`, "3", mine), map[string]string{"1": `{"b":"x"}`}, want{Update, `{"a":1,"b":"2"}`, []string{"b"}, nil, 0, "", false}},
		"PropertyTheirs":  {"Refuse leaves a property unchanged that others wrote.", replace, refuse, false, strong, []Value{value("b", "2")}, []entry{known("b", "1")}, seen(`{"b":"y"}`, "3", mine), map[string]string{"1": `{"b":"x"}`}, want{Nothing, "", []string{"b"}, nil, 0, "another client changed", false}},
		"PropertyRefuse":  {"Refuse adds no property to a secret that others created.", replace, refuse, false, strong, []Value{value("b", "2")}, nil, seen(`{}`, "1", ""), nil, want{Nothing, "", nil, nil, 0, "did not create it", false}},
		"Respelled":       {"Another spelling of the property removes nothing.", replace, adopt, true, strong, []Value{value("tls.crt", "v")}, []entry{known(`tls\.crt`, "1")}, seen(`{"tls.crt":"v"}`, "1", mine), nil, want{Nothing, "", []string{"tls.crt"}, nil, 0, "", false}},
		"RespelledNew":    {"Another spelling and another value are one write.", replace, adopt, true, strong, []Value{value(`a\b`, "w")}, []entry{known("ab", "1")}, seen(`{"ab":"v"}`, "1", mine), nil, want{Update, `{"ab":"w"}`, []string{`a\b`}, nil, 0, "", false}},
		"RespelledTwice":  {"Two entries for one property are one.", replace, adopt, true, strong, []Value{value("a.0", "v")}, []entry{{Property: "a.0", Version: "1", ID: "i"}, known(`a.\0`, "1")}, seen(`{"a":{"0":"v"}}`, "1", mine), nil, want{Nothing, "", []string{"a.0"}, nil, 0, "", false}},
		"RespelledElse":   {"A nested property is removed for a literal one of the same text.", replace, adopt, true, strong, []Value{value(`tls\.crt`, "v")}, []entry{known("tls.crt", "1")}, seen(`{"tls":{"crt":"v"}}`, "1", mine), nil, want{Update, `{"tls.crt":"v"}`, []string{`tls\.crt`}, nil, 0, "", false}},
		"RespelledTaken":  {"A literal property of another writer is not the nested one that this object created.", replace, adopt, true, strong, nil, []entry{known("tls.crt", "1")}, seen(`{"tls":{"crt":"v"},"tls.crt":"v"}`, "2", "other"), map[string]string{"1": `{"tls":{"crt":"v"}}`}, want{Nothing, "", nil, nil, 1, "", false}},
		"PropertyPart":    {"One value that cannot be written does not block the others.", replace, adopt, false, strong, []Value{value("a.x", "1"), value("b", "2")}, nil, seen(`{"a":[]}`, "1", ""), nil, want{Update, `{"a":[],"b":"2"}`, []string{"b"}, nil, 0, "is not a JSON object in the remote secret", false}},

		"RemadeProperty": {"A secret that another writer deleted and made again is not ours, whatever it holds.", replace, adopt, true, strong, []Value{value("b", "2")}, []entry{{Property: "b", Version: "1", ID: "j", Created: true}}, seen(`{"b":"2"}`, "1", ""), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemadeMarked":   {"It is not ours with our mark either.", replace, adopt, true, strong, []Value{value("", "v")}, []entry{{Version: "1", ID: "j", Created: true}}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"Handed":         {"A property that this object has adopted stays adopted, also if the secret was handed over.", replace, adopt, true, strong, []Value{value("b", "2")}, []entry{{Property: "b", Version: "1", ID: "i", Owner: "other"}}, seen(`{"b":"2"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"HandedRemoved":  {"It is kept when this object is deleted.", replace, adopt, true, strong, nil, []entry{{Property: "b", Version: "1", ID: "i", Owner: "other"}}, seen(`{"b":"2"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"HandedWhole":    {"A whole secret that was handed over is deleted, also before this object has compared it again.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "i", Owner: "other"}}, seen("v", "1", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"NotHanded":      {"A secret that another object still owns is kept.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "i", Owner: "other"}}, seen("v", "1", "other"), nil, want{Nothing, "", nil, nil, 0, "", false}},

		"Interrupted":         {"A secret that an interrupted push has created is deleted, although the status does not record it.", replace, adopt, true, strong, nil, []entry{{}}, seen("v", "1", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"InterruptedProperty": {"The same holds for a property.", replace, adopt, true, strong, nil, []entry{{Property: "b"}}, seen(`{"b":"2"}`, "1", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"InterruptedChanged":  {"A value that others changed since is kept.", replace, adopt, true, strong, nil, []entry{{}}, seen("x", "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"InterruptedElse":     {"A secret without our mark was not created by the interrupted push.", replace, adopt, true, strong, nil, []entry{{}}, seen("v", "1", "other"), nil, want{Nothing, "", nil, nil, 0, "", false}},

		"Own":            {"Own takes over a secret without a mark that is in sync.", replace, own, false, strong, []Value{value("", "v")}, nil, seen("v", "1", ""), nil, want{Nothing, "", []string{""}, nil, 0, "", true}},
		"OwnReplaced":    {"Own takes over a secret that it overwrites.", replace, own, false, strong, []Value{value("", "v")}, nil, seen("x", "1", ""), nil, want{Update, "v", []string{""}, nil, 0, "", true}},
		"OwnMine":        {"A secret that has the mark gets none.", replace, own, false, strong, []Value{value("", "v")}, nil, seen("v", "1", mine), nil, want{Nothing, "", []string{""}, nil, 0, "", false}},
		"OwnElse":        {"Own takes over nothing from another object.", replace, own, false, strong, []Value{value("", "v")}, nil, seen("v", "1", "other"), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"OwnElseP":       {"Own takes over no property from another object.", replace, own, false, strong, []Value{value("a", "1")}, nil, seen(`{"a":"1"}`, "1", "other"), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"OwnProperty":    {"Own takes over properties, whether it overwrites them or not.", replace, own, false, strong, []Value{value("a", "1"), value("b", "2")}, nil, seen(`{"a":"1","b":"x","c":3}`, "1", ""), nil, want{Update, `{"a":"1","b":"2","c":3}`, []string{"a", "b"}, nil, 0, "", true}},
		"OwnPropertyToo": {"Own takes over a property of a secret that it marked before.", replace, own, false, strong, []Value{value("a", "1")}, nil, seen(`{"a":"1"}`, "1", mine), nil, want{Nothing, "", []string{"a"}, nil, 0, "", false}},
		"OwnKept":        {"A value that IfNotExists leaves unchanged is not taken over.", ifNot, own, false, strong, []Value{value("", "v")}, nil, seen("x", "1", ""), nil, want{Nothing, "", nil, []string{""}, 0, "", false}},
		"OwnFails":       {"Nothing is taken over for a value that cannot be written.", replace, own, false, strong, []Value{value("b", "2")}, nil, seen("text", "1", ""), nil, want{Nothing, "", nil, nil, 0, "not a JSON object", false}},
		"OwnRemoves":     {"A secret that the spec no longer names is kept without the mark.", replace, own, true, strong, nil, []entry{known("", "1")}, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"OwnWeak":        {"Without a mark in the store, nothing can be taken over.", replace, own, false, provider.Features{Guarded: true}, []Value{value("", "v")}, nil, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 0, "not implemented", false}},

		"Remove":          {"A secret that this object created is deleted.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"RemoveKept":      {"Without deletionPolicy Delete, it is kept.", replace, adopt, false, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveAdopted":   {"An adopted secret is kept.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "i"}}, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveUnmarked":  {"Without our mark it is kept, even if the status says created.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", ""), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveMoved":     {"A secret that others changed is kept.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("x", "2", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveRewritten": {"A secret written again with the same value is deleted.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "2", mine), map[string]string{"1": "v"}, want{Delete, "", nil, nil, 0, "", false}},
		"RemoveReplaced":  {"A secret with another value is kept.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("x", "2", mine), map[string]string{"1": "v"}, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveHollowed":  {"A secret that others replaced by an empty object is kept.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("{}", "2", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveRemade":    {"Another secret with the same name and version is kept.", replace, adopt, true, strong, nil, []entry{{Version: "1", ID: "j", Created: true}}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveGone":      {"A missing secret needs no removal.", replace, adopt, true, strong, nil, []entry{known("", "1")}, nil, nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveProperty":  {"A property is removed, and the others are kept.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":"2"}`, "1", mine), nil, want{Update, `{"a":1}`, nil, nil, 0, "", false}},
		"RemoveLast":      {"The secret is deleted with its last property, if this object created it.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"RemoveEmptied":   {"It is also deleted if another writer removed the property and left it empty.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{}`, "2", mine), nil, want{Delete, "", nil, nil, 0, "", false}},
		"RemoveEmptyElse": {"An empty secret that another object created is kept.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{}`, "2", "other"), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveLastElse":  {"A secret that another object created is kept without properties.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", "other"), nil, want{Update, `{}`, nil, nil, 0, "", false}},
		"RemoveSome":      {"One update removes one property and writes the other.", replace, adopt, true, strong, []Value{value("a", "1")}, []entry{known("a", "1"), known("b", "1")}, seen(`{"a":"x","b":"2"}`, "1", mine), nil, want{Update, `{"a":"1"}`, []string{"a"}, nil, 0, "", false}},
		"RemoveChanged":   {"A property that others changed is kept.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"y"}`, "2", mine), map[string]string{"1": `{"b":"x"}`}, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveOther":     {"A property of another secret with the same name and version is kept.", replace, adopt, true, strong, nil, []entry{{Property: "b", Version: "1", ID: "j", Created: true}}, seen(`{"b":"x"}`, "1", ""), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveAdoptedP":  {"An adopted property is kept.", replace, adopt, true, strong, nil, []entry{{Property: "b", Version: "1", ID: "i"}}, seen(`{"b":"x"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveUnknown":   {"A property is kept if its former value cannot be read.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"x"}`, "2", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveForObject": {"The secret is kept if the spec now wants a property of it instead of the whole.", replace, adopt, true, strong, []Value{value("a", "1")}, []entry{known("", "1")}, seen(`{"a":"1"}`, "1", mine), nil, want{Nothing, "", nil, nil, 0, "", false}},
		"RemoveInUse":     {"A secret to which another object pushes is kept.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen("v", "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemoveInUseP":    {"A secret is kept if another object pushes a property of it.", replace, adopt, true, strong, nil, []entry{known("", "1")}, seen(`{"x":1}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemovePInUse":    {"A property is kept if another object pushes a property inside it.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":{"c":"2"}}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemovePInside":   {"A property is kept if another object pushes the property that contains it.", replace, adopt, true, strong, nil, []entry{known("b.c", "1")}, seen(`{"a":1,"b":{"c":"2"}}`, "1", mine), nil, want{Nothing, "", nil, nil, 1, "", false}},
		"RemovePOther":    {"A property whose name only starts with the same letters does not count.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"a":1,"b":"2"}`, "1", mine), nil, want{Update, `{"a":1}`, nil, nil, 0, "", false}},
		"RemoveLastUse":   {"A secret to which another object is about to push stays without properties.", replace, adopt, true, strong, nil, []entry{known("b", "1")}, seen(`{"b":"2"}`, "1", mine), nil, want{Update, `{}`, nil, nil, 0, "", false}},
	}
	inUse := map[string][]Use{"RemoveInUse": {{}}, "RemoveInUseP": {{Property: "x"}}, "RemovePInUse": {{Property: "b.c"}}, "RemovePInside": {{Property: "b"}}, "RemovePOther": {{Property: "bc"}}, "RemoveLastUse": {{Property: "x"}}}
	unrecorded := map[string][]Value{
		"Interrupted": {value("", "v")}, "InterruptedChanged": {value("", "v")}, "InterruptedElse": {value("", "v")}, "InterruptedProperty": {value("b", "2")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Policies: Policies{Update: tc.update, Adoption: tc.adopt, Deletes: tc.deletes, Mark: mine, Features: tc.features},
				Want:     tc.want, Known: tc.known, Seen: tc.seen, Unrecorded: unrecorded[name],
				InUse:  inUse[name],
				Former: func(v string) ([]byte, bool) { data, ok := tc.former[v]; return []byte(data), ok },
			})
			got := want{Action: d.Action, Data: string(d.Data), Exists: d.Exists, Left: len(d.Left) + len(d.Released), Marks: d.Successor == mine}
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

// TestHandOver deletes an object whose remote secret other objects push, too. An object with deletionPolicy Delete
// takes over the properties that it pushes, and the mark.
func TestHandOver(t *testing.T) {
	const me = "me"
	created := func(property string) v1alpha1.PushEntryStatus {
		return v1alpha1.PushEntryStatus{Property: property, Version: "1", ID: "i", Created: true}
	}
	type want struct {
		Action    Action
		Successor string
		Released  []string
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
		"Unused":     {"A secret that no other object pushes is deleted.", nil, "", "v", me, nil, want{Action: Delete}},
		"Whole":      {"The other object takes it over.", nil, "", "v", me, []Use{{Property: "", Successor: "b"}}, want{Successor: "b"}},
		"Keeps":      {"An object that never removes anything takes nothing over.", nil, "", "v", me, []Use{{Property: "", Successor: ""}}, want{Released: []string{""}}},
		"Second":     {"The object that removes secrets takes it over, even if others push it, too.", nil, "", "v", me, []Use{{Property: "", Successor: ""}, {Property: "", Successor: "c"}}, want{Successor: "c"}},
		"Property":   {"The object that pushes the property takes over the property and the mark.", nil, "a", `{"a":"1"}`, me, []Use{{Property: "a", Successor: "b"}}, want{Successor: "b"}},
		"Properties": {"One of the objects that push the property takes it over.", nil, "a", `{"a":"1"}`, me, []Use{{Property: "a", Successor: "b"}, {Property: "a", Successor: "c"}}, want{Successor: "b"}},
		"Part":       {"An object that pushes a property takes over the mark, but not the whole.", nil, "", `{"a":"1"}`, me, []Use{{Property: "a", Successor: "b"}}, want{Successor: "b", Released: []string{""}}},
		"Sibling":    {"Our property is removed, and the object with another property takes over the mark.", nil, "a", `{"a":"1","b":"2"}`, me, []Use{{Property: "b", Successor: "b"}}, want{Action: Update, Successor: "b"}},
		"WholeFirst": {"An object that pushes the whole secret takes precedence for the mark.", nil, "a", `{"a":"1"}`, me, []Use{{Property: "a", Successor: "b"}, {Property: "", Successor: "c"}}, want{Successor: "c"}},
		"Others":     {"The mark of a secret that another object created does not change.", nil, "a", `{"a":"1"}`, "z", []Use{{Property: "a", Successor: "b"}}, want{}},
		"Own":        {"An object that also pushes by another store keeps the mark.", nil, "", "v", me, []Use{{Successor: "b"}, {Successor: me}}, want{}},
		"Stays":      {"An object that keeps a property keeps the mark.", []Value{{Property: "b", Data: []byte("2")}}, "a", `{"a":"1","b":"2"}`, me, []Use{{Property: "a", Successor: "b"}}, want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Policies: Policies{Deletes: true, Mark: me, Features: provider.Features{Exclusive: true, Guarded: true}},
				Want:     tc.wants, Known: []v1alpha1.PushEntryStatus{created(tc.known)}, InUse: tc.others,
				Seen: &provider.Observed{Data: []byte(tc.data), Version: "1", ID: "i", Mark: tc.mark},
			})
			got := want{Action: d.Action, Successor: d.Successor}
			for _, e := range d.Released {
				got.Released = append(got.Released, e.Property)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nDecide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
