package operator

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// held is a lock on a Lease of somebody.
type held struct {
	resourcelock.Interface

	holder string
}

func (held) Identity() string { return "me" }

func (h held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: h.holder, LeaseDurationSeconds: 15}, []byte("raw"), nil
}

func TestEarly(t *testing.T) {
	cases := map[string]struct {
		reason, holder string
		want           int
	}{
		"Others": {"Who waits allows for how late it looks.", "other", 9},
		"Own":    {"Who leads does not.", "me", 15},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, raw, err := early{held{holder: tc.holder}}.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := &resourcelock.LeaderElectionRecord{HolderIdentity: tc.holder, LeaseDurationSeconds: tc.want}
			if diff := cmp.Diff(want, r); diff != "" || string(raw) != "raw" {
				t.Errorf("%s\nGet(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
