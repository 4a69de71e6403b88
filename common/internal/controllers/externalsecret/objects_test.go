package externalsecret

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestObjects(t *testing.T) {
	o := newObjects()
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	if o.peek(key) != nil {
		t.Error("peek(): an object that nobody asked for")
	}
	first := o.get(key, "one")
	if o.get(key, "one") != first || o.peek(key) != first {
		t.Error("get(): the memory of an object is not kept")
	}
	second := o.get(key, "two")
	if second == first || second.uid != "two" {
		t.Error("get(): an object that was made anew begins with the memory of the old one")
	}
	o.forget(key)
	o.forget(key)
	if o.peek(key) != nil {
		t.Error("peek(): an object that was forgotten")
	}
}

func TestLatest(t *testing.T) {
	cases := map[string]struct {
		reason string
		// wrote is the version of our last write; empty for none.
		wrote, cached string
		// saw is the version of an event in between; empty for none.
		saw string
		// ours says whose status counts; version is what a patch must find.
		ours    bool
		version string
	}{
		"NeverWrote":   {"Without a write of our own the cache counts.", "", "5", "", false, "5"},
		"Behind":       {"A cache from before our write is behind.", "10", "5", "", true, "10"},
		"CaughtUp":     {"A cache that shows our write counts.", "10", "10", "", false, "10"},
		"Ahead":        {"A cache that shows a later write counts.", "10", "11", "", false, "11"},
		"Digits":       {"Versions are numbers: 9 is older than 10.", "10", "9", "", true, "10"},
		"EventBefore":  {"An event from before our write changes nothing.", "10", "5", "7", true, "10"},
		"EventOfOurs":  {"After the event of our write the cache counts.", "10", "10", "10", false, "10"},
		"EventAfter":   {"After a later event the cache counts.", "10", "12", "12", false, "12"},
		"Incomparable": {"A version that is no number is believed.", "10", "x", "", false, "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &object{}
			if tc.wrote != "" {
				o.wroteStatus(&v1alpha1.ExternalSecret{
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.wrote},
					Status:     v1alpha1.ExternalSecretStatus{ObservedRefreshRequest: "ours"},
				})
			}
			if tc.saw != "" {
				o.sawStatus(tc.saw)
			}
			es := &v1alpha1.ExternalSecret{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.cached},
				Status:     v1alpha1.ExternalSecretStatus{ObservedRefreshRequest: "cached"},
			}
			if got := o.latest(es).ObservedRefreshRequest == "ours"; got != tc.ours {
				t.Errorf("\n%s\nlatest() is ours: %t, want %t", tc.reason, got, tc.ours)
			}
			if got := o.version(es); got != tc.version {
				t.Errorf("\n%s\nversion(): %s, want %s", tc.reason, got, tc.version)
			}
		})
	}
}

