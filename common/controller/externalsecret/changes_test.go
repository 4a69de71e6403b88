package externalsecret

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestChanges(t *testing.T) {
	key, other := types.NamespacedName{Namespace: "team", Name: "a"}, types.NamespacedName{Namespace: "team", Name: "b"}
	first := time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
	second := first.Add(time.Minute)
	cases := map[string]struct {
		reason string
		do     func(o *objects)
		at     int64
		want   time.Time
	}{
		"None":      {"Nothing has changed.", func(*objects) {}, 1, time.Time{}},
		"Changed":   {"A change waits for its generation.", func(o *objects) { o.changed(key, 1, first) }, 1, first},
		"Later":     {"A later generation brings it, too.", func(o *objects) { o.changed(key, 1, first) }, 2, first},
		"Earlier":   {"What was decided for an earlier spec does not.", func(o *objects) { o.changed(key, 2, first) }, 1, time.Time{}},
		"Again":     {"Who changes it once more has waited since the first time.", func(o *objects) { o.changed(key, 1, first); o.changed(key, 2, second) }, 2, first},
		"Taken":     {"It counts once.", func(o *objects) { o.changed(key, 1, first); o.taken(key, 1) }, 1, time.Time{}},
		"Other":     {"It is of one object.", func(o *objects) { o.changed(other, 1, first) }, 1, time.Time{}},
		"Forgotten": {"It goes with its object.", func(o *objects) { o.changed(key, 1, first); o.forget(key) }, 1, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newObjects()
			tc.do(o)
			if got := o.taken(key, tc.at); !got.Equal(tc.want) {
				t.Errorf("\n%s\ntaken(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
