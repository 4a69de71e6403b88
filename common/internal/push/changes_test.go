package push_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// canary is in every value of the tests of dry runs.
const canary = "c4n4ry"

// dryValue is a wanted value. what distinguishes it from others.
func dryValue(property, what string) push.Value {
	return push.Value{Property: property, Data: []byte(canary + what)}
}

// dryPusher returns a Pusher of the object "me".
func dryPusher(t *testing.T, b *fake.Backend, p push.Policies) *push.Pusher {
	t.Helper()
	w, err := b.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Mark, p.Features = "me", w.Features()
	return &push.Pusher{Store: fake.Link("FakeStore", w), Policies: p}
}

// named formats Changes as "Action property", with a dot for the whole secret.
func named(changes []push.Change) (out []string) {
	for _, c := range changes {
		property := c.Property
		if property == "" {
			property = "."
		}
		out = append(out, string(c.Action)+" "+property)
	}
	return out
}

// wantNoTrace fails if a dry run has written, or if its outcome holds a value.
func wantNoTrace(t *testing.T, b *fake.Backend, o push.Outcome) {
	t.Helper()
	if n := b.Writes(); n > 0 {
		t.Errorf("a dry run made %d writes", n)
	}
	if raw, err := json.Marshal(o.Changes); err != nil || strings.Contains(string(raw), canary) {
		t.Errorf("%s, %v: the changes hold a value", raw, err)
	}
	if text := fmt.Sprint(o.Err); strings.Contains(text, canary) {
		t.Errorf("the error holds a value: %s", text)
	}
}

