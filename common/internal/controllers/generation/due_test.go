package generation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestValuesDue(t *testing.T) {
	made := handoff.Entry{Version: "v", Spec: "s", Made: noon.Add(-10 * time.Hour)}
	expiring := made
	expiring.Expires = noon.Add(5 * time.Hour) // Two thirds of the fifteen hours have passed at noon.
	lease := expiring
	lease.State = "lease"
	with := func(e handoff.Entry, f func(*handoff.Entry)) *handoff.Entry { f(&e); return &e }
	type want struct {
		Why  string
		Next time.Time
	}
	cases := map[string]struct {
		reason string
		in     input
		want   want
	}{
		"First":             {"There are no values yet.", input{Rotates: true}, want{whyFirst, time.Time{}}},
		"FirstFixed":        {"An immutable object gets its first values.", input{Fixed: true}, want{whyFirst, time.Time{}}},
		"FirstSuspended":    {"A suspended object gets no values.", input{Suspended: true}, want{}},
		"Kept":              {"Nothing requires new values.", input{Entry: &made, Spec: "s", Rotates: true, Held: true}, want{}},
		"Ahead":             {"A time set by a clock that was ahead does not delay the rotation.", input{Entry: with(made, func(e *handoff.Entry) { e.Made = noon.Add(48 * time.Hour) }), Spec: "s", Rotates: true, Held: true, Interval: 10 * time.Hour}, want{whyElapsed, time.Time{}}},
		"AheadExpiring":     {"A time set by a clock that was ahead does not delay the renewal.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed, e.Expires = noon.Add(48*time.Hour), noon.Add(60*time.Hour) }), Spec: "s"}, want{whyRenew, time.Time{}}},
		"Requested":         {"A refresh request makes new values.", input{Entry: &made, Spec: "s", Request: "1"}, want{whyRequested, time.Time{}}},
		"Served":            {"A request is served once.", input{Entry: with(made, func(e *handoff.Entry) { e.Request = "1" }), Spec: "s", Request: "1", Rotates: true}, want{}},
		"RequestGone":       {"A removed request makes no new values.", input{Entry: with(made, func(e *handoff.Entry) { e.Request = "1" }), Spec: "s", Rotates: true}, want{}},
		"RequestSuspended":  {"A suspended object gets no new values.", input{Entry: &made, Spec: "s", Request: "1", Suspended: true, Rotates: true}, want{}},
		"RequestFixed":      {"An immutable object gets no new values.", input{Entry: &made, Spec: "s", Request: "1", Fixed: true, Rotates: true}, want{}},
		"Changed":           {"A changed spec makes new values.", input{Entry: &made, Spec: "t", Rotates: true}, want{whyChanged, time.Time{}}},
		"ChangedNot":        {"A changed spec makes no new values for an object that gets them only on request.", input{Entry: &made, Spec: "t"}, want{}},
		"ChangedSuspended":  {"A changed spec makes no new values for a suspended object.", input{Entry: &made, Spec: "t", Rotates: true, Suspended: true}, want{}},
		"Early":             {"The interval has not passed.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour}, want{Next: noon.Add(time.Hour)}},
		"Elapsed":           {"The interval has passed.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 10 * time.Hour}, want{whyElapsed, time.Time{}}},
		"Spread":            {"Rotations are spread over a tenth of the interval.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour, Spread: 0.99}, want{whyElapsed, time.Time{}}},
		"NotHeld":           {"Values that were never delivered are not replaced for their age.", input{Entry: &made, Spec: "s", Rotates: true, Interval: time.Hour}, want{}},
		"ElapsedNot":        {"An interval has no effect on an object that gets new values only on request.", input{Entry: &made, Spec: "s", Held: true, Interval: time.Hour}, want{}},
		"ElapsedFixed":      {"An interval has no effect on an immutable object.", input{Entry: &made, Spec: "s", Rotates: true, Fixed: true, Held: true, Interval: time.Hour}, want{}},
		"Expiring":          {"Two thirds of the lifetime have passed.", input{Entry: &expiring, Spec: "s", Rotates: true}, want{whyExpiring, time.Time{}}},
		"ExpiringLater":     {"Less than two thirds of the lifetime have passed.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires = noon.Add(8 * time.Hour) }), Spec: "s", Rotates: true}, want{Next: noon.Add(2 * time.Hour)}},
		"ExpiringNot":       {"Expiring values are kept if the object gets new ones only on request.", input{Entry: &expiring, Spec: "s"}, want{}},
		"IntervalFirst":     {"The interval passes before the values expire.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires = noon.Add(50 * time.Hour) }), Spec: "s", Rotates: true, Held: true, Interval: 12 * time.Hour}, want{Next: noon.Add(2 * time.Hour)}},
		"Renew":             {"A lease is renewed instead of replaced.", input{Entry: &lease, Spec: "s", Rotates: true}, want{Why: whyRenew}},
		"RenewOnRequest":    {"A lease is renewed also if the object gets new values only on request.", input{Entry: &lease, Spec: "s"}, want{Why: whyRenew}},
		"RenewSuspended":    {"A lease is renewed for a suspended object, because its values do not change.", input{Entry: &lease, Spec: "s", Suspended: true}, want{Why: whyRenew}},
		"RenewFixed":        {"A lease is renewed for an immutable object.", input{Entry: &lease, Spec: "s", Fixed: true}, want{Why: whyRenew}},
		"Final":             {"A lease that cannot be renewed is replaced.", input{Entry: with(lease, func(e *handoff.Entry) { e.Final = true }), Spec: "s", Rotates: true}, want{whyExpiring, time.Time{}}},
		"FinalNot":          {"It is kept if the object gets new values only on request.", input{Entry: with(lease, func(e *handoff.Entry) { e.Final = true }), Spec: "s"}, want{}},
		"Expired":           {"An expired lease is not renewed.", input{Entry: with(lease, func(e *handoff.Entry) { e.Expires = noon }), Spec: "s", Rotates: true}, want{whyExpiring, time.Time{}}},
		"RenewedLately":     {"The lifetime counts from the last renewal.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed = noon.Add(-time.Hour) }), Spec: "s"}, want{Next: noon.Add(3 * time.Hour)}},
		"Short":             {"A lease of a few seconds is not renewed all the time.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed, e.Expires = noon.Add(-5*time.Second), noon.Add(time.Second) }), Spec: "s"}, want{Next: noon.Add(5 * time.Second)}},
		"Replace":           {"The generator has set the time, which has come.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires, e.Replace = noon.Add(50*time.Hour), noon }), Spec: "s", Rotates: true}, want{whyExpiring, time.Time{}}},
		"ReplaceLater":      {"The generator has set a time after two thirds of the lifetime.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Replace = noon.Add(4 * time.Hour) }), Spec: "s", Rotates: true}, want{Next: noon.Add(4 * time.Hour)}},
		"ReplaceSpread":     {"Replacements are spread over a tenth of the time.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Replace = noon.Add(time.Hour) }), Spec: "s", Rotates: true, Spread: 0.99}, want{whyExpiring, time.Time{}}},
		"ReplaceAfter":      {"A time after the end is ignored.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Replace = noon.Add(6 * time.Hour) }), Spec: "s", Rotates: true}, want{whyExpiring, time.Time{}}},
		"ReplaceBefore":     {"A time before the values were made is ignored.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires, e.Replace = noon.Add(8*time.Hour), noon.Add(-11*time.Hour) }), Spec: "s", Rotates: true}, want{Next: noon.Add(2 * time.Hour)}},
		"ElapsedBeforeThat": {"A rotation that is due takes precedence over a renewal.", input{Entry: &lease, Spec: "s", Rotates: true, Held: true, Interval: time.Hour}, want{whyElapsed, time.Time{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = noon
			var got want
			got.Why, got.Next, _ = valuesDue(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nvaluesDue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestValuesDueClosed decides at noon. The sync windows are closed until 02:00, and the values were made ten hours ago.
func TestValuesDueClosed(t *testing.T) {
	ws, err := windows.Parse(&v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: "0 2 * * *", Duration: "4h"}}})
	if err != nil {
		t.Fatal(err)
	}
	opens := noon.Add(14 * time.Hour)
	made := handoff.Entry{Version: "v", Spec: "s", Made: noon.Add(-10 * time.Hour)}
	expires := func(at time.Time, state string) *handoff.Entry {
		e := made
		e.Expires, e.State = at, state
		return &e
	}
	type want struct {
		Why  string
		Next time.Time
		Hold windows.Hold
	}
	hold := windows.Hold{Opens: opens, Resume: opens}
	cases := map[string]struct {
		reason string
		in     input
		want   want
	}{
		"Elapsed":     {"A replacement because of rotationInterval waits.", input{Entry: &made, Spec: "s", Interval: time.Hour}, want{"", opens, hold}},
		"Early":       {"Nothing waits that is not due.", input{Entry: &made, Spec: "s", Interval: 11 * time.Hour}, want{Next: noon.Add(time.Hour)}},
		"First":       {"The first values do not wait.", input{Spec: "s"}, want{Why: whyFirst}},
		"Requested":   {"A request does not wait.", input{Entry: &made, Spec: "s", Request: "1", Interval: time.Hour}, want{Why: whyRequested}},
		"Changed":     {"A changed generator does not wait.", input{Entry: &made, Spec: "t", Interval: time.Hour}, want{Why: whyChanged}},
		"Renew":       {"The renewal of a lease does not wait, even if a replacement does.", input{Entry: expires(noon.Add(5*time.Hour), "lease"), Spec: "s", Interval: time.Hour}, want{whyRenew, time.Time{}, hold}},
		"Expiring":    {"Values are replaced before they expire.", input{Entry: expires(noon.Add(5*time.Hour), ""), Spec: "s", Interval: time.Hour}, want{whyExpiring, time.Time{}, hold}},
		"RenewBefore": {"A lease that is renewed before the opening is checked then.", input{Entry: expires(noon.Add(8*time.Hour), "lease"), Spec: "s", Interval: time.Hour}, want{"", noon.Add(2 * time.Hour), hold}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Now, tc.in.Windows, tc.in.Rotates, tc.in.Held = noon, ws, true, true
			var got want
			got.Why, got.Next, got.Hold = valuesDue(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nvaluesDue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
