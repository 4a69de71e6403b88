package policy

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// situation describes a situation in words. In a row of a table it stands for all situations that it covers: a field may
// have several words with | between them, and an empty field stands for all words.
type situation struct {
	creation  string // creationPolicy; unset is Owner.
	deletion  string // deletionPolicy; unset is Retain.
	owns      string // Must there be an ownerReference?
	immutable string // spec.target.immutable
	due       string // Is a refresh due?
	target    string // See targets.
	answer    string // See answers.
	action    string
}

func (s situation) covers(x situation) bool {
	for _, p := range [][2]string{
		{s.creation, x.creation},
		{s.deletion, x.deletion},
		{s.owns, x.owns},
		{s.immutable, x.immutable},
		{s.due, x.due},
		{s.target, x.target},
		{s.answer, x.answer},
		{s.action, x.action},
	} {
		if p[0] != "" && !slices.Contains(strings.Split(p[0], "|"), p[1]) {
			return false
		}
	}
	return true
}

type row[W any] struct {
	reason    string
	situation situation
	want      W
}

// table finds the row for a situation, and records which rows were used.
type table[W any] struct {
	rows  map[string]row[W]
	found map[situation]string
}

// only returns the name of the only row that covers a situation. No row, or several rows, are an error.
func (tb *table[W]) only(t *testing.T, s situation) string {
	if name, ok := tb.found[s]; ok {
		return name
	}
	t.Helper()
	var names []string
	for name, r := range tb.rows {
		if r.situation.covers(s) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		t.Errorf("the rows %q match %+v, want one", names, s)
		names = append(names, "")
	}
	tb.found[s] = names[0]
	return names[0]
}

// used reports rows that matched nothing.
func (tb *table[W]) used(t *testing.T) {
	t.Helper()
	used := map[string]bool{}
	for _, name := range tb.found {
		used[name] = true
	}
	for name := range tb.rows {
		if !used[name] {
			t.Errorf("row %q matches no situation", name)
		}
	}
}

// Words that are used together.
const (
	makes  = "Owner|Orphan|CreateOrMerge"
	writes = makes + "|Merge"
	// eager policies revert drift at once; Orphan does at the next refresh.
	eager = "Owner|Merge|CreateOrMerge"

	nowhere = "absent|withheld"
	// strange Secrets were never written by an ExternalSecret with this name.
	strange = "orphaned|empty|of another dead"
	// inherited Secrets were written by a deleted ExternalSecret with this name.
	inherited = "of a dead namesake|adopted by a dead namesake"
	// right Secrets are as this object wrote them.
	right = "owned|adopted|shared|with a guest"
	// wrong Secrets were written by this object, and changed since.
	wrong = "drifted|overwritten|unmarked"
	// moved Secrets were written when the spec wanted another owner.
	moved = "moved|moved and drifted|of another policy"
	open  = strange + "|" + inherited + "|" + right + "|" + wrong + "|" + moved

	// full answers have everything that the spec names.
	full = "same|changed|grown|same with other labels"
	// failure answers are no definite "does not exist".
	failure = "denied|unavailable|one gone and one denied"
)

// unread returns the decisions before the provider is read.
func unread() *table[Action] {
	return &table[Action]{found: map[situation]string{}, rows: map[string]row[Action]{
		"NoneDue":    {"None reads, so that errors are reported.", situation{creation: "None", due: yes}, Read},
		"NoneNotDue": {"None reverts no drift.", situation{creation: "None", due: no}, Nothing},

		"Absent":               {"Owner and CreateOrMerge create the Secret again at once, also under CreatedOnce.", situation{creation: "Owner|CreateOrMerge", target: "absent"}, Read},
		"AbsentOrphanDue":      {"Orphan creates the Secret again at a refresh.", situation{creation: "Orphan", target: nowhere, due: yes}, Read},
		"AbsentOrphanNotDue":   {"Orphan does not create the Secret again before the next refresh.", situation{creation: "Orphan", target: nowhere, due: no}, Nothing},
		"AbsentMerge":          {"Merge never creates, it waits, whatever the provider answers.", situation{creation: "Merge", target: nowhere}, Missing},
		"AbsentOnPurposeDue":   {"At a refresh the provider may have values again.", situation{creation: "Owner|CreateOrMerge", target: "withheld", due: yes}, Read},
		"AbsentOnPurposeStays": {"A Secret missing because of deletionPolicy Delete was not deleted by hand. It is not created again before a refresh.", situation{creation: "Owner|CreateOrMerge", target: "withheld", due: no}, Nothing},

		"Foreign":               {"An ownerReference of another owner is a Conflict. Nothing is written, so nothing is read.", situation{creation: makes, target: "foreign|ours and foreign"}, Conflict},
		"ForeignMerge":          {"Merge is for Secrets of other owners.", situation{creation: "Merge", target: "foreign"}, Read},
		"ForeignMergedDue":      {"Merge refreshes its keys in them.", situation{creation: "Merge", target: "ours and foreign", due: yes}, Read},
		"ForeignMergedNotDue":   {"Without drift, Merge reads nothing.", situation{creation: "Merge", target: "ours and foreign", due: no}, Nothing},
		"Rival":                 {"Under Owner the mark of another existing ExternalSecret is a Conflict.", situation{creation: "Owner", target: "rival"}, Conflict},
		"RivalShared":           {"Merge and CreateOrMerge share the Secret.", situation{creation: "Merge|CreateOrMerge", target: "rival"}, Read},
		"RivalOrphanDue":        {"Orphan shares the Secret.", situation{creation: "Orphan", target: "rival", due: yes}, Read},
		"RivalOrphanNotDue":     {"Orphan reverts nothing before the next refresh.", situation{creation: "Orphan", target: "rival", due: no}, Nothing},
		"Terminating":           {"A Secret being deleted must be removed before it can be created again.", situation{creation: writes, target: "terminating"}, Wait},
		"Right":                 {"Without drift nothing is read between two refreshes.", situation{creation: writes, target: right, due: no}, Nothing},
		"RightDue":              {"A refresh reads.", situation{creation: writes, target: right, due: yes}, Read},
		"Adoptable":             {"A Secret without an owner is adopted at once; the mark of a deleted object does not block.", situation{creation: eager, target: strange + "|" + inherited}, Read},
		"AdoptableOrphanDue":    {"Orphan adopts at a refresh.", situation{creation: "Orphan", target: strange + "|" + inherited, due: yes}, Read},
		"AdoptableOrphanNotDue": {"Orphan adopts a replacement of its Secret at the next refresh.", situation{creation: "Orphan", target: strange + "|" + inherited, due: no}, Nothing},
		"Wrong":                 {"Drift of own keys is reverted at once.", situation{creation: eager, target: wrong}, Read},
		"WrongOrphanDue":        {"Orphan reverts drift at a refresh.", situation{creation: "Orphan", target: wrong, due: yes}, Read},
		"WrongOrphanNotDue":     {"Orphan does not revert drift before the next refresh.", situation{creation: "Orphan", target: wrong, due: no}, Nothing},
		"Moved":                 {"The ownerReference is added or removed at once, without reading the provider, whether or not a refresh is due.", situation{creation: writes, target: moved}, Own},

		"Sealed":          {"An immutable Secret is never rewritten, and reading stops, also if a refresh is requested.", situation{creation: writes, target: "sealed", immutable: yes}, Nothing},
		"SealedTakenBack": {"An immutable Secret cannot become mutable again.", situation{creation: writes, target: "sealed|sealed, no label", immutable: no}, Refuse},
		"SealedMoved":     {"The ownerReference of an immutable Secret can be changed.", situation{creation: writes, target: "sealed and moved"}, Own},
		"SealedUnlabeled": {"Without the label, its deletion would not be noticed.", situation{creation: writes, target: "sealed, no label", immutable: yes}, Own},
	}}
}