func TestDryRun(t *testing.T) {
	const replace, ifNot = v1alpha1.UpdateReplace, v1alpha1.UpdateIfNotExists
	type values = []push.Value
	refuse := push.Policies{Adoption: v1alpha1.AdoptionRefuse}
	deletes := push.Policies{Deletes: true}
	object := `{"a":"` + canary + `1"}`
	cases := map[string]struct {
		reason string
		push.Policies
		// before is what the object pushed earlier, and exists what another writer wrote after it.
		before values
		exists string
		tags   string
		others push.Others
		fault  *fake.Fault
		want   values
		then   []string
		class  provider.Class
	}{
		"New":          {reason: "a missing secret is created", want: values{dryValue("", "1")}, then: []string{"Create ."}},
		"NewMany":      {reason: "each property is listed", want: values{dryValue("b", "1"), dryValue("a", "1")}, then: []string{"Create a", "Create b"}},
		"NewPart":      {reason: "a value that the Secret lacks does not stop the other", want: values{dryValue("a", "1"), {Property: "b", Err: provider.NewError(provider.NotFound, "no key")}}, then: []string{"Create a", "Fail b"}, class: provider.NotFound},
		"Same":         {reason: "a value in sync is left out", exists: canary + "1", want: values{dryValue("", "1")}},
		"Differs":      {reason: "another value is overwritten", exists: canary + "2", want: values{dryValue("", "1")}, then: []string{"Update ."}},
		"Property":     {reason: "properties of other writers are left out", exists: object, want: values{dryValue("b", "2")}, then: []string{"Create b"}},
		"PropertyBoth": {reason: "each property is compared by itself", exists: object, want: values{dryValue("a", "2"), dryValue("b.c", "2")}, then: []string{"Update a", "Create b.c"}},
		"Text":         {reason: "a text has no properties", exists: canary, want: values{dryValue("a", "1")}, then: []string{"Fail a"}, class: provider.Invalid},
		"Metadata":     {reason: "metadata that differs is listed, although the value is in sync", exists: canary + "1", tags: `{"tags":{"a":"` + canary + `"}}`, want: values{dryValue("", "1")}, then: []string{"UpdateMetadata ."}},
		"MetadataToo":  {reason: "metadata is listed with the value", exists: object, tags: `{"tags":{"a":"x"}}`, want: values{dryValue("b", "1")}, then: []string{"UpdateMetadata .", "Create b"}},
		"Exists":       {reason: "IfNotExists keeps another value", Policies: push.Policies{Update: ifNot}, exists: canary + "2", want: values{dryValue("", "1")}, then: []string{"Keep ."}},
		"ExistsPart":   {reason: "IfNotExists adds the missing property", Policies: push.Policies{Update: ifNot}, exists: object, want: values{dryValue("a", "2"), dryValue("b", "2")}, then: []string{"Keep a", "Create b"}},
		"Refuse":       {reason: "Refuse does not write secrets of others", Policies: refuse, exists: canary + "2", want: values{dryValue("", "1")}, then: []string{"Fail ."}, class: provider.Conflict},
		"RefuseOwn":    {reason: "Refuse writes own secrets", Policies: refuse, before: values{dryValue("", "2")}, want: values{dryValue("", "1")}, then: []string{"Update ."}},
		"Own":          {reason: "a secret without a mark gets one", Policies: push.Policies{Adoption: v1alpha1.AdoptionOwn}, exists: canary + "1", want: values{dryValue("", "1")}, then: []string{"Own ."}},
		"OwnPart":      {reason: "the mark is listed with what is written", Policies: push.Policies{Adoption: v1alpha1.AdoptionOwn}, exists: object, want: values{dryValue("a", "1"), dryValue("b", "1")}, then: []string{"Own .", "Create b"}},
		"Removed":      {reason: "what this object created is deleted", Policies: deletes, before: values{dryValue("", "1")}, then: []string{"Delete ."}},
		"RemovedKept":  {reason: "deletionPolicy None deletes nothing", before: values{dryValue("", "1")}},
		"RemovedElse":  {reason: "what another writer changed is kept", Policies: deletes, before: values{dryValue("", "1")}, exists: canary + "2", then: []string{"Keep ."}},
		"RemovedPart":  {reason: "a property is deleted from its secret", Policies: deletes, before: values{dryValue("a", "1"), dryValue("b", "1")}, want: values{dryValue("a", "1")}, then: []string{"Delete b"}},
		"RemovedLast":  {reason: "a secret is deleted with its last property", Policies: deletes, before: values{dryValue("a", "1")}, then: []string{"Delete ."}},
		"RemovedUsed":  {reason: "what another object pushes is kept, and that object gets no mark", Policies: deletes, before: values{dryValue("", "1")}, others: pushing{uses: shared}, then: []string{"Keep ."}},
		"Renamed":      {reason: "a property is replaced by another", Policies: deletes, before: values{dryValue("a", "1")}, want: values{dryValue("b", "1")}, then: []string{"Delete a", "Create b"}},
		"RenamedFails": {reason: "nothing is deleted while a value fails", Policies: deletes, before: values{dryValue("a", "1")}, want: values{{Property: "b", Data: []byte(canary + "\xff")}}, then: []string{"Fail b"}, class: provider.Invalid},
		"Denied":       {reason: "a secret that cannot be read is not written", fault: &fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Denied, "no")}, want: values{dryValue("a", "1"), dryValue("b", "1")}, then: []string{"Fail a", "Fail b"}, class: provider.Denied},
		"Replace":      {reason: "an explicit policy is like the default", Policies: push.Policies{Update: replace}, exists: canary + "2", want: values{dryValue("", "1")}, then: []string{"Update ."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			p, at := dryPusher(t, b, tc.Policies), provider.Target{Key: "db"}
			var known []v1alpha1.PushEntryStatus
			if tc.before != nil {
				known = p.Apply(t.Context(), at, tc.before, nil).Entries
			}
			if tc.exists != "" {
				b.Put("db", []byte(tc.exists))
			}
			b.Reset()
			if tc.fault != nil {
				b.Inject(*tc.fault)
			}
			if tc.tags != "" {
				at.Metadata = []byte(tc.tags)
			}
			p.DryRun, p.Others = true, tc.others
			before := slices.Clone(known)
			o := p.Apply(t.Context(), at, tc.want, known)
			if diff := cmp.Diff(tc.then, named(o.Changes)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, o.Entries); diff != "" {
				t.Errorf("the recorded entries changed: -want, +got:\n%s", diff)
			}
			if (o.Err == nil) != (tc.class == "") || o.Err != nil && provider.ClassOf(o.Err) != tc.class {
				t.Errorf("error %v, want one of class %q", o.Err, tc.class)
			}
			if len(o.Left)+len(o.Released)+len(o.Exists) > 0 || o.Wrote || o.Deleted {
				t.Errorf("the outcome reports something that was done: %+v", o)
			}
			wantNoTrace(t, b, o)
		})
	}
}

// TestDryRunPredicts compares a dry run with the push that follows it, for every combination of what is in the store,
// what this object pushed before, what is wanted, and the policies.
func TestDryRunPredicts(t *testing.T) {
	type values = []push.Value
	wants := []values{
		nil,
		{dryValue("", "1")}, {dryValue("", "2")}, {{Err: provider.NewError(provider.NotFound, "no key")}},
		{dryValue("a", "1")}, {dryValue("a", "2")}, {dryValue("b", "1")}, {dryValue("a.b", "1")},
		{dryValue("a", "1"), dryValue("b", "2")}, {dryValue("a", "2"), {Property: "b", Data: []byte("\xff")}},
	}
	exists := []string{"", canary + "1", canary + "2", `{}`, `{"a":"` + canary + `1"}`, `{"a":"` + canary + `2","b":"` + canary + `2"}`, `{"a":{"b":1}}`}
	cases := 0
	for _, update := range []v1alpha1.PushUpdatePolicy{v1alpha1.UpdateReplace, v1alpha1.UpdateIfNotExists} {
		for _, adoption := range []v1alpha1.PushAdoptionPolicy{v1alpha1.AdoptionAdopt, v1alpha1.AdoptionRefuse, v1alpha1.AdoptionOwn} {
			for _, deletes := range []bool{false, true} {
				for _, weak := range []bool{false, true} {
					for _, before := range wants {
						for _, is := range exists {
							for _, want := range wants {
								cases++
								predict(t, push.Policies{Update: update, Adoption: adoption, Deletes: deletes}, weak, before, is, want)
								if t.Failed() {
									return
								}
							}
						}
					}
				}
			}
		}
	}
	if cases < 10000 {
		t.Errorf("only %d cases", cases)
	}
}

