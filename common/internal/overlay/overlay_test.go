package overlay

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type object = *metav1.PartialObjectMetadata

func of(name, uid, version string) object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// event is an event of a watch, for an Object.
type event struct {
	of      object
	deleted bool
}

func (e event) applyTo(o *Object[object]) bool {
	if e.deleted {
		return o.Deleted(e.of)
	}
	return o.Saw(e.of)
}

// cache returns a reader of a cache with one object; nil for none.
func cache(shows object, err error) client.Reader {
	return &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, into client.Object) error {
		if shows == nil && err == nil {
			return kerrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		if shows != nil {
			shows.DeepCopyInto(into.(object))
		}
		return err
	}}
}

var errBoom = errors.New("boom")

// TestGet reads an object that this process wrote as version 10.
func TestGet(t *testing.T) {
	type want struct {
		// Version is the version of the returned object; empty if there is none.
		Version string
		Err     error
	}
	ours := of("db", "u", "10")
	cases := map[string]struct {
		reason string
		wrote  object
		// before are events that arrive before the answer to the write, events those that arrive after it.
		before, events []event
		after          time.Duration
		shows          object
		err            error
		want           want
	}{
		"NeverWrote":    {reason: "Without a write the cache counts.", shows: of("db", "u", "5"), want: want{Version: "5"}},
		"Neither":       {reason: "Without a write and without a cached object there is none."},
		"NotYet":        {reason: "A created object exists although the cache does not show it yet.", wrote: ours, want: want{Version: "10"}},
		"NotForAMinute": {reason: "A created object is assumed to exist for a minute.", wrote: ours, after: belief, want: want{Version: "10"}},
		"NeverShown":    {reason: "After a minute without it in the cache, the object counts as deleted.", wrote: ours, after: belief + 1},
		"Behind":        {reason: "The write is later than a cache from before it.", wrote: ours, shows: of("db", "u", "5"), want: want{Version: "10"}},
		"BehindLong":    {reason: "The write is later, however long the cache stays behind.", wrote: ours, after: time.Hour, shows: of("db", "u", "5"), want: want{Version: "10"}},
		"BehindOther":   {reason: "The write is later than a cached predecessor with another uid.", wrote: ours, shows: of("db", "old", "5"), want: want{Version: "10"}},
		"Digits":        {reason: "Versions are numbers: 9 is older than 10.", wrote: ours, shows: of("db", "u", "9"), want: want{Version: "10"}},
		"CaughtUp":      {reason: "A cache that shows the write counts.", wrote: ours, shows: of("db", "u", "10"), want: want{Version: "10"}},
		"Ahead":         {reason: "A cache that shows a later version counts.", wrote: ours, shows: of("db", "u", "11"), want: want{Version: "11"}},
		"Recreated":     {reason: "A cache that shows a later object with another uid counts.", wrote: ours, shows: of("db", "new", "11"), want: want{Version: "11"}},
		"Incomparable":  {reason: "A cached version that is not a number counts.", wrote: ours, shows: of("db", "u", "x"), want: want{Version: "x"}},
		"OtherName":     {reason: "A write under another name does not count.", wrote: of("old", "u", "10"), shows: of("db", "u", "5"), want: want{Version: "5"}},
		"OtherNone":     {reason: "A write under another name says nothing about this one.", wrote: of("old", "u", "10")},
		"Error":         {reason: "A failed read of the cache is an error.", wrote: ours, err: errBoom, want: want{Err: errBoom}},

		"EventOlder":   {reason: "An event from before the write changes nothing.", wrote: ours, events: []event{{of: of("db", "u", "7")}}, shows: of("db", "u", "7"), want: want{Version: "10"}},
		"EventOfOurs":  {reason: "After the event of the write the cache counts.", wrote: ours, events: []event{{of: ours}}},
		"EventLater":   {reason: "After a later event the cache counts.", wrote: ours, events: []event{{of: of("db", "u", "11")}}},
		"EventDeleted": {reason: "After the event of the deletion the cache counts.", wrote: ours, events: []event{{of("db", "u", "11"), true}}},

		"BeforeAnswer":      {reason: "After a later event that arrived before the answer to the write, the cache counts.", wrote: ours, before: []event{{of("db", "u", "11"), true}}},
		"BeforeAnswerOurs":  {reason: "The event of the write, arriving before its answer, does not make the cache count.", wrote: ours, before: []event{{of: ours}}, want: want{Version: "10"}},
		"BeforeAnswerOlder": {reason: "An older event before the answer does not make the cache count.", wrote: ours, before: []event{{of("db", "old", "7"), true}}, want: want{Version: "10"}},
		"BeforeAnswerFirst": {reason: "The highest version of the events counts, not the last event.", wrote: ours, before: []event{{of("db", "u", "11"), true}, {of: of("db", "u", "7")}}},
		"BeforeAnswerOther": {reason: "Events of another name do not count.", wrote: ours, before: []event{{of: of("old", "u", "11")}}, want: want{Version: "10"}},
		"BeforeAnswerBoth":  {reason: "An event of another name does not replace that of this name.", wrote: ours, before: []event{{of("db", "u", "11"), true}, {of("old", "u", "12"), true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o Object[object]
				for _, e := range tc.before {
					e.applyTo(&o)
				}
				if tc.wrote != nil {
					o.Wrote(tc.wrote)
				}
				for _, e := range tc.events {
					e.applyTo(&o)
				}
				time.Sleep(tc.after)
				is, err := o.Get(t.Context(), cache(tc.shows, tc.err), client.ObjectKey{Name: "db"}, &metav1.PartialObjectMetadata{})
				got := want{Err: err}
				if is != nil {
					got.Version = is.ResourceVersion
				}
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\nGet(): -want, +got:\n%s", tc.reason, diff)
				}
				if tc.shows == nil {
					return
				}
				if diff := cmp.Diff(tc.want.Version, o.Latest(tc.shows).ResourceVersion); diff != "" {
					t.Errorf("\n%s\nLatest(): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestForgets shows the write in the cache, and then no object.
func TestForgets(t *testing.T) {
	var o Object[object]
	o.Wrote(of("db", "u", "10"))
	o.Latest(of("db", "u", "10"))
	if is, err := o.Get(t.Context(), cache(nil, nil), client.ObjectKey{Name: "db"}, &metav1.PartialObjectMetadata{}); is != nil || err != nil {
		t.Errorf("Get(): %v, %v, want none: the cache has shown the write, and then the deletion", is, err)
	}
}

// TestEvents sends events to an Object that remembers the write of version 10.
func TestEvents(t *testing.T) {
	updated := func(version string) event { return event{of: of("db", "u", version)} }
	cases := map[string]struct {
		reason string
		events []event
		// want is whether each event is old news; left is whether the write is still remembered.
		want []bool
		left bool
	}{
		"Echo":          {"The event of the write is old news.", []event{updated("10")}, []bool{true}, false},
		"OnlyOnce":      {"Only one event is that of the write.", []event{updated("10"), updated("11")}, []bool{true, false}, false},
		"Before":        {"An event from before the write is old news.", []event{updated("5")}, []bool{true}, true},
		"BeforeOurs":    {"An older event and that of the write are old news.", []event{updated("5"), updated("10")}, []bool{true, true}, false},
		"After":         {"A later event is news.", []event{updated("11")}, []bool{false}, false},
		"Recreated":     {"A later event of another uid is news.", []event{{of: of("db", "new", "11")}}, []bool{false}, false},
		"Incomparable":  {"A version that is not a number is news.", []event{updated("x")}, []bool{false}, false},
		"Deleted":       {"A deletion is news.", []event{{of("db", "u", "11"), true}}, []bool{false}, false},
		"DeletedAtOurs": {"A deletion with the version of the write is news.", []event{{of("db", "u", "10"), true}}, []bool{false}, false},
		"DeletedLast":   {"A deletion with an older version is news: no later event of this object follows.", []event{{of("db", "u", "5"), true}}, []bool{false}, false},
		"DeletedOther":  {"The deletion of the predecessor is old news.", []event{{of("db", "old", "5"), true}}, []bool{true}, true},
		"DeletedNext":   {"The deletion of a successor is news.", []event{{of("db", "new", "12"), true}}, []bool{false}, false},
		"OtherName":     {"An event of another name does not affect the write.", []event{{of: of("x", "u", "5")}}, []bool{false}, true},
		"OtherDeleted":  {"A deletion under another name does not affect the write.", []event{{of("x", "u", "11"), true}}, []bool{false}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var o Object[object]
			for _, e := range tc.events {
				if e.applyTo(&o) {
					t.Errorf("%s is old news, although nothing was written", e.of.ResourceVersion)
				}
			}
			o = Object[object]{}
			o.Wrote(of("db", "u", "10"))
			var got []bool
			for _, e := range tc.events {
				got = append(got, e.applyTo(&o))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if left := o.Latest(of("db", "u", "1")).ResourceVersion == "10"; left != tc.left {
				t.Errorf("\n%s\nthe write is remembered: %t, want %t", tc.reason, left, tc.left)
			}
		})
	}
}

// TestGetHoldsEvents sends the event of a write while the cache is read without it.
func TestGetHoldsEvents(t *testing.T) {
	var o Object[object]
	ours := of("db", "u", "10")
	o.Wrote(ours)
	var events sync.WaitGroup
	behind := &test.MockClient{MockGet: func(_ context.Context, _ client.ObjectKey, into client.Object) error {
		of("db", "u", "5").DeepCopyInto(into.(object))
		noted := make(chan struct{})
		events.Go(func() { o.Saw(ours); close(noted) })
		select {
		case <-noted:
			t.Error("an event was noted while the cache was read")
		case <-time.After(50 * time.Millisecond):
		}
		return nil
	}}
	is, err := o.Get(t.Context(), behind, client.ObjectKey{Name: "db"}, &metav1.PartialObjectMetadata{})
	events.Wait()
	if err != nil || is.ResourceVersion != "10" {
		t.Errorf("Get(): %v, %v, want what was written", is, err)
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		known  string
		shows  []string
		want   []bool
	}{
		"First":        {"The first version in the cache is no edit.", "", []string{"5"}, []bool{false}},
		"Then":         {"A later version in the cache is an edit.", "", []string{"5", "6"}, []bool{false, true}},
		"Behind":       {"An older version in the cache is no edit.", "10", []string{"9"}, []bool{false}},
		"Ours":         {"This process's own write is no edit.", "10", []string{"10"}, []bool{false}},
		"Later":        {"A later version stays an edit until Set.", "10", []string{"11", "11"}, []bool{true, true}},
		"Incomparable": {"Versions that cannot be compared are no edit.", "10", []string{"x"}, []bool{false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := Version(tc.known)
			var got []bool
			for _, s := range tc.shows {
				got = append(got, v.Edited(of("db", "u", s)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nEdited(): -want, +got:\n%s", tc.reason, diff)
			}
			last := of("db", "u", tc.shows[len(tc.shows)-1])
			if v.Set(last); v.Edited(last) {
				t.Errorf("\n%s\nEdited(): true for a version that this process wrote or read", tc.reason)
			}
		})
	}
}

// TestEventsAreBounded sends events of ever new names to an Object. It remembers only the latest of them.
func TestEventsAreBounded(t *testing.T) {
	var o Object[object]
	var last object
	for i := range 1000 {
		last = of(fmt.Sprintf("db-%d", i), "u", fmt.Sprint(100+i))
		event{of: last}.applyTo(&o)
	}
	event{of: of("db-0", "u", "2000"), deleted: true}.applyTo(&o)
	if len(o.seen) > maxSeen {
		t.Errorf("%d events are remembered, want at most %d", len(o.seen), maxSeen)
	}
	for name, later := range map[string]bool{"db-0": true, last.Name: false, "db-1": false} {
		ours := of(name, "u", "1500")
		o.Wrote(ours)
		if known := o.Latest(of(name, "u", "1")) != ours; known != later {
			t.Errorf("%s: a later event is known: %t, want %t", name, known, later)
		}
	}
}
