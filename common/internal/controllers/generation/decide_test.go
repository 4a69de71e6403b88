package generation

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestDecide(t *testing.T) {
	gen := handoff.Generator{Kind: "FakeGenerator", Name: "gen"}
	ref, id := refTo(gen), handoff.ID(refTo(gen))
	object := &fakev1.FakeGenerator{Spec: fakev1.FakeGeneratorSpec{Backend: "main"}}
	spec, err := specHash(object)
	if err != nil {
		t.Fatal(err)
	}
	// The object has version v2, is in sync with it, and used v1 before.
	inSync := func() view {
		return view{
			now: noon, finalizer: "finalizer", attempts: &attempts{random: func() float64 { return 0.5 }},
			user: user{
				Object:     &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{UID: "uid"}},
				generators: []v1alpha1.StoreRef{ref}, rotates: true, inSync: true,
				delivered: map[handoff.Generator]string{gen: "v2"}, named: map[string]bool{"v2": true},
			},
			generators: []found{{ref: ref, object: object}},
			part:       &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid"}}}},
			rec:        handoff.Record{UID: "uid", Entries: map[string]handoff.Entry{id: {Generator: gen, Version: "v2", Spec: spec, Made: noon}}},
		}
	}
	retire := func(v *view, c handoff.Retired) {
		v.rec.Retired = append(v.rec.Retired, c)
		v.part.SetFinalizers([]string{v.finalizer})
	}
	change := func(f func(*handoff.Entry)) func(*view) {
		return func(v *view) { e := v.rec.Entries[id]; f(&e); v.rec.Entries[id] = e }
	}
	old := handoff.Retired{Generator: gen, Version: "v1", State: "s"}
	type want struct {
		Values                  map[string]string
		Current, Dropped        []string
		Unkept                  []string
		Freed, Revoked          int
		Owners, Adopt, Leftover bool
		Moved                   bool
		Wait                    time.Duration
		Class                   provider.Class
	}
	current := []string{id}
	cases := map[string]struct {
		reason string
		change func(*view)
		want   want
	}{
		"InSync":      {"A part that is up to date needs nothing.", func(*view) {}, want{Current: current}},
		"NoPart":      {"Without a part, values are made.", func(v *view) { v.part, v.rec = nil, handoff.Record{} }, want{Values: map[string]string{id: whyFirst}}},
		"Changed":     {"Values made from another spec are replaced.", change(func(e *handoff.Entry) { e.Spec = "other" }), want{Values: map[string]string{id: whyChanged}}},
		"NotFound":    {"A generator that cannot be read is reported, and its values stay.", func(v *view) { v.generators[0] = found{ref: ref, err: provider.NewError(provider.NotFound, "missing")} }, want{Class: provider.NotFound}},
		"OtherClass":  {"Values of a generator of another class are kept while the status names them.", func(v *view) { v.generators[0] = found{ref: ref} }, want{}},
		"RefusedIdle": {"A refusal does not matter while there is nothing to make.", func(v *view) { v.generators[0].refused = errLabels }, want{Current: current}},
		"Refused": {"A generator that is not ready makes no values.", func(v *view) {
			v.part, v.rec, v.generators[0].refused = nil, handoff.Record{}, provider.NewError(provider.Denied, "no")
		}, want{Class: provider.Denied}},
		"LabelsUnknown": {"If the labels of the namespace are not known yet, the object is reconciled again soon.", func(v *view) { v.part, v.rec, v.generators[0].refused = nil, handoff.Record{}, errLabels },
			want{Class: provider.Unavailable, Moved: true}},
		"HeldBack": {"A failure waits for its back-off.", func(v *view) {
			v.part, v.rec = nil, handoff.Record{}
			v.attempts.fail(id, causeOf(spec, ""), noon, provider.NewError(provider.Throttled, "slow down"))
		}, want{Class: provider.Throttled, Wait: firstBackoff}},
		"FailedForAnotherSpec": {"A failure for another spec does not delay this attempt.", func(v *view) {
			v.part, v.rec = nil, handoff.Record{}
			v.attempts.fail(id, causeOf("other", ""), noon, provider.NewError(provider.Throttled, "slow down"))
		}, want{Values: map[string]string{id: whyFirst}}},
		"TooManyRetired": {"No further credential is made while too many wait for revocation.", func(v *view) {
			change(func(e *handoff.Entry) { e.Spec = "other" })(v)
			v.user.inSync = false
			for range maxRetired {
				retire(v, old)
			}
		}, want{Class: provider.Conflict}},
		"Dropped":      {"Values are dropped when neither spec nor status names them.", func(v *view) { v.user.generators, v.generators, v.user.named = nil, nil, nil }, want{Dropped: current}},
		"StillNamed":   {"Values that the status names may be in use.", func(v *view) { v.user.generators, v.generators = nil, nil }, want{}},
		"PreviousKept": {"Without keepPrevious, the previous values are removed.", change(func(e *handoff.Entry) { e.Previous = "v1" }), want{Current: current, Unkept: current}},
		"Freed":        {"A credential is freed when all consumers hold the next one.", func(v *view) { retire(v, old) }, want{Current: current, Freed: 1}},
		"NotDelivered": {"It is kept while consumers hold an older version.", func(v *view) { retire(v, old); v.user.delivered[gen] = "v1" }, want{Current: current}},
		"Lingers": {"A freed credential is revoked at its release time.", func(v *view) { c := old; c.Release = noon.Add(time.Hour); retire(v, c) },
			want{Current: current, Wait: time.Hour}},
		"Released":   {"At the release time it is revoked.", func(v *view) { c := old; c.Release = noon; retire(v, c) }, want{Current: current, Revoked: 1}},
		"OtherOwner": {"The part of a former object is adopted.", func(v *view) { v.rec.UID = "before" }, want{Current: current, Adopt: true}},
		"NoOwner":    {"The object must own its part.", func(v *view) { v.part.SetOwnerReferences(nil) }, want{Current: current, Owners: true}},
		"NoTargetOwner": {"The Secret that was written from it must also own it.", func(v *view) { v.user.target, v.target = "db", "target" },
			want{Current: current, Owners: true}},
		"Deleted": {"A part that is being deleted is a leftover.", func(v *view) { v.part.SetDeletionTimestamp(&metav1.Time{Time: noon}) }, want{Current: current, Leftover: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := inSync()
			tc.change(&v)
			todo, out := decide(v)
			got := want{
				Current: todo.current, Dropped: todo.dropped, Unkept: todo.unkept, Freed: len(todo.freed), Revoked: len(todo.revoked),
				Owners: todo.owners, Adopt: todo.adopt, Leftover: todo.leftover, Moved: out.moved, Wait: out.wait, Class: out.failure.Class,
			}
			for _, id := range slices.Sorted(maps.Keys(todo.values)) {
				if got.Values == nil {
					got.Values = map[string]string{}
				}
				got.Values[id] = todo.values[id].why
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ndecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConclude ends steps. An object that waits for a place at its generator shows why the last attempt failed.
func TestConclude(t *testing.T) {
	answered := provider.NewError(provider.Unavailable, "no answer")
	cases := map[string]struct {
		reason string
		// spec is that of the attempt before, and before its failure.
		spec   string
		before error
		err    error
		want   string
	}{
		"Failed":    {"A failure is shown.", "spec", nil, answered, `FakeGenerator "g": no answer`},
		"Parked":    {"An object that waits for a place shows the former failure.", "spec", answered, kit.ErrParked, `FakeGenerator "g": no answer`},
		"First":     {"An object that waits for a place shows nothing else.", "spec", nil, kit.ErrParked, ""},
		"Corrected": {"A failure of a former spec is not shown.", "former", answered, kit.ErrParked, ""},
		"Succeeded": {"A success ends the failures.", "spec", answered, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &pass{obj: &object{attempts: attempts{random: func() float64 { return 0 }}}, now: time.Now()}
			if tc.before != nil {
				p.obj.fail("id", causeOf(tc.spec, "1"), p.now, tc.before)
			}
			p.conclude("id", step{spec: "spec", ref: v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "g"}}, tc.err)
			if diff := cmp.Diff(tc.want, p.out.failure.Message); diff != "" {
				t.Errorf("\n%s\nconclude(...): -want message, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