// predict makes a dry run and then a push, and compares what they report and do.
func predict(t *testing.T, policies push.Policies, weak bool, before []push.Value, exists string, want []push.Value) {
	t.Helper()
	var options []fake.Option
	if weak {
		options = append(options, fake.Weak())
	}
	b := fake.New(options...)
	p, at := dryPusher(t, b, policies), provider.Target{Key: "db"}
	known := p.Apply(t.Context(), at, before, nil).Entries
	if exists != "" {
		b.Put("db", []byte(exists))
	}
	b.Reset()
	was, had := b.Value("db")
	p.DryRun = true
	o := p.Apply(t.Context(), at, want, slices.Clone(known))
	wantNoTrace(t, b, o)
	p.DryRun = false
	unmarked := had && b.Mark("db") == ""
	done := p.Apply(t.Context(), at, want, slices.Clone(known))
	is, has := b.Value("db")
	marked := unmarked && has && b.Mark("db") != ""

	var writes, fails []push.Change
	marks := false
	for _, c := range o.Changes {
		switch c.Action { //nolint:exhaustive // The others write nothing, and the secret has no metadata.
		case v1alpha1.PushCreate, v1alpha1.PushUpdate, v1alpha1.PushDelete:
			writes = append(writes, c)
		case v1alpha1.PushFail:
			fails = append(fails, c)
		case v1alpha1.PushOwn:
			marks = true
		}
	}
	about := fmt.Sprintf("%+v, weak %v, pushed before %q, then %q, wanted %q", policies, weak, before, exists, want)
	if diff := cmp.Diff(happened(was, had, is, has, before, want), writes); diff != "" {
		t.Errorf("%s: %q became %q; what the push did, and what the dry run said: -did, +said:\n%s", about, was, is, diff)
	}
	if marks != marked {
		t.Errorf("%s: the push marked the secret: %v, and the dry run said %v", about, marked, marks)
	}
	if (len(fails) > 0) != (done.Err != nil) || fmt.Sprint(done.Err) != fmt.Sprint(o.Err) {
		t.Errorf("%s: the push failed with %v, the dry run with %v and %v", about, done.Err, o.Err, fails)
	}
}

// happened returns what a push changed: the whole secret, or properties of it.
func happened(was []byte, had bool, is []byte, has bool, before, want []push.Value) (out []push.Change) {
	whole := len(want) == 1 && want[0].Property == ""
	switch {
	case had == has && string(was) == string(is):
		return nil
	case !has:
		return []push.Change{{Action: v1alpha1.PushDelete}}
	case whole && !had:
		return []push.Change{{Action: v1alpha1.PushCreate}}
	case whole:
		return []push.Change{{Action: v1alpha1.PushUpdate}}
	}
	old, now := members(was), members(is)
	for _, property := range []string{"a", "a.b", "b"} {
		if !slices.ContainsFunc(slices.Concat(before, want), func(v push.Value) bool { return v.Property == property }) {
			continue // A change of a property changes what contains it.
		}
		if a := became(old, now, property); a != "" {
			out = append(out, push.Change{Property: property, Action: a})
		}
	}
	return out
}

// became returns how a property changed; empty if it did not.
func became(old, now map[string]string, property string) v1alpha1.PushAction {
	was, had := old[property]
	is, has := now[property]
	switch {
	case !had && has:
		return v1alpha1.PushCreate
	case had && !has:
		return v1alpha1.PushDelete
	case was != is:
		return v1alpha1.PushUpdate
	}
	return ""
}

// members returns the properties of a JSON object, also those called b in them.
func members(data []byte) map[string]string {
	var object map[string]any
	if json.Unmarshal(data, &object) != nil {
		return nil
	}
	flat := map[string]string{}
	for k, v := range object {
		if inner, ok := v.(map[string]any); ok {
			flat[k+".b"] = fmt.Sprint(inner["b"])
		}
		flat[k] = fmt.Sprint(v)
	}
	return flat
}