// answered returns the decisions after the provider was read. The Secret may have changed since the first decision, so
// there are rows also for Secrets that need no reading.
func answered() *table[Decision] {
	is := func(a Action) Decision { return Decision{Action: a} }
	nothingThere, deleted := Decision{Action: Nothing, Absent: true}, Decision{Action: Delete, Absent: true}
	return &table[Decision]{found: map[situation]string{}, rows: map[string]row[Decision]{
		"None":      {"None writes nothing.", situation{creation: "None", answer: full}, is(Nothing)},
		"NoneError": {"None reports errors. It allows only deletionPolicy Retain, so a missing secret is an error.", situation{creation: "None", answer: failure + "|gone|one of two gone"}, is(Keep)},

		"Create":       {"A missing Secret is created.", situation{creation: makes, target: nowhere, answer: full}, is(Create)},
		"CreateFailed": {"Only a definite answer changes anything.", situation{creation: makes, target: nowhere, answer: failure}, is(Keep)},
		"CreateRetain": {"Under Retain a missing remote secret is an error, also for a new object.", situation{creation: makes, deletion: "Retain", target: nowhere, answer: "gone|one of two gone"}, is(Keep)},
		"CreatePart":   {"Under Delete and Merge, missing keys are dropped without an error.", situation{creation: makes, deletion: "Delete|Merge", target: nowhere, answer: "one of two gone"}, is(Create)},
		"CreateNot":    {"Under Delete there is no Secret without a key, and no error, also for a new object.", situation{creation: makes, deletion: "Delete", target: nowhere, answer: "gone"}, nothingThere},
		"CreateEmpty":  {"Under Merge only keys are dropped; a deleted Secret is created again.", situation{creation: makes, deletion: "Merge", target: nowhere, answer: "gone"}, is(Create)},
		"Missing":      {"Merge never creates.", situation{creation: "Merge", target: nowhere}, is(Missing)},

		"Foreign":         {"An ownerReference of another owner is a Conflict, and nothing is written.", situation{creation: makes, target: "foreign|ours and foreign"}, is(Conflict)},
		"Rival":           {"Under Owner the mark of another existing ExternalSecret is a Conflict.", situation{creation: "Owner", target: "rival"}, is(Conflict)},
		"Terminating":     {"A Secret being deleted must be removed before it can be created again.", situation{creation: writes, target: "terminating"}, is(Wait)},
		"Sealed":          {"An immutable Secret is never rewritten, whatever the provider answers.", situation{creation: writes, target: "sealed", immutable: yes}, is(Nothing)},
		"SealedMoved":     {"Its ownerReference can be changed.", situation{creation: writes, target: "sealed and moved", immutable: yes}, is(Own)},
		"SealedUnlabeled": {"Its label can be written.", situation{creation: writes, target: "sealed, no label", immutable: yes}, is(Own)},
		"SealedTakenBack": {"It cannot become mutable again.", situation{creation: writes, target: "sealed|sealed and moved|sealed, no label", immutable: no}, is(Refuse)},

		"Failed":       {"Denied, throttled, timeout, 5xx and a batch with one failed entry change nothing, under every policy.", situation{creation: writes, target: open, answer: failure}, is(Keep)},
		"FailedShared": {"The same holds for Secrets shared with others.", situation{creation: "Orphan|Merge|CreateOrMerge", target: "rival", answer: failure}, is(Keep)},
		"FailedMerge":  {"The same holds for Secrets of other owners.", situation{creation: "Merge", target: "foreign|ours and foreign", answer: failure}, is(Keep)},
		"Retain":       {"Under Retain the Secret is unchanged, with all keys, if any is missing.", situation{creation: writes, deletion: "Retain", target: open, answer: "gone|one of two gone"}, is(Keep)},
		"RetainShared": {"The same holds for Secrets shared with others.", situation{creation: "Orphan|Merge|CreateOrMerge", deletion: "Retain", target: "rival", answer: "gone|one of two gone"}, is(Keep)},
		"RetainMerge":  {"The same holds for Secrets of other owners.", situation{creation: "Merge", deletion: "Retain", target: "foreign|ours and foreign", answer: "gone|one of two gone"}, is(Keep)},

		"Same":        {"A refresh that finds nothing new writes nothing.", situation{creation: writes, target: right, answer: "same"}, is(Nothing)},
		"SameForeign": {"A refresh that finds nothing new writes nothing.", situation{creation: "Merge", target: "ours and foreign", answer: "same"}, is(Nothing)},
		"SameMoved":   {"Only the owner is updated.", situation{creation: writes, target: "moved|of another policy", answer: "same"}, is(Own)},
		"News":        {"New values, keys and labels are written.", situation{creation: writes, target: right + "|moved|of another policy", answer: "changed|grown|same with other labels"}, is(Apply)},
		"NewsForeign": {"New values, keys and labels are written.", situation{creation: "Merge", target: "ours and foreign", answer: "changed|grown|same with other labels"}, is(Apply)},
		"Revert":      {"Drift is reverted.", situation{creation: writes, target: wrong + "|moved and drifted", answer: full}, is(Apply)},
		"Adopt":       {"A Secret without an existing owner is adopted, and keys of others stay.", situation{creation: writes, target: strange + "|" + inherited, answer: full}, is(Apply)},
		"Share":       {"Orphan, Merge and CreateOrMerge share with a rival.", situation{creation: "Orphan|Merge|CreateOrMerge", target: "rival", answer: full}, is(Apply)},
		"Merge":       {"Merge adds to Secrets of other owners.", situation{creation: "Merge", target: "foreign", answer: full}, is(Apply)},

		"Part":       {"Under Delete and Merge the missing key is dropped, and the other stays.", situation{creation: writes, deletion: "Delete|Merge", target: open, answer: "one of two gone"}, is(Apply)},
		"PartShared": {"The same holds for Secrets shared with others.", situation{creation: "Orphan|Merge|CreateOrMerge", deletion: "Delete|Merge", target: "rival", answer: "one of two gone"}, is(Apply)},
		"PartMerge":  {"The same holds for Secrets of other owners.", situation{creation: "Merge", deletion: "Merge", target: "foreign|ours and foreign", answer: "one of two gone"}, is(Apply)},

		"Drop":        {"Under Merge the object's own keys are dropped, and the Secret stays.", situation{creation: writes, deletion: "Merge", target: inherited + "|" + right + "|" + wrong + "|" + moved, answer: "gone"}, is(Apply)},
		"DropForeign": {"Under Merge the object's own keys are dropped, and the Secret stays.", situation{creation: "Merge", deletion: "Merge", target: "ours and foreign", answer: "gone"}, is(Apply)},
		"DropOwner":   {"Owner adopts, even without a key.", situation{creation: "Owner", deletion: "Merge", target: strange, answer: "gone"}, is(Apply)},
		"DropNothing": {"Without own keys and values, only the mark shows that the object is in sync.", situation{creation: "Orphan|Merge|CreateOrMerge", deletion: "Merge", target: strange + "|rival", answer: "gone"}, is(Apply)},
		"DropNone":    {"Without own keys and values, only the mark shows that the object is in sync.", situation{creation: "Merge", deletion: "Merge", target: "foreign", answer: "gone"}, is(Apply)},

		"Delete":            {"Under Delete, a Secret that this object created is deleted when it has no key left, drifted or not.", situation{deletion: "Delete", target: "owned|drifted|" + moved, answer: "gone"}, deleted},
		"DeleteOwned":       {"An adopted Secret is deleted if this object owns it.", situation{owns: yes, deletion: "Delete", target: "adopted|unmarked", answer: "gone"}, deleted},
		"DeleteNotOwned":    {"A Secret that this object neither created nor owns is not deleted; its own keys are dropped.", situation{owns: no, deletion: "Delete", target: "adopted|unmarked", answer: "gone"}, is(Apply)},
		"DeleteNamesake":    {"A Secret created by a former object with this name counts as created.", situation{deletion: "Delete", target: "of a dead namesake", answer: "gone"}, deleted},
		"DeleteAdoptedOnce": {"A Secret only adopted by a former object with this name does not count as created.", situation{owns: no, deletion: "Delete", target: "adopted by a dead namesake", answer: "gone"}, is(Apply)},
		"DeleteAboutToOwn":  {"A Secret that this object is about to own is deleted at once, without first becoming its owner.", situation{owns: yes, deletion: "Delete", target: "adopted by a dead namesake", answer: "gone"}, deleted},
		"DeleteShared":      {"A key of another manager keeps the Secret; the object's own keys are dropped.", situation{deletion: "Delete", target: "shared|with a guest|overwritten", answer: "gone"}, is(Apply)},
		"DeleteStrange":     {"A Secret that was never ours stays, without an error.", situation{deletion: "Delete", target: strange, answer: "gone"}, nothingThere},
		"DeleteRival":       {"A Secret that was never ours stays, without an error.", situation{creation: "Orphan", deletion: "Delete", target: "rival", answer: "gone"}, nothingThere},
	}}
}

