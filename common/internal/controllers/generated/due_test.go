package generated

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestActionDue(t *testing.T) {
	made := handoff.Entry{Version: "v", Spec: "s", Made: noon.Add(-10 * time.Hour)}
	expiring := made
	expiring.Expires = noon.Add(5 * time.Hour) // Two thirds of its fifteen hours are over at noon.
	lease := expiring
	lease.State = "lease"
	with := func(e handoff.Entry, f func(*handoff.Entry)) *handoff.Entry { f(&e); return &e }
	type want struct {
		Action action
		Why    string
		Next   time.Time
	}
	cases := map[string]struct {
		reason string
		in     input
		want   want
	}{
		"First":             {"There are none.", input{Rotates: true}, want{doMake, whyFirst, time.Time{}}},
		"FirstFixed":        {"What cannot change can be made.", input{Fixed: true}, want{doMake, whyFirst, time.Time{}}},
		"FirstSuspended":    {"Nothing is made for who is suspended.", input{Suspended: true}, want{}},
		"Kept":              {"Nothing asks for others.", input{Entry: &made, Spec: "s", Rotates: true, Held: true}, want{}},
		"Ahead":             {"A clock that was ahead does not put it off.", input{Entry: with(made, func(e *handoff.Entry) { e.Made = noon.Add(48 * time.Hour) }), Spec: "s", Rotates: true, Held: true, Interval: 10 * time.Hour}, want{doMake, whyElapsed, time.Time{}}},
		"AheadExpiring":     {"Nor what expires.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed, e.Expires = noon.Add(48*time.Hour), noon.Add(60*time.Hour) }), Spec: "s"}, want{doRenew, "", time.Time{}}},
		"Requested":         {"A request does.", input{Entry: &made, Spec: "s", Request: "1"}, want{doMake, whyRequested, time.Time{}}},
		"Served":            {"But once.", input{Entry: with(made, func(e *handoff.Entry) { e.Request = "1" }), Spec: "s", Request: "1", Rotates: true}, want{}},
		"RequestGone":       {"A request that is taken back asks for nothing.", input{Entry: with(made, func(e *handoff.Entry) { e.Request = "1" }), Spec: "s", Rotates: true}, want{}},
		"RequestSuspended":  {"A suspended object gets no others.", input{Entry: &made, Spec: "s", Request: "1", Suspended: true, Rotates: true}, want{}},
		"RequestFixed":      {"Nor one that cannot take them.", input{Entry: &made, Spec: "s", Request: "1", Fixed: true, Rotates: true}, want{}},
		"Changed":           {"Another spec makes others.", input{Entry: &made, Spec: "t", Rotates: true}, want{doMake, whyChanged, time.Time{}}},
		"ChangedNot":        {"Not for who gets them on request only.", input{Entry: &made, Spec: "t"}, want{}},
		"ChangedSuspended":  {"Nor for who is suspended.", input{Entry: &made, Spec: "t", Rotates: true, Suspended: true}, want{}},
		"Early":             {"The interval has yet to pass.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour}, want{Next: noon.Add(time.Hour)}},
		"Elapsed":           {"It has passed.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 10 * time.Hour}, want{doMake, whyElapsed, time.Time{}}},
		"Spread":            {"Not all at once.", input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour, Spread: 0.99}, want{doMake, whyElapsed, time.Time{}}},
		"NotHeld":           {"What was never delivered is not replaced for its age.", input{Entry: &made, Spec: "s", Rotates: true, Interval: time.Hour}, want{}},
		"ElapsedNot":        {"An interval is nothing to who gets others on request only.", input{Entry: &made, Spec: "s", Held: true, Interval: time.Hour}, want{}},
		"ElapsedFixed":      {"Nor to what cannot change.", input{Entry: &made, Spec: "s", Rotates: true, Fixed: true, Held: true, Interval: time.Hour}, want{}},
		"Expiring":          {"Two thirds of the time are over.", input{Entry: &expiring, Spec: "s", Rotates: true}, want{doMake, whyExpiring, time.Time{}}},
		"ExpiringLater":     {"They are not.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires = noon.Add(8 * time.Hour) }), Spec: "s", Rotates: true}, want{Next: noon.Add(2 * time.Hour)}},
		"ExpiringNot":       {"Others come on request only.", input{Entry: &expiring, Spec: "s"}, want{}},
		"IntervalFirst":     {"The interval passes before they expire.", input{Entry: with(expiring, func(e *handoff.Entry) { e.Expires = noon.Add(50 * time.Hour) }), Spec: "s", Rotates: true, Held: true, Interval: 12 * time.Hour}, want{Next: noon.Add(2 * time.Hour)}},
		"Renew":             {"A lease is renewed instead.", input{Entry: &lease, Spec: "s", Rotates: true}, want{Action: doRenew}},
		"RenewOnRequest":    {"Also for who gets others on request only.", input{Entry: &lease, Spec: "s"}, want{Action: doRenew}},
		"RenewSuspended":    {"And for who is suspended: it is no other value.", input{Entry: &lease, Spec: "s", Suspended: true}, want{Action: doRenew}},
		"RenewFixed":        {"And for what cannot change.", input{Entry: &lease, Spec: "s", Fixed: true}, want{Action: doRenew}},
		"Final":             {"One that cannot be renewed is replaced.", input{Entry: with(lease, func(e *handoff.Entry) { e.Final = true }), Spec: "s", Rotates: true}, want{doMake, whyExpiring, time.Time{}}},
		"FinalNot":          {"If it may be.", input{Entry: with(lease, func(e *handoff.Entry) { e.Final = true }), Spec: "s"}, want{}},
		"Expired":           {"One that has expired is not renewed.", input{Entry: with(lease, func(e *handoff.Entry) { e.Expires = noon }), Spec: "s", Rotates: true}, want{doMake, whyExpiring, time.Time{}}},
		"RenewedLately":     {"The time counts from the last renewal.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed = noon.Add(-time.Hour) }), Spec: "s"}, want{Next: noon.Add(3 * time.Hour)}},
		"Short":             {"What lives for seconds is not renewed all the time.", input{Entry: with(lease, func(e *handoff.Entry) { e.Renewed, e.Expires = noon.Add(-5*time.Second), noon.Add(time.Second) }), Spec: "s"}, want{Next: noon.Add(5 * time.Second)}},
		"ElapsedBeforeThat": {"A rotation that is due goes before a renewal.", input{Entry: &lease, Spec: "s", Rotates: true, Held: true, Interval: time.Hour}, want{doMake, whyElapsed, time.Time{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = noon
			var got want
			got.Action, got.Why, got.Next = actionDue(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nactionDue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
