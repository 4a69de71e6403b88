package pushsecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestClaims checks which other objects may hold a value at a place, and which of them take precedence.
func TestClaims(t *testing.T) {
	parent := func(o *v1alpha1.PushSecret) {
		yes := true
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterPushSecret", Name: "all", UID: "all", Controller: &yes}}
	}
	entry := v1alpha1.PushEntryStatus{RemoteKey: "db", Source: "source", ID: "id"}
	const none, claimed, first = "none", "claimed", "first"
	cases := map[string]struct {
		reason string
		peer
		younger  bool // the other object is younger than this one
		siblings bool
		spelled  map[string]provider.Name
		want     string
	}{
		"Older":     {reason: "An older object takes precedence.", peer: peer{entry: entry, place: "p", located: "p"}, want: first},
		"Younger":   {reason: "A younger one has a claim.", peer: peer{entry: entry, place: "p", located: "p"}, younger: true, want: claimed},
		"Lost":      {reason: "An entry without a source only uses the place.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "db", ID: "id"}, place: "p", located: "p"}, want: none},
		"Observes":  {reason: "IfNotExists replaces no value.", peer: peer{spec: v1alpha1.PushSecretSpec{UpdatePolicy: v1alpha1.UpdateIfNotExists}, entry: entry, place: "p", located: "p"}, want: none},
		"Suspended": {reason: "A suspended object pushes nothing.", peer: peer{spec: v1alpha1.PushSecretSpec{Suspend: true}, entry: entry, place: "p", located: "p"}, want: none},
		"Dry":       {reason: "Neither does a dry run.", peer: peer{spec: v1alpha1.PushSecretSpec{DryRun: true}, entry: entry, place: "p", located: "p"}, want: none},
		"Deleted":   {reason: "An object that is being deleted holds nothing.", peer: peer{entry: entry, place: "p", located: "p", deleted: true}, want: none},
		"Unlocated": {reason: "An entry at an unknown place blocks nothing.", peer: peer{entry: entry, place: "p"}, want: none},
		"Elsewhere": {reason: "An entry at another place neither.", peer: peer{entry: entry, place: "p", located: "q"}, want: none},
		"Replaced":  {reason: "A parent has replaced the object by this younger one.", peer: peer{entry: entry, place: "p", located: "p"}, siblings: true, want: none},
		"Successor": {reason: "A parent replaces this object by the younger one.", peer: peer{entry: entry, place: "p", located: "p"}, younger: true, siblings: true, want: first},
		"Children":  {reason: "Children in two namespaces are two objects.", peer: peer{namespace: "other", entry: entry, place: "p", located: "p"}, siblings: true, want: first},
		"Spelled":   {reason: "Another key can be of the same secret.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "arn:db", Source: "source"}, place: "p", located: "p"}, spelled: map[string]provider.Name{"arn:db": {Key: "x/db"}}, want: first},
		"Similar":   {reason: "A similar key is of another one.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "arn:db", Source: "source"}, place: "p", located: "p"}, spelled: map[string]provider.Name{"arn:db": {Key: "y/db"}}, want: none},
		"Unnamed":   {reason: "A key that is not known now blocks nothing.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "arn:db", Source: "source"}, place: "p", located: "p"}, spelled: map[string]provider.Name{}, want: none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.namespace == "" {
				tc.namespace = "n"
			}
			o, other := lookup(t, &tc.peer)
			age := func(of *object, at metav1.Time) {
				ps := of.seen.Load().DeepCopy()
				if ps.CreationTimestamp = at; tc.siblings {
					parent(ps)
				}
				of.show(ps)
			}
			before, after := metav1.NewTime(noon.Add(-1)), metav1.NewTime(noon)
			if age(o.self, after); tc.younger {
				before = metav1.NewTime(noon.Add(1))
			}
			age(other, before)
			if tc.spelled != nil {
				other.stores.move(o.unit.store, func(at location) location {
					at.naming = naming{true, tc.spelled}
					return at
				})
			}
			got := none
			for _, c := range o.Claims("db", "other") {
				if got = claimed; c.First {
					got = first
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamesJoin merges what a spec, and a former spelling of it, name at one remote secret.
func TestNamesJoin(t *testing.T) {
	want := func(key, property string) job {
		return job{target: provider.Target{Key: key}, want: []push.Value{{Property: property}}}
	}
	known := func(key, property string) job {
		return job{target: provider.Target{Key: key}, known: []v1alpha1.PushEntryStatus{{RemoteKey: key, Property: property}}}
	}
	kept := func(key, property string) job {
		return job{target: provider.Target{Key: key}, kept: []v1alpha1.PushEntryStatus{{RemoteKey: key, Property: property}}}
	}
	type shape struct {
		Key               string
		Want, Known, Kept int
	}
	cases := map[string]struct {
		reason string
		jobs   []job
		want   []shape
		err    bool
	}{
		"Obsolete": {"A former key becomes known to the job of the spec.", []job{want("db", ""), known(fake.Full+"db", "")}, []shape{{"db", 1, 1, 0}}, false},
		"Before":   {"Its place in the list does not matter.", []job{known(fake.Full+"db", ""), want("db", "")}, []shape{{"db", 1, 1, 0}}, false},
		"Kept":     {"An entry that was kept for later is wanted again.", []job{want("db", "a"), kept(fake.Full+"db", "a")}, []shape{{"db", 1, 1, 0}}, false},
		"KeptElse": {"An entry for another property stays kept.", []job{want("db", "a"), kept(fake.Full+"db", "b")}, []shape{{"db", 1, 0, 1}}, false},
		"Both":     {"Two properties of one secret are one write.", []job{want("db", "a"), want(fake.Full+"db", "b")}, []shape{{"db", 2, 0, 0}}, false},
		"Twice":    {"Two values for one property are an error.", []job{want("db", "a"), want(fake.Full+"db", "a")}, nil, true},
		"Unknown":  {"A key without a known name stays alone.", []job{want("db", ""), known("unknown", "")}, []shape{{"db", 1, 0, 0}, {"unknown", 0, 1, 0}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tk := &task{jobs: tc.jobs, location: location{naming: naming{true, map[string]provider.Name{"db": {Key: "db"}, fake.Full + "db": {Key: "db"}}}}}
			v := tk.join()
			var got []shape
			for _, j := range tk.jobs {
				got = append(got, shape{j.target.Key, len(j.want), len(j.known), len(j.kept)})
			}
			if tc.err {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (v != nil) != tc.err {
				t.Errorf("%s\nverdict %v; jobs: -want, +got:\n%s", tc.reason, v, diff)
			}
		})
	}
}
