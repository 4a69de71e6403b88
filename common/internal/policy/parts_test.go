package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestDecideSupplies(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	held := Supply{Name: `VaultKV "v"`, Held: true}
	missing := Supply{Name: `VaultKV "v"`, Module: "provider-vault"}
	stopped := Supply{Name: `VaultKV "v"`, Held: true, Due: now.Add(-time.Minute), Missing: Absence{Certain: true, Hint: "no running module serves VaultKV"}}
	with := func(s Supply, change func(*Supply)) Supply {
		change(&s)
		return s
	}
	type want struct {
		Ready           bool
		Reason, Message string
		Stalled         bool
		Wait            time.Duration
	}
	cases := map[string]struct {
		reason string
		in     Supplies
		want   want
	}{
		"None":    {"Without sources of other operators all values are available.", Supplies{}, want{Ready: true}},
		"Held":    {"Values in parts can be used.", Supplies{Sources: []Supply{held, held}}, want{Ready: true}},
		"Unknown": {"Until the running modules are known, nothing is used.", Supplies{Unknown: true, Sources: []Supply{held}}, want{Wait: settling}},
		"Skewed": {
			"Values of a module with another version are not used.",
			Supplies{Sources: []Supply{held, with(held, func(s *Supply) { s.Skewed = "too old" })}},
			want{Reason: "VersionSkew", Message: "too old", Stalled: true},
		},
		"Reported": {
			"Present values are used while an operator reports an error.",
			Supplies{Sources: []Supply{held}, Reports: []Report{{Message: "no answer", Class: provider.Unavailable}}},
			want{Ready: true, Reason: "SecretSyncedError", Message: "Unavailable: no answer"},
		},
		"Refused": {
			"Values that were read before a refusal are not used.",
			Supplies{Sources: []Supply{held}, Reports: []Report{{Reason: "Forbidden", Message: "not admitted"}}},
			want{Reason: "Forbidden", Message: "not admitted", Stalled: true},
		},
		"NotReady": {
			"The reason of an operator is that of the object.",
			Supplies{Sources: []Supply{missing}, Reports: []Report{{Reason: "StoreNotReady", Message: "not ready"}}},
			want{Reason: "StoreNotReady", Message: "not ready"},
		},
		"OtherReason": {
			"An unknown reason of a newer operator becomes the default one.",
			Supplies{Sources: []Supply{held}, Reports: []Report{{Reason: "Novel", Message: "new"}}},
			want{Ready: true, Reason: "SecretSyncedError", Message: "new"},
		},
		"Soon":    {"A missing value is not reported at once.", Supplies{Sources: []Supply{missing}, Waited: 10 * time.Second}, want{Wait: 35 * time.Second}},
		"Late":    {"A missing value is reported with the module to check.", Supplies{Sources: []Supply{missing}, Waited: time.Minute}, want{Reason: "SecretSyncedError", Message: `Unavailable: VaultKV "v": waiting for provider-vault to hand over the values; if this lasts, check the log of that module`}},
		"Unnamed": {"Without a known module the message names none.", Supplies{Sources: []Supply{with(missing, func(s *Supply) { s.Module = "" })}, Waited: time.Minute}, want{Reason: "SecretSyncedError", Message: `Unavailable: VaultKV "v": waiting for the module that serves it to hand over the values; if this lasts, check the log of that module`}},
		"Absent": {
			"A module that does not run is reported with the fix.",
			Supplies{Sources: []Supply{held, with(missing, func(s *Supply) { s.Missing = Absence{Certain: true, Hint: "install it"} })}},
			want{Reason: "ProviderNotRunning", Message: "install it", Stalled: true},
		},
		"NotCertain": {
			"A module that may start is checked again.",
			Supplies{Sources: []Supply{with(missing, func(s *Supply) { s.Missing = Absence{Wait: 5 * time.Second} })}},
			want{Wait: 5 * time.Second},
		},
		"Stopped": {"Values that are due stay, and their operator is reported.", Supplies{Sources: []Supply{stopped}, Now: now}, want{Ready: true, Reason: "ProviderNotRunning", Message: "no running module serves VaultKV", Stalled: true}},
		"Restarts": {
			"A stopped operator may be in a rollout.",
			Supplies{Sources: []Supply{with(stopped, func(s *Supply) { s.Missing = Absence{Wait: time.Minute} })}, Now: now},
			want{Ready: true, Wait: time.Minute},
		},
		"NotDue": {"Values of a stopped operator are checked again when they are due.", Supplies{Sources: []Supply{with(stopped, func(s *Supply) { s.Due = now.Add(time.Hour) })}, Now: now}, want{Ready: true, Wait: time.Hour}},
		"MissingFirst": {
			"A missing value is reported before one that is due.",
			Supplies{Sources: []Supply{stopped, with(missing, func(s *Supply) { s.Missing = Absence{Certain: true, Hint: "install it"} })}, Now: now},
			want{Reason: "ProviderNotRunning", Message: "install it", Stalled: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := DecideSupplies(tc.in)
			got := want{Ready: j.Ready, Wait: j.Wait}
			if j.Problem != nil {
				got.Reason, got.Message, got.Stalled = j.Problem.Reason, j.Problem.Text(), j.Problem.Stalled
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDecideSupplies(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