// fences returns whether the ExternalSecret is read live before a write.
func fences() *table[bool] {
	return &table[bool]{found: map[situation]string{}, rows: map[string]row[bool]{
		"NoWrite":       {"An action without a write needs no fence.", situation{action: "Read|Nothing|Keep|Refuse|Yield|Missing|Wait"}, false},
		"Always":        {"It may apply an ownerReference with the uid of a deleted object, and a deletion cannot be undone.", situation{action: "Own|Delete"}, true},
		"Create":        {"The object may be deleted, and its Secret garbage-collected with it.", situation{action: "Create"}, true},
		"ApplyOurs":     {"The mark has our uid and generation, and the ownerReference exists.", situation{action: "Apply", target: right + "|drifted|overwritten|ours and foreign"}, false},
		"ApplyUnmarked": {"No mark shows that this generation has written before.", situation{action: "Apply", target: "unmarked"}, true},
		"ApplyOwner":    {"With an ownerReference to a deleted object, the garbage collector deletes the Secret.", situation{action: "Apply", owns: yes, target: strange + "|moved|moved and drifted"}, true},
		"ApplyStrange":  {"No mark shows that this generation has written before.", situation{action: "Apply", owns: no, target: strange + "|foreign|rival"}, true},
		"ApplyNoOwner":  {"Removing an ownerReference does no harm.", situation{action: "Apply", owns: no, target: "moved|moved and drifted"}, false},
		"ApplyPolicy":   {"The mark and the ownerReference are ours.", situation{action: "Apply", target: "of another policy"}, false},
		"ApplyNamesake": {"The mark names another uid: one of the two objects is deleted.", situation{action: "Apply", target: inherited}, true},
	}}
}

// targets returns the states of a Secret, for an object that must own it or not.
func targets(creation v1alpha1.CreationPolicy, owns bool) map[string]Target {
	controls := true
	database := &metav1.OwnerReference{Kind: "Database", Name: "other", UID: "uid-db", Controller: &controls}
	// The same policy spelled differently, and another policy.
	spelled, before := creation, v1alpha1.CreateOrphan
	switch creation {
	case "":
		spelled = v1alpha1.CreateOwner
	case v1alpha1.CreateOwner:
		spelled = ""
	case v1alpha1.CreateOrphan:
		before = ""
	}
	ours := Target{
		Exists: true, Owned: owns, Intact: true, Watched: true, Holds: true,
		Mark: Mark{Name: "db", UID: "uid-me", Generation: 3, Policy: spelled, Created: true, Hash: "h", Fields: "f"},
	}
	former := Target{
		Exists: true, Intact: true, Watched: true, Holds: true,
		Mark: Mark{Name: "db", UID: "uid-dead", Generation: 2, Policy: spelled, Created: true, Hash: "h", Fields: "f"},
	}
	with := func(t Target, change func(t *Target)) Target {
		change(&t)
		return t
	}
	return map[string]Target{
		"absent":   {},
		"withheld": {}, // Missing because the provider had no value for it.

		"orphaned":                   {Exists: true, Others: true},
		"empty":                      {Exists: true},
		"of another dead":            {Exists: true, Others: true}, // An owner that does not exist owns nothing.
		"of a dead namesake":         former,
		"adopted by a dead namesake": with(former, func(t *Target) { t.Mark.Created = false }),
		"foreign":                    {Exists: true, Others: true, Foreign: database},
		"rival":                      {Exists: true, Others: true, OtherWriter: "other"},

		"owned":             ours,
		"adopted":           with(ours, func(t *Target) { t.Mark.Created = false }),
		"shared":            with(ours, func(t *Target) { t.Others = true }),
		"with a guest":      with(ours, func(t *Target) { t.Others, t.OtherWriter = true, "other" }),
		"drifted":           with(ours, func(t *Target) { t.Intact = false }),
		"overwritten":       with(ours, func(t *Target) { t.Intact, t.Others = false, true }),
		"unmarked":          with(ours, func(t *Target) { t.Intact, t.Mark = false, Mark{} }),
		"moved":             with(ours, func(t *Target) { t.Owned = !owns }),
		"moved and drifted": with(ours, func(t *Target) { t.Owned, t.Intact = !owns, false }),
		"of another policy": with(ours, func(t *Target) { t.Mark.Policy = before }),
		"ours and foreign":  with(ours, func(t *Target) { t.Others, t.Foreign = true, database }),
		"terminating":       with(ours, func(t *Target) { t.Terminating = true }),
		"sealed":            with(ours, func(t *Target) { t.Sealed = true }),
		"sealed and moved":  with(ours, func(t *Target) { t.Sealed, t.Owned = true, !owns }),
		"sealed, no label":  with(ours, func(t *Target) { t.Sealed, t.Intact, t.Watched = true, false, false }),
	}
}

