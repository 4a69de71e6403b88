package generation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
)

func TestHolds(t *testing.T) {
	gen, other := handoff.Generator{Kind: "FakeGenerator", Name: "gen"}, handoff.Generator{Kind: "FakeGenerator", Name: "other"}
	delivered := func(versions map[handoff.Generator]string) user {
		f := user{inSync: true, delivered: versions}
		for g := range versions {
			f.generators = append(f.generators, refTo(g))
		}
		return f
	}
	record := func(entries ...handoff.Entry) handoff.Record {
		rec := handoff.Record{UID: "uid", Entries: map[string]handoff.Entry{}}
		for _, e := range entries {
			rec.Entries[handoff.ID(refTo(e.Generator))] = e
		}
		return rec
	}
	unsettled := delivered(map[handoff.Generator]string{gen: "v1"})
	unsettled.inSync = false
	foreign := record(handoff.Entry{Generator: gen, Version: "v1"})
	foreign.UID = "another"
	cases := map[string]struct {
		reason string
		user   user
		rec    handoff.Record
		want   bool
	}{
		"Delivered": {
			"Consumers hold the values of an entry whose version was delivered.",
			delivered(map[handoff.Generator]string{gen: "v1"}), record(handoff.Entry{Generator: gen, Version: "v1"}), true,
		},
		"OlderVersion": {
			"Consumers with an older version do not hold the values of the entry: older values must not be revoked.",
			delivered(map[handoff.Generator]string{gen: "v1"}), record(handoff.Entry{Generator: gen, Version: "v2"}), false,
		},
		"NeverDelivered": {
			"Values without a version in the status were not delivered.",
			delivered(map[handoff.Generator]string{gen: ""}), record(handoff.Entry{Generator: gen, Version: "v1"}), false,
		},
		"OneOfTwo": {
			"All entries must be delivered, not only one.",
			delivered(map[handoff.Generator]string{gen: "v1", other: "v1"}),
			record(handoff.Entry{Generator: gen, Version: "v1"}, handoff.Entry{Generator: other, Version: "v2"}), false,
		},
		"NotUsed": {
			"An entry of a generator that the object no longer uses does not count.",
			delivered(map[handoff.Generator]string{gen: "v1"}),
			record(handoff.Entry{Generator: gen, Version: "v1"}, handoff.Entry{Generator: other, Version: "v2"}), true,
		},
		"OutOfSync": {
			"The status of an object that is out of sync does not show what its consumers hold.",
			unsettled, record(handoff.Entry{Generator: gen, Version: "v1"}), false,
		},
		"AnotherObject": {
			"The values of an object with another uid were not delivered to this one.",
			delivered(map[handoff.Generator]string{gen: "v1"}), foreign, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.user.Object = &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
			if got := tc.user.holds(tc.rec); got != tc.want {
				t.Errorf("\n%s\nholds(): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