func secretMeta(name, uid, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func TestLatestSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		wrote  *metav1.PartialObjectMetadata
		cached *metav1.PartialObjectMetadata
		want   string
	}{
		"NeverWrote": {"Without a write of our own the cache counts.", nil, secretMeta("db", "u", "5"), "5"},
		"Neither":    {"There is no Secret.", nil, nil, ""},
		"NotYet":     {"A Secret that we made and the cache does not show is there.", secretMeta("db", "u", "10"), nil, "10"},
		"Behind":     {"A cache from before our write is behind.", secretMeta("db", "u", "10"), secretMeta("db", "u", "5"), "10"},
		"CaughtUp":   {"A cache that shows our write counts.", secretMeta("db", "u", "10"), secretMeta("db", "u", "10"), "10"},
		"Ahead":      {"A cache that shows a later write counts.", secretMeta("db", "u", "10"), secretMeta("db", "u", "11"), "11"},
		"OtherName":  {"A Secret of another name is another.", secretMeta("old", "u", "10"), secretMeta("db", "u", "5"), "5"},
		"OtherGone":  {"A Secret of another name is another.", secretMeta("old", "u", "10"), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &object{}
			if tc.wrote != nil {
				o.wroteSecret(tc.wrote)
			}
			var got string
			if m := o.latestSecretLocked(tc.cached, "db"); m != nil {
				got = m.ResourceVersion
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nlatestSecretLocked(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSawSecret tells an object of events of its target, whose version 10 it wrote.
func TestSawSecret(t *testing.T) {
	type event struct {
		meta    *metav1.PartialObjectMetadata
		deleted bool
	}
	cases := map[string]struct {
		reason string
		events []event
		// want says for each event whether it is only an echo; left whether our write is still
		// remembered.
		want []bool
		left bool
	}{
		"Echo":          {"The event of our own write is an echo.", []event{{secretMeta("db", "u", "10"), false}}, []bool{true}, false},
		"OnlyOnce":      {"The next one is not.", []event{{secretMeta("db", "u", "10"), false}, {secretMeta("db", "u", "11"), false}}, []bool{true, false}, false},
		"Before":        {"An event from before our write tells nothing.", []event{{secretMeta("db", "u", "5"), false}, {secretMeta("db", "u", "10"), false}}, []bool{true, true}, false},
		"After":         {"A later event does.", []event{{secretMeta("db", "u", "11"), false}}, []bool{false}, false},
		"Deleted":       {"So does a deletion.", []event{{secretMeta("db", "u", "11"), true}}, []bool{false}, false},
		"DeletedAtOurs": {"Also one that carries the version of our write.", []event{{secretMeta("db", "u", "10"), true}}, []bool{false}, false},
		"DeletedLast":   {"Also one that carries an older version: no later event of this Secret will come.", []event{{secretMeta("db", "u", "5"), true}}, []bool{false}, false},
		"DeletedOther":  {"The deletion of the Secret that was there before ours is no news.", []event{{secretMeta("db", "old", "5"), true}}, []bool{true}, true},
		"OtherName":     {"A Secret of another name is another.", []event{{secretMeta("x", "u", "5"), false}}, []bool{false}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &object{}
			o.wroteSecret(secretMeta("db", "u", "10"))
			var got []bool
			for _, e := range tc.events {
				got = append(got, o.sawSecret(e.meta, e.deleted))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nsawSecret(): -want, +got:\n%s", tc.reason, diff)
			}
			if left := o.secret != nil; left != tc.left {
				t.Errorf("\n%s\nour write is remembered: %t, want %t", tc.reason, left, tc.left)
			}
		})
	}
	if (&object{}).sawSecret(secretMeta("db", "u", "1"), false) {
		t.Error("sawSecret(): an echo, although nothing was written")
	}
}

func TestBegin(t *testing.T) {
	a := attempt{generation: 1, request: "r"}
	cases := map[string]struct {
		reason string
		next   attempt
		after  time.Duration
		want   time.Duration
	}{
		"Same":       {"The same attempt waits for its time.", a, 0, time.Minute},
		"Meanwhile":  {"The same attempt waits for its time.", a, 20 * time.Second, 40 * time.Second},
		"Over":       {"Then it goes.", a, time.Minute, 0},
		"Generation": {"A new spec does not wait.", attempt{generation: 2, request: "r"}, 0, 0},
		"Request":    {"A new request does not wait.", attempt{generation: 1, request: "s"}, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &object{}
				if wait, again := o.begin(a); wait > 0 || again {
					t.Errorf("begin(): the first attempt waits %s, again %t", wait, again)
				}
				o.hold(time.Now().Add(time.Minute))
				time.Sleep(tc.after)
				wait, again := o.begin(tc.next)
				if got := max(0, wait); got != tc.want || again != (tc.next == a) {
					t.Errorf("\n%s\nbegin(): %s, again %t, want %s", tc.reason, got, again, tc.want)
				}
			})
		})
	}
}