// answers are the answers of the provider for two secrets that the spec names.
var answers = map[string]Reading{
	"same":                    {Values: 2, Keys: 2, Hash: "h", Fields: "f"},
	"changed":                 {Values: 2, Keys: 2, Hash: "changed", Fields: "f"},
	"grown":                   {Values: 3, Keys: 3, Hash: "grown", Fields: "grown"},
	"same with other labels":  {Values: 2, Keys: 2, Hash: "h", Fields: "labels"},
	"gone":                    {NotFound: true, Hash: "none", Fields: "none"},
	"one of two gone":         {NotFound: true, Values: 1, Keys: 1, Hash: "one", Fields: "one"},
	"denied":                  {Failed: true, Hash: "none", Fields: "none"},
	"unavailable":             {Failed: true, Values: 1, Keys: 1, Hash: "one", Fields: "one"},
	"one gone and one denied": {Failed: true, NotFound: true, Hash: "none", Fields: "none"},
}

// refreshes returns the situations of an object when it is reconciled.
func refreshes() map[string]struct {
	in  RefreshInput
	due string
} {
	type moment = struct {
		in  RefreshInput
		due string
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	moments := map[string]moment{}
	for name, p := range map[string]struct {
		policy   v1alpha1.RefreshPolicy
		interval time.Duration
		next     time.Time
		due      string
	}{
		"Periodic":           {v1alpha1.RefreshPeriodic, time.Hour, now, yes},
		"between two":        {v1alpha1.RefreshPeriodic, time.Hour, now.Add(time.Minute), no},
		"Periodic without":   {v1alpha1.RefreshPeriodic, 0, now, no},
		"OnChange unchanged": {v1alpha1.RefreshOnChange, time.Hour, now, no},
		"CreatedOnce":        {v1alpha1.RefreshCreatedOnce, time.Hour, now, no},
	} {
		in := RefreshInput{Policy: p.policy, Interval: p.interval, Now: now, Next: p.next, Refreshed: true}
		moments[name] = moment{in, p.due}
		requested := in
		requested.Request = "now"
		moments[name+", requested"] = moment{requested, yes}
		failing := in
		failing.Failing = true
		moments[name+", failing"] = moment{failing, yes}
		in.Refreshed = false
		moments[name+", first"] = moment{in, yes}
		requested.Refreshed = false
		moments[name+", first and requested"] = moment{requested, yes}
	}
	return moments
}

// policies are the three policies of a target.
type policies struct {
	creation v1alpha1.CreationPolicy
	deletion v1alpha1.DeletionPolicy
	cleanup  v1alpha1.CleanupPolicy
}

func everyPolicy() iter.Seq[policies] {
	return func(yield func(policies) bool) {
		for _, c := range []v1alpha1.CreationPolicy{"", v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge, v1alpha1.CreateNone} {
			for _, d := range []v1alpha1.DeletionPolicy{"", v1alpha1.DeletionRetain, v1alpha1.DeletionDelete, v1alpha1.DeletionMerge} {
				for _, u := range []v1alpha1.CleanupPolicy{"", v1alpha1.CleanupOnDelete, v1alpha1.CleanupNever} {
					if !yield(policies{c, d, u}) {
						return
					}
				}
			}
		}
	}
}

// accepted reports whether the API server accepts the policies, by the CEL rules of the target.
func (p policies) accepted() bool {
	switch {
	case p.deletion == v1alpha1.DeletionDelete && slices.Contains([]v1alpha1.CreationPolicy{v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge, v1alpha1.CreateNone}, p.creation):
		return false
	case p.deletion == v1alpha1.DeletionMerge && p.creation == v1alpha1.CreateNone:
		return false
	case p.cleanup != "" && p.creation != "" && p.creation != v1alpha1.CreateOwner:
		return false
	}
	return true
}

// combination is one element of the product: the input for the tables and for Decide.
type combination struct {
	situation situation
	refresh   RefreshInput
	self      Self
	target    Target
	reading   Reading
}

// lifecycles returns all combinations that the API server accepts.
func lifecycles() iter.Seq[combination] {
	word := map[bool]string{true: yes, false: no}
	moments := refreshes()
	return func(yield func(combination) bool) {
		for p := range everyPolicy() {
			if !p.accepted() {
				continue
			}
			// If cleanupPolicy is unset, the flag applies: OnDelete.
			owns := (p.creation == "" || p.creation == v1alpha1.CreateOwner) && p.cleanup != v1alpha1.CleanupNever
			s := situation{creation: string(p.creation), deletion: string(p.deletion), owns: word[owns]}
			if s.creation == "" {
				s.creation = "Owner"
			}
			if s.deletion == "" {
				s.deletion = "Retain"
			}
			for target, t := range targets(p.creation, owns) {
				for answer, r := range answers {
					for _, m := range moments {
						for immutable, w := range word {
							s.target, s.answer, s.due, s.immutable = target, answer, m.due, w
							self := Self{
								UID: "uid-me", Generation: 3, Creation: p.creation, Deletion: p.deletion, Owns: owns,
								Immutable: immutable, Absent: target == "withheld",
							}
							if !yield(combination{s, m.in, self, t, r}) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// TestLifecycle checks every combination of policies, states of the Secret and answers of the provider. It calls Decide
// like the controller does: first without an answer, then with one. Exactly one row of each table must match.
func TestLifecycle(t *testing.T) {
	before, after, fence := unread(), answered(), fences()
	wrong := map[string]int{}
	check := func(name, reason string, c combination, want, got Decision) {
		s := c.situation
		want.Fence = fence.rows[fence.only(t, situation{action: string(want.Action), owns: s.owns, target: s.target})].want
		got.Message = ""
		if want == got {
			return
		}
		if wrong[name]++; wrong[name] == 1 {
			t.Errorf("%s: %s\n%+v\nDecide(): -want, +got:\n%s", name, reason, s, cmp.Diff(want, got))
		}
	}

	combinations := 0
	for c := range lifecycles() {
		combinations++
		s := c.situation
		due := RefreshDue(c.refresh)
		if (due != NotDue) != (s.due == yes) {
			t.Errorf("RefreshDue(%+v): %q, but it is due: %s", c.refresh, due, s.due)
		}
		c.self.Due = due
		name := before.only(t, situation{creation: s.creation, owns: s.owns, immutable: s.immutable, due: s.due, target: s.target})
		check("unread "+name, before.rows[name].reason, c, Decision{Action: before.rows[name].want}, Decide(c.self, c.target, nil))

		c.self.Due = NotDue
		name = after.only(t, situation{creation: s.creation, deletion: s.deletion, owns: s.owns, immutable: s.immutable, target: s.target, answer: s.answer})
		check("answered "+name, after.rows[name].reason, c, after.rows[name].want, Decide(c.self, c.target, &c.reading))
	}
	before.used(t)
	after.used(t)
	fence.used(t)
	for name, n := range wrong {
		t.Errorf("%s: %d combinations are wrong", name, n)
	}
	if want := 36 * 24 * 9 * 25 * 2; combinations != want {
		t.Errorf("%d combinations were tried, want %d", combinations, want)
	}
}

// TestForbidden checks that TestLifecycle leaves out only the combinations that the API server rejects.
func TestForbidden(t *testing.T) {
	accepts := map[v1alpha1.CreationPolicy]struct {
		deletion []v1alpha1.DeletionPolicy
		cleanup  []v1alpha1.CleanupPolicy
	}{
		"":                           {[]v1alpha1.DeletionPolicy{"", "Retain", "Delete", "Merge"}, []v1alpha1.CleanupPolicy{"", "OnDelete", "Never"}},
		v1alpha1.CreateOwner:         {[]v1alpha1.DeletionPolicy{"", "Retain", "Delete", "Merge"}, []v1alpha1.CleanupPolicy{"", "OnDelete", "Never"}},
		v1alpha1.CreateOrphan:        {[]v1alpha1.DeletionPolicy{"", "Retain", "Delete", "Merge"}, []v1alpha1.CleanupPolicy{""}},
		v1alpha1.CreateMerge:         {[]v1alpha1.DeletionPolicy{"", "Retain", "Merge"}, []v1alpha1.CleanupPolicy{""}},
		v1alpha1.CreateCreateOrMerge: {[]v1alpha1.DeletionPolicy{"", "Retain", "Merge"}, []v1alpha1.CleanupPolicy{""}},
		v1alpha1.CreateNone:          {[]v1alpha1.DeletionPolicy{"", "Retain"}, []v1alpha1.CleanupPolicy{""}},
	}
	all, forbidden := 0, 0
	for p := range everyPolicy() {
		all++
		a := accepts[p.creation]
		if want := slices.Contains(a.deletion, p.deletion) && slices.Contains(a.cleanup, p.cleanup); p.accepted() != want {
			t.Errorf("%+v: accepted %t, want %t", p, p.accepted(), want)
		}
		if !p.accepted() {
			forbidden++
		}
	}
	if all != 72 || forbidden != 36 {
		t.Errorf("%d of %d combinations are left out, want 36 of 72", forbidden, all)
	}
}

// written returns the state after a decision was executed.
func (c combination) written(d Decision) (Self, Target) {
	self, t := c.self, c.target
	self.Absent = d.Absent
	switch d.Action { //nolint:exhaustive // The other actions change nothing.
	case Create, Apply:
		t.Mark = Mark{
			Name: "db", UID: self.UID, Generation: self.Generation, Policy: self.Creation,
			Created: t.Mark.Created || d.Action == Create, Hash: c.reading.Hash, Fields: c.reading.Fields,
		}
		t.Exists, t.Owned, t.Intact, t.Holds, t.Sealed, t.Watched = true, self.Owns, true, c.reading.Keys > 0, self.Immutable, true
	case Own:
		t.Watched = true
		t.Owned, t.Mark.UID, t.Mark.Policy, t.Mark.Generation = self.Owns, self.UID, self.Creation, self.Generation
	case Delete:
		t = Target{}
	}
	return self, t
}

// TestStableAfterSuccess checks that after a success nothing is done, and nothing is read before the next refresh. A refresh that
// finds nothing new writes nothing, OnChange reads only on a change, and CreatedOnce reads once.
func TestStableAfterSuccess(t *testing.T) {
	type unsettled struct {
		creation, deletion, target, answer string
		did, next                          Action
	}
	type asked struct {
		situation situation
		due       Why
	}
	seen := map[asked]bool{}
	wrong := map[unsettled]int{}
	for c := range lifecycles() {
		// Different refresh policies, and different spellings of one policy, have the same input.
		a := asked{c.situation, RefreshDue(c.refresh)}
		if seen[a] {
			continue
		}
		seen[a] = true

		c.self.Due = a.due
		did := Decide(c.self, c.target, nil)
		c.self.Due = NotDue
		switch did.Action { //nolint:exhaustive // The other actions change nothing.
		case Own:
		case Read:
			did = Decide(c.self, c.target, &c.reading)
		default:
			continue
		}
		if !slices.Contains([]Action{Create, Apply, Own, Delete, Nothing}, did.Action) {
			continue
		}
		self, target := c.written(did)
		next := Decide(self, target, nil).Action
		stable := next == Nothing || did.Action == Own && (next == Read && !target.Intact || next == Refuse)
		if stable && next == Nothing && did.Action != Own && did.Action != Nothing {
			next = Decide(self, target, &c.reading).Action
			stable = next == Nothing
		}
		if !stable {
			wrong[unsettled{c.situation.creation, c.situation.deletion, c.situation.target, c.situation.answer, did.Action, next}]++
		}
	}
	for u, n := range wrong {
		t.Errorf("%d times %+v", n, u)
	}
}

// decision is a case of the tables below.
type decision struct {
	reason  string
	self    Self
	target  Target
	reading *Reading
	want    Decision
}

func decide(t *testing.T, cases map[string]decision) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.self.UID, tc.self.Generation = "uid-me", 3
			got := Decide(tc.self, tc.target, tc.reading)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Decision{}, "Message")); diff != "" {
				t.Errorf("\n%s\nDecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// marked returns the mark of a generation of the object with a uid.
func marked(uid types.UID, generation int64) Mark {
	return Mark{Name: "db", UID: uid, Generation: generation, Created: true, Hash: "h", Fields: "f"}
}

func TestDecideFence(t *testing.T) {
	owner, orphan, other := Self{Owns: true}, Self{Creation: v1alpha1.CreateOrphan}, Self{Creation: v1alpha1.CreateCreateOrMerge}
	same, changed, notFound := &Reading{Values: 2, Keys: 2, Hash: "h", Fields: "f"}, &Reading{Values: 2, Keys: 2, Hash: "i", Fields: "f"}, &Reading{NotFound: true}
	unmade := &Reading{Values: 2, Keys: 2, Hash: "h", Fields: "f", Same: true}
	ours := func(m Mark) Target {
		return Target{Exists: true, Owned: true, Intact: true, Watched: true, Holds: true, Mark: m}
	}
	deletes := owner
	deletes.Deletion = v1alpha1.DeletionDelete
	lower := marked("uid-dead", 1)

	decide(t, map[string]decision{
		"OlderGeneration":  {"After a mark of an earlier generation, a later generation than ours may be about to write.", owner, ours(marked("uid-me", 2)), changed, Decision{Action: Apply, Fence: true}},
		"OlderSame":        {"Each generation leaves a mark, so that an operator delayed with an earlier one sees it.", owner, ours(marked("uid-me", 2)), same, Decision{Action: Apply, Fence: true}},
		"SameGeneration":   {"This generation has written before.", owner, ours(marked("uid-me", 3)), changed, Decision{Action: Apply}},
		"HigherGeneration": {"An operator with a higher generation has the newer spec.", owner, ours(marked("uid-me", 4)), changed, Decision{Action: Apply, Fence: true}},
		"HigherDrifted":    {"The same holds for a write that reverts drift.", owner, Target{Exists: true, Owned: true, Holds: true, Mark: marked("uid-me", 4)}, same, Decision{Action: Apply, Fence: true}},
		"HigherSame":       {"Without a write there is no fence.", owner, ours(marked("uid-me", 4)), same, Decision{Action: Nothing}},
		"OlderUnmade":      {"Unchanged inputs are not rendered again: only the mark gets the new generation.", owner, ours(marked("uid-me", 2)), unmade, Decision{Action: Own, Fence: true}},
		"SameUnmade":       {"Nothing needs to be done.", owner, ours(marked("uid-me", 3)), unmade, Decision{Action: Nothing}},
		"HigherUnmade":     {"Without a write there is no fence.", owner, ours(marked("uid-me", 4)), unmade, Decision{Action: Nothing}},
		"OtherUID":         {"Generations of two uids cannot be compared.", owner, ours(lower), changed, Decision{Action: Apply, Fence: true}},
		"OtherUIDSame":     {"The hash is keyed with the uid, so an equal hash proves nothing.", owner, ours(lower), same, Decision{Action: Apply, Fence: true}},
		"OwnerToCome":      {"With an ownerReference to a deleted object, the garbage collector deletes the Secret.", owner, Target{Exists: true}, same, Decision{Action: Apply, Fence: true}},
		"OwnerThere":       {"Without a mark, the last writer is unknown.", owner, Target{Exists: true, Owned: true, Holds: true}, same, Decision{Action: Apply, Fence: true}},
		"OwnerToGo":        {"Removing an ownerReference does no harm.", Self{}, ours(marked("uid-me", 3)), changed, Decision{Action: Apply}},
		"NoOwner":          {"The adopting object may be deleted, with or without ownerReference.", orphan, Target{Exists: true}, same, Decision{Action: Apply, Fence: true}},
		"Own":              {"A change of the ownerReference is fenced.", Self{}, ours(marked("uid-me", 3)), nil, Decision{Action: Own, Fence: true}},
		"OwnAnswered":      {"It is fenced also after reading.", Self{}, ours(marked("uid-me", 3)), same, Decision{Action: Own, Fence: true}},
		"OwnPolicy":        {"It is fenced also if only the mark changes.", other, Target{Exists: true, Intact: true, Watched: true, Mark: func() Mark { m := marked("uid-me", 3); m.Policy = v1alpha1.CreateMerge; return m }()}, nil, Decision{Action: Own, Fence: true}},
		"Delete":           {"A deletion cannot be undone.", deletes, ours(marked("uid-me", 3)), notFound, Decision{Action: Delete, Fence: true, Absent: true}},
		"Create":           {"The object may be deleted, and its Secret garbage-collected with it.", owner, Target{}, same, Decision{Action: Create, Fence: true}},
		"CreateNothing":    {"Without a creation there is no fence.", Self{Deletion: v1alpha1.DeletionDelete}, Target{}, notFound, Decision{Action: Nothing, Absent: true}},
		"KeepOtherUID":     {"Keep writes nothing, so there is no fence.", owner, ours(lower), notFound, Decision{Action: Keep}},
		"YieldOtherUID":    {"Yield writes nothing, so there is no fence.", owner, Target{Exists: true, Mark: lower, Foreign: &metav1.OwnerReference{Kind: "Database"}}, same, Decision{Action: Conflict}},
		"SealedByNamesake": {"An object that takes over an immutable Secret marks it, and leaves the data unchanged.", Self{Immutable: true}, Target{Exists: true, Intact: true, Watched: true, Holds: true, Sealed: true, Mark: lower}, nil, Decision{Action: Own, Fence: true}},
		"SealedUnmarked":   {"An immutable Secret without a mark is marked again.", Self{Immutable: true}, Target{Exists: true, Holds: true, Sealed: true}, same, Decision{Action: Own, Fence: true}},
	})
}

func TestDecideFlags(t *testing.T) {
	shares := Self{Creation: v1alpha1.CreateCreateOrMerge}
	blocked := Self{Creation: v1alpha1.CreateCreateOrMerge, Blocked: true}
	blockedDue := Self{Creation: v1alpha1.CreateCreateOrMerge, Blocked: true, Due: Elapsed}
	orphan := Self{Creation: v1alpha1.CreateOrphan, Deletion: v1alpha1.DeletionDelete}
	deletes := Self{Deletion: v1alpha1.DeletionDelete}
	withheld, withheldDue := Self{Deletion: v1alpha1.DeletionDelete, Absent: true}, Self{Deletion: v1alpha1.DeletionDelete, Absent: true, Due: Elapsed}
	merges := Self{Creation: v1alpha1.CreateMerge, Deletion: v1alpha1.DeletionMerge}

	with := func(m Mark, p v1alpha1.CreationPolicy) Mark {
		m.Policy = p
		return m
	}
	mark := marked("uid-me", 3)
	ours := func(p v1alpha1.CreationPolicy) Target {
		return Target{Exists: true, Intact: true, Watched: true, Holds: true, Mark: with(mark, p)}
	}
	emptied := Target{Exists: true, Intact: true, Watched: true, Others: true, Mark: Mark{Name: "db", UID: "uid-me", Generation: 3, Policy: v1alpha1.CreateMerge, Hash: "none", Fields: "none"}}
	otherWriter := func(m Mark) Target {
		return Target{Exists: true, Intact: true, Watched: true, Others: true, Mark: m, OtherWriter: "other"}
	}

	held := &Reading{Values: 2, Hash: "none", Fields: "none"}
	some := &Reading{Values: 2, Keys: 1, Hash: "one", Fields: "one"}
	notFound := &Reading{NotFound: true, Hash: "none", Fields: "none"}
	optional := &Reading{Hash: "none", Fields: "none"}
	same := &Reading{Values: 2, Keys: 2, Hash: "h", Fields: "f"}

	decide(t, map[string]decision{
		"Yields":           {"While others hold all keys, reading would not help.", blocked, Target{Exists: true, Others: true}, nil, Decision{Action: Nothing}},
		"YieldsDue":        {"A refresh reads, because the spec may name other keys.", blockedDue, Target{Exists: true, Others: true}, nil, Decision{Action: Read}},
		"YieldsNoLonger":   {"When a key becomes free, the object retries.", shares, Target{Exists: true, Others: true}, nil, Decision{Action: Read}},
		"YieldsUnmarked":   {"Keys that it holds are protected against drift.", blocked, Target{Exists: true, Holds: true}, nil, Decision{Action: Read}},
		"YieldsDrifted":    {"Its own mark is protected against drift.", blocked, Target{Exists: true, Mark: with(mark, v1alpha1.CreateCreateOrMerge)}, nil, Decision{Action: Read}},
		"YieldsAbsent":     {"A deleted Secret is created again.", blocked, Target{}, nil, Decision{Action: Read}},
		"YieldsAll":        {"An object without any key writes nothing.", shares, Target{Exists: true, Others: true}, held, Decision{Action: Nothing}},
		"YieldsAllMarked":  {"An object that has lost its last key removes it.", shares, ours(v1alpha1.CreateCreateOrMerge), held, Decision{Action: Apply}},
		"YieldsAllHeld":    {"It removes the key also without a mark.", shares, Target{Exists: true, Holds: true}, held, Decision{Action: Apply, Fence: true}},
		"YieldsSome":       {"An object that gets a key writes it.", shares, Target{Exists: true, Others: true}, some, Decision{Action: Apply, Fence: true}},
		"YieldsOwner":      {"Owner adopts, even without a key.", Self{}, Target{Exists: true, Others: true}, held, Decision{Action: Apply, Fence: true}},
		"YieldedNotGone":   {"Keys held by others are not missing.", orphan, Target{Exists: true, Others: true}, held, Decision{Action: Nothing}},
		"YieldedNotDelete": {"The Secret is not deleted because others hold the keys.", orphan, ours(v1alpha1.CreateOrphan), held, Decision{Action: Apply}},

		"Withheld":         {"A Secret that is intentionally missing is not created again.", withheld, Target{}, nil, Decision{Action: Nothing}},
		"WithheldDue":      {"A refresh reads the provider again.", withheldDue, Target{}, nil, Decision{Action: Read}},
		"WithheldComes":    {"The provider has a value again.", withheld, Target{}, same, Decision{Action: Create, Fence: true}},
		"WithheldStays":    {"The provider still has no value.", withheld, Target{}, notFound, Decision{Action: Nothing, Absent: true}},
		"WithheldRightful": {"Our own Secret may have been created again by a delayed operator: the provider decides.", withheld, ours(""), nil, Decision{Action: Read}},
		"WithheldDrifted":  {"Our own Secret with drift is handled like any other.", withheld, Target{Exists: true, Mark: mark}, nil, Decision{Action: Read}},

		"OptionalGone":       {"A missing optional entry is removed under every policy.", Self{}, ours(""), optional, Decision{Action: Apply}},
		"OptionalGoneDelete": {"Under Delete the Secret is deleted when it has no key left.", deletes, ours(""), optional, Decision{Action: Delete, Fence: true, Absent: true}},
		"OptionalGoneAbsent": {"Under Delete there is no Secret without a key.", deletes, Target{}, optional, Decision{Action: Nothing, Absent: true}},
		"OptionalGoneMerge":  {"Without own keys and values, only the mark shows that the object is in sync.", Self{Creation: v1alpha1.CreateMerge}, Target{Exists: true, Others: true}, optional, Decision{Action: Apply, Fence: true}},
		"Dropped":            {"Keys are dropped once.", merges, emptied, notFound, Decision{Action: Nothing}},
		"DroppedComesBack":   {"A value that exists again is written again.", merges, emptied, same, Decision{Action: Apply}},
		"DroppedLooks":       {"Between two refreshes, missing values are not read.", merges, emptied, nil, Decision{Action: Nothing}},

		"RivalFirst":     {"Owner is a Conflict if another object wrote first.", Self{}, otherWriter(Mark{}), nil, Decision{Action: Conflict}},
		"RivalFirstRead": {"The same holds if the rival is seen only after reading.", Self{}, otherWriter(Mark{}), same, Decision{Action: Conflict}},
		"RivalAsGuest":   {"An object that wrote under Merge does not become the Owner if there is another writer.", Self{}, otherWriter(with(mark, v1alpha1.CreateMerge)), nil, Decision{Action: Conflict}},
		"RivalIsGuest":   {"A later writer does not displace the Owner.", Self{}, otherWriter(mark), nil, Decision{Action: Nothing}},
		"RivalSpelled":   {"Owner set explicitly is Owner.", Self{}, otherWriter(with(mark, v1alpha1.CreateOwner)), nil, Decision{Action: Nothing}},

		"ForeignTerminating": {"A foreign owner is reported also while the Secret is being deleted.", Self{}, Target{Exists: true, Terminating: true, Foreign: &metav1.OwnerReference{}}, nil, Decision{Action: Conflict}},
		"NoneAnywhere":       {"None writes nothing, whatever exists.", Self{Creation: v1alpha1.CreateNone, Owns: true, Immutable: true}, Target{Exists: true, Terminating: true, Sealed: true, Foreign: &metav1.OwnerReference{}, OtherWriter: "other"}, same, Decision{Action: Nothing}},
	})
}

// TestDecideMessages checks that the message names the reason and a fix if nothing is written.
func TestDecideMessages(t *testing.T) {
	controls, not := true, false
	cases := map[string]struct {
		reason string
		self   Self
		target Target
		action Action
		want   []string
	}{
		"Controller":    {"The message names the controller and the fix.", Self{}, Target{Exists: true, Foreign: &metav1.OwnerReference{Kind: "Database", Name: "other", Controller: &controls}}, Conflict, []string{"controlled by Database", `"other"`, "choose another spec.target.name", "remove that owner"}},
		"Owner":         {"The message names the owner and the fix.", Self{}, Target{Exists: true, Foreign: &metav1.OwnerReference{Kind: "Database", Name: "other"}}, Conflict, []string{"owned by Database", `"other"`, "choose another spec.target.name", "remove that owner"}},
		"NotController": {"An owner with controller: false is an owner.", Self{}, Target{Exists: true, Foreign: &metav1.OwnerReference{Kind: "Database", Name: "other", Controller: &not}}, Conflict, []string{"owned by Database", `"other"`, "choose another spec.target.name"}},
		"Rival":         {"The message names the rival and the fix.", Self{}, Target{Exists: true, OtherWriter: "other"}, Conflict, []string{`ExternalSecret "other"`, "choose another spec.target.name"}},
		"Missing":       {"The message names the policy and the condition that it waits for.", Self{Creation: v1alpha1.CreateMerge}, Target{}, Missing, []string{"does not exist", "creationPolicy Merge", "create it, or set creationPolicy: CreateOrMerge"}},
		"Refuse":        {"The message names the field and the fix.", Self{}, Target{Exists: true, Intact: true, Watched: true, Sealed: true, Mark: marked("uid-me", 3)}, Refuse, []string{"spec.target.immutable", "delete the Secret", "created again"}},
		"Crowded":       {"The message names the annotations to remove.", Self{}, Target{Exists: true, Crowded: true}, Refuse, []string{"direct-secrets.io/es.*", "spec.target.name"}},
		"Wait":          {"The message names the state that it waits for.", Self{}, Target{Exists: true, Terminating: true}, Wait, []string{"being deleted"}},
		"Absent":        {"The message names the reason for reading.", Self{}, Target{}, Read, []string{"does not exist"}},
		"Drifted":       {"The message names the reason for reading.", Self{}, Target{Exists: true, Mark: marked("uid-me", 3)}, Read, []string{"changed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.self.UID, tc.self.Generation = "uid-me", 3
			got := Decide(tc.self, tc.target, nil)
			if got.Action != tc.action {
				t.Errorf("\n%s\nAction: %s, want %s", tc.reason, got.Action, tc.action)
			}
			for _, w := range tc.want {
				if !strings.Contains(got.Message, w) {
					t.Errorf("\n%s\nMessage: %q lacks %q", tc.reason, got.Message, w)
				}
			}
		})
	}
}

// TestFormerTarget checks the action for a Secret that is no longer the target. It gets the same treatment as on deletion of
// the object.
func TestFormerTarget(t *testing.T) {
	owns, never := Self{Owns: true}, Self{}
	mark := marked("uid-me", 3)
	owned := Target{Exists: true, Owned: true, Intact: true, Watched: true, Holds: true, Mark: mark}
	change := func(change func(t *Target)) Target {
		t := owned
		change(&t)
		return t
	}
	orphan := change(func(t *Target) { t.Owned = false })
	shared := change(func(t *Target) { t.Others = true })
	cases := map[string]struct {
		reason string
		self   Self
		target Target
		want   Decision
	}{
		"Owned":            {"The garbage collector would delete it.", owns, owned, Decision{Action: Delete, Fence: true}},
		"OwnedByName":      {"Owner set explicitly is Owner.", Self{Creation: v1alpha1.CreateOwner, Owns: true}, owned, Decision{Action: Delete, Fence: true}},
		"OwnedDrifted":     {"Drift makes no difference.", owns, change(func(t *Target) { t.Intact = false }), Decision{Action: Delete, Fence: true}},
		"OwnedAdopted":     {"Adoption makes no difference.", owns, change(func(t *Target) { t.Mark.Created = false }), Decision{Action: Delete, Fence: true}},
		"OwnedSealed":      {"Immutability makes no difference.", owns, change(func(t *Target) { t.Sealed = true }), Decision{Action: Delete, Fence: true}},
		"OwnedUnmarked":    {"A missing mark makes no difference.", owns, change(func(t *Target) { t.Mark = Mark{} }), Decision{Action: Delete, Fence: true}},
		"Shared":           {"Keys of others are kept; only our keys and the ownerReference are removed.", owns, shared, Decision{Action: Release, Fence: true}},
		"SharedSealed":     {"Keys of an immutable Secret cannot be dropped; only the ownerReference is removed.", owns, change(func(t *Target) { t.Others, t.Sealed = true, true }), Decision{Action: Own, Fence: true}},
		"NoLongerOwned":    {"Under Never it is kept: the ownerReference is removed, or the garbage collector would delete it.", never, owned, Decision{Action: Own, Fence: true}},
		"NoLongerShared":   {"The same holds with keys of others.", never, shared, Decision{Action: Own, Fence: true}},
		"NowOrphan":        {"Orphan keeps it.", Self{Creation: v1alpha1.CreateOrphan}, owned, Decision{Action: Own, Fence: true}},
		"NowMerge":         {"Merge keeps it, including its own keys.", Self{Creation: v1alpha1.CreateMerge}, owned, Decision{Action: Own, Fence: true}},
		"NowCreateOrMerge": {"CreateOrMerge keeps it.", Self{Creation: v1alpha1.CreateCreateOrMerge}, owned, Decision{Action: Own, Fence: true}},
		"NowNone":          {"None writes nothing.", Self{Creation: v1alpha1.CreateNone}, owned, Decision{Action: Nothing}},
		"Never":            {"Never keeps it.", never, orphan, Decision{Action: Nothing}},
		"NotOwned":         {"Without an ownerReference it would stay.", owns, orphan, Decision{Action: Nothing}},
		"NotOwnedShared":   {"Without an ownerReference it would stay.", owns, change(func(t *Target) { t.Owned, t.Others = false, true }), Decision{Action: Nothing}},
		"Orphan":           {"Orphan keeps it.", Self{Creation: v1alpha1.CreateOrphan}, orphan, Decision{Action: Nothing}},
		"Merge":            {"Merge keeps it, including its own keys.", Self{Creation: v1alpha1.CreateMerge}, orphan, Decision{Action: Nothing}},
		"CreateOrMerge":    {"CreateOrMerge keeps it.", Self{Creation: v1alpha1.CreateCreateOrMerge}, orphan, Decision{Action: Nothing}},
		"Absent":           {"A Secret that does not exist needs no action.", owns, Target{}, Decision{Action: Nothing}},
		"Terminating":      {"A Secret being deleted needs no action.", owns, change(func(t *Target) { t.Terminating = true }), Decision{Action: Nothing}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.self.UID, tc.self.Generation = "uid-me", 3
			for _, deletion := range []v1alpha1.DeletionPolicy{"", v1alpha1.DeletionRetain, v1alpha1.DeletionDelete, v1alpha1.DeletionMerge} {
				tc.self.Deletion = deletion // It concerns only the provider.
				if diff := cmp.Diff(tc.want, DecideOldTarget(tc.self, tc.target)); diff != "" {
					t.Errorf("\n%s\nDecideOldTarget(), deletionPolicy %q: -want, +got:\n%s", tc.reason, deletion, diff)
				}
			}
		})
	}
}
