package fanout

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

func parent(uid types.UID, generation int64) *v1alpha1.ClusterExternalSecret {
	return &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: uid, Generation: generation}}
}

// TestBoard tells a board what came of namespaces, step by step.
func TestBoard(t *testing.T) {
	var b board
	start := time.Unix(1000, 0)
	ok, bad := &result{}, &result{refused: "taken"}
	steps := []struct {
		reason string
		of     *v1alpha1.ClusterExternalSecret
		ns     string
		set    *result
		news   bool
		known  bool
	}{
		{"A first success is news.", parent("u", 1), "a", ok, true, true},
		{"The same again is none.", parent("u", 1), "a", ok, false, true},
		{"A refusal is.", parent("u", 1), "a", bad, true, true},
		{"Also only once.", parent("u", 1), "a", bad, false, true},
		{"That there is nothing to say of it is news.", parent("u", 1), "a", nil, true, false},
		{"But not of what nothing was said of.", parent("u", 1), "b", nil, false, false},
		{"Another generation begins with nothing.", parent("u", 2), "a", ok, true, true},
		{"What comes late of an earlier one is passed over.", parent("u", 1), "a", bad, false, false},
		{"Another object of the name begins anew, whatever its generation.", parent("v", 1), "a", bad, true, true},
	}
	for _, s := range steps {
		if got := b.set(s.of, s.ns, s.set, start); got != s.news {
			t.Errorf("%s set(): %t, want %t", s.reason, got, s.news)
		}
		if _, got := b.get(s.of, s.ns); got != s.known {
			t.Errorf("%s get(): %t, want %t", s.reason, got, s.known)
		}
	}
	if diff := cmp.Diff([]string{"db"}, b.refused("a")); diff != "" {
		t.Errorf("refused(): -want, +got:\n%s", diff)
	}
	p := parent("v", 1)
	if got := b.behind(p, start.Add(time.Hour)); !got.Equal(start) {
		t.Errorf("the status is behind since %s, want since the first news", got)
	}
	b.shown(p)
	if got := b.behind(p, start.Add(time.Hour)); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("once shown, the status is behind since %s, want since now", got)
	}
	b.forget("db")
	if got := b.refused("a"); slices.Contains(got, "db") {
		t.Error("a parent that is gone still waits")
	}
	b.set(p, "a", bad, start)
	b.clear()
	if _, known := b.get(p, "a"); known {
		t.Error("a board that was cleared knows something")
	}
}

func TestAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	type want struct {
		Refused string
		Made    bool
		// Held is true if the next write is held back.
		Held bool
	}
	var often policy.Fight // One more revert, and the next is held back.
	for range 4 {
		often = often.Revert(now)
	}
	cases := map[string]struct {
		reason string
		before result
		o      outcome
		good   bool
		want   want
	}{
		"InStep":       {"What is in step was made.", result{}, outcome{}, true, want{Made: true}},
		"Failed":       {"What failed was not.", result{}, outcome{}, false, want{}},
		"FailedLater":  {"But once made it counts as such.", result{made: true}, outcome{}, false, want{Made: true}},
		"Refused":      {"What is refused was not made.", result{}, outcome{refused: "taken"}, true, want{Refused: "taken"}},
		"WrittenFirst": {"The first write reverts nothing.", result{fight: often}, outcome{written: true}, true, want{Made: true}},
		"WrittenAgain": {"The next one does.", result{fight: often, made: true}, outcome{written: true}, true, want{Made: true, Held: true}},
		"Untouched":    {"What is not written is no revert.", result{fight: often, made: true}, outcome{}, true, want{Made: true}},
		"Changed":      {"What is changed as it is written was made, too.", result{}, outcome{written: true, refused: "webhook"}, true, want{Refused: "webhook", Made: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := tc.before.after(tc.o, tc.good, now)
			got := want{Refused: is.refused, Made: is.made, Held: is.fight.Wait(now) > 0}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nafter(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
