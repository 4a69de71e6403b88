package fanout

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

func parent(uid types.UID, generation int64) *v1alpha1.ClusterExternalSecret {
	return &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: uid, Generation: generation}}
}

// TestBoard sets results on a board, step by step.
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
		{"A first success changes the status.", parent("u", 1), "a", ok, true, true},
		{"The same result again does not change the status.", parent("u", 1), "a", ok, false, true},
		{"A refusal changes the status.", parent("u", 1), "a", bad, true, true},
		{"The same refusal again does not change the status.", parent("u", 1), "a", bad, false, true},
		{"A removed result changes the status.", parent("u", 1), "a", nil, true, false},
		{"The removal of a result that does not exist does not change the status.", parent("u", 1), "b", nil, false, false},
		{"Another generation starts without results.", parent("u", 2), "a", ok, true, true},
		{"A late result of an earlier generation is ignored.", parent("u", 1), "a", bad, false, false},
		{"Another object of the same name starts without results, whatever its generation.", parent("v", 1), "a", bad, true, true},
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
		t.Errorf("the status is behind since %s, want since the first change", got)
	}
	b.shown(p)
	if got := b.behind(p, start.Add(time.Hour)); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("once shown, the status is behind since %s, want since now", got)
	}
	b.forget("db")
	if got := b.refused("a"); slices.Contains(got, "db") {
		t.Error("a deleted parent still waits")
	}
	b.set(p, "a", bad, start)
	b.clear()
	if _, known := b.get(p, "a"); known {
		t.Error("a cleared board has a result")
	}
}

func TestAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	type want struct {
		Refused string
		Made    bool
		// Held is true if the next write is in back-off.
		Held bool
	}
	var often policy.RevertBackoff // With one more revert, the next write is in back-off.
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
		"InSync":       {"A child in sync counts as made.", result{}, outcome{}, true, want{Made: true}},
		"Failed":       {"A failed attempt does not count as made.", result{}, outcome{}, false, want{}},
		"FailedLater":  {"A child that was made still counts after a failed attempt.", result{made: true}, outcome{}, false, want{Made: true}},
		"Refused":      {"A refused child does not count as made.", result{}, outcome{refused: "taken"}, true, want{Refused: "taken"}},
		"WrittenFirst": {"The first write is no revert.", result{revertBackoff: often}, outcome{written: true}, true, want{Made: true}},
		"WrittenAgain": {"The next write is a revert.", result{revertBackoff: often, made: true}, outcome{written: true}, true, want{Made: true, Held: true}},
		"Untouched":    {"An attempt without a write is no revert.", result{revertBackoff: often, made: true}, outcome{}, true, want{Made: true}},
		"Changed":      {"A child that a webhook changes at the write counts as made, too.", result{}, outcome{written: true, refused: "webhook"}, true, want{Refused: "webhook", Made: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := tc.before.after(tc.o, tc.good, now)
			got := want{Refused: is.refused, Made: is.made, Held: is.revertBackoff.Wait(now) > 0}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nafter(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFreed deletes an object in a namespace where it blocked a parent, and in another one.
func TestFreed(t *testing.T) {
	r := &reconciler{kinds: externalSecrets(), board: &board{}}
	r.board.set(parent("u", 1), "a", &result{refused: "taken"}, time.Unix(1000, 0))
	r.board.set(parent("u", 1), "b", &result{}, time.Unix(1000, 0))
	for namespace, want := range map[string][]request{"a": {{"db", "a"}}, "b": nil} {
		var got []request
		foreign := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
		r.onChild(t.Context(), kit.Event{Was: foreign}, func(q request, after time.Duration) {
			if after == 0 {
				got = append(got, q)
			}
		})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
			t.Errorf("a deletion in namespace %s enqueues: -want, +got:\n%s", namespace, diff)
		}
	}
}
