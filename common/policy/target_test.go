package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func controller(kind, name, uid string) *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID("uid-" + uid), Controller: &yes}
}

// TestDecide goes through every situation of a target, with and without the wish to own it, before
// the values are read and after. A plus sign asks for the fence.
func TestDecide(t *testing.T) {
	me := controller("ExternalSecret", "db", "me")
	mine := Mark{Name: "db", UID: "uid-me", Generation: 3, Hash: "h", Fields: "f"}
	mark := func(change func(*Mark)) Mark {
		m := mine
		change(&m)
		return m
	}
	older := mark(func(m *Mark) { m.Generation = 2 })
	newer := mark(func(m *Mark) { m.Generation = 4 })
	dead := mark(func(m *Mark) { m.UID, m.Generation = "uid-dead", 9 })

	// outcome by what was rendered: nothing yet, what the mark records, other values, other keys.
	type outcome [4]string
	all := func(s string) outcome { return outcome{s, s, s, s} }
	nothing := outcome{"Nothing", "Nothing", "Apply", "Apply"}
	own := outcome{"Own", "Own", "Apply", "Apply"}
	apply := outcome{"Render", "Apply", "Apply", "Apply"}
	fenced := func(o outcome) outcome {
		for i := range o {
			o[i] += "+"
		}
		return o
	}

	type want struct{ Owns, Not outcome }
	both := func(o outcome) want { return want{o, o} }
	cases := map[string]struct {
		reason string
		target Target
		// synced is "yes", "no", or empty for both.
		synced string
		want   want
	}{
		"Absent": {
			"A Secret that never was is created; a POST cannot overwrite.",
			Target{}, "no", both(outcome{"Render", "Create", "Create", "Create"}),
		},
		"AbsentAfterSync": {
			"One that was there before may have been deleted with its ExternalSecret, so that is asked first.",
			Target{}, "yes", both(outcome{"Render", "Create+", "Create+", "Create+"}),
		},
		"Adoptable": {
			"A Secret of nobody is adopted.",
			Target{Exists: true}, "", both(apply),
		},
		"OwnerWithoutMark": {
			"Our own Secret whose mark somebody removed is written again.",
			Target{Exists: true, Controller: me}, "", both(apply),
		},
		"IntactAndOwned": {
			"Nothing new is nothing to do; the owner goes when it is not wanted.",
			Target{Exists: true, Intact: true, Mark: mine, Controller: me}, "", want{nothing, own},
		},
		"IntactNotOwned": {
			"The owner comes when it is wanted, without values.",
			Target{Exists: true, Intact: true, Mark: mine}, "", want{own, nothing},
		},
		"OlderGeneration": {
			"A mark of an earlier generation is our own.",
			Target{Exists: true, Intact: true, Mark: older, Controller: me}, "", want{nothing, own},
		},
		"HigherGeneration": {
			"A mark of a later generation means that somebody knows more than we do.",
			Target{Exists: true, Intact: true, Mark: newer, Controller: me}, "", want{fenced(nothing), fenced(own)},
		},
		"HigherGenerationDrifted": {
			"Also if fields were changed.",
			Target{Exists: true, Mark: newer, Controller: me}, "", both(fenced(apply)),
		},
		"Drifted": {
			"What was changed by hand is reverted.",
			Target{Exists: true, Mark: mine, Controller: me}, "", both(apply),
		},
		"DriftedNotOwned": {
			"Drift goes before the owner; one write does both.",
			Target{Exists: true, Mark: mine}, "", both(apply),
		},
		"DeadIncarnation": {
			"The mark of an ExternalSecret of this name that is gone never blocks, but the fence proves that we are the living one.",
			Target{Exists: true, Intact: true, Mark: dead}, "", both(fenced(apply)),
		},
		"DeadIncarnationOwned": {
			"Nor does its ownerReference.",
			Target{Exists: true, Intact: true, Mark: dead, Controller: controller("ExternalSecret", "db", "dead")}, "", both(fenced(apply)),
		},
		"ForeignController": {
			"What somebody else controls is never written.",
			Target{Exists: true, Controller: controller("Database", "other", "db")}, "", both(all("Yield")),
		},
		"ForeignControllerOfOurs": {
			"Also not if we wrote it before.",
			Target{Exists: true, Intact: true, Mark: mine, Controller: controller("Database", "other", "db")}, "", both(all("Yield")),
		},
		"ForeignControllerTerminating": {
			"What is in the way is said also while it goes.",
			Target{Exists: true, Terminating: true, Controller: controller("Database", "other", "db")}, "", both(all("Yield")),
		},
		"Rival": {
			"What another living ExternalSecret writes is never written.",
			Target{Exists: true, Rival: "other"}, "", both(all("Yield")),
		},
		"RivalOfOurs": {
			"Also not if our mark is there, too.",
			Target{Exists: true, Intact: true, Mark: mine, Controller: me, Rival: "other"}, "", both(all("Yield")),
		},
		"RivalAfterDead": {
			"Also not if ours is that of a dead one.",
			Target{Exists: true, Mark: dead, Rival: "other"}, "", both(all("Yield")),
		},
		"Terminating": {
			"A Secret that is being deleted must go first.",
			Target{Exists: true, Terminating: true}, "", both(all("Wait")),
		},
		"TerminatingIntact": {
			"Also if it is our own.",
			Target{Exists: true, Terminating: true, Intact: true, Mark: mine, Controller: me}, "", both(all("Wait")),
		},
		"TerminatingDead": {
			"Also if it was that of a dead one.",
			Target{Exists: true, Terminating: true, Mark: dead, Controller: controller("ExternalSecret", "db", "dead")}, "", both(all("Wait")),
		},
	}
	rendered := []*Rendered{nil, {Hash: "h", Fields: "f"}, {Hash: "i", Fields: "f"}, {Hash: "h", Fields: "g"}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, synced := range []bool{false, true} {
				if tc.synced == "yes" && !synced || tc.synced == "no" && synced {
					continue
				}
				decide := func(owns bool) (o outcome) {
					for i, r := range rendered {
						d := Decide(Self{UID: "uid-me", Generation: 3, Synced: synced, Owns: owns}, tc.target, r)
						o[i] = string(d.Action)
						if d.Fence {
							o[i] += "+"
						}
					}
					return o
				}
				got := want{decide(true), decide(false)}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\nDecide(), synced before %t: -want, +got:\n%s", tc.reason, synced, diff)
				}
			}
		})
	}
}

func TestDecideSays(t *testing.T) {
	cases := map[string]struct {
		reason string
		target Target
		want   []string
	}{
		"Controller":  {"The message names the owner and the fix.", Target{Exists: true, Controller: controller("Database", "other", "db")}, []string{"Database", `"other"`, "spec.target.name"}},
		"Rival":       {"The message names the rival and the fix.", Target{Exists: true, Rival: "other"}, []string{"ExternalSecret", `"other"`, "spec.target.name"}},
		"Terminating": {"The message says what is waited for.", Target{Exists: true, Terminating: true}, []string{"being deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(Self{UID: "uid-me"}, tc.target, nil).Message
			for _, w := range tc.want {
				if !strings.Contains(got, w) {
					t.Errorf("\n%s\nMessage: %q does not say %q", tc.reason, got, w)
				}
			}
		})
	}
}
