package pushsecret

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// somewhere is a client with a configurable identity.
type somewhere struct {
	provider.Client

	is  provider.Identity
	err error
}

func (s somewhere) Identity(context.Context) (provider.Identity, error) { return s.is, s.err }

func storeOf(ns, name string) *fakev1.FakeStore {
	return &fakev1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + "/" + name), Generation: 1}}
}

// TestLocate checks where a store leads, as far as its client can tell.
func TestLocate(t *testing.T) {
	const here = "here"
	down := errors.New("down")
	own := ownPlace(storeOf("n", "a"), "n")
	cases := map[string]struct {
		reason string
		client provider.Client
		// was is the place in the status.
		was   string
		place string
		err   error
		known bool
	}{
		"Known":     {"The client tells.", somewhere{is: provider.Identity{Place: here}}, "", hashOf(here), nil, true},
		"Moved":     {"It tells the present place, whatever the status records.", somewhere{is: provider.Identity{Place: here}}, "other", hashOf(here), nil, true},
		"Cannot":    {"A store whose client never knows is a place of its own.", nil, "", own, nil, true},
		"Down":      {"A store whose client has never told may be anywhere.", somewhere{err: down}, "", own, down, false},
		"DownKnown": {"A place that was told before stays, but is not certain.", somewhere{err: down}, "before", "before", down, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, d := &object{}, &destination{store: storeOf("n", "a")}
			d.status.Place = tc.was
			at, err := o.locate(t.Context(), d, "n", fake.Link("FakeStore", tc.client))
			_, known := o.stores.location(storeID{})
			if diff := cmp.Diff([]any{tc.place, tc.err != nil, tc.known}, []any{at.place, err != nil, known}); diff != "" {
				t.Errorf("\n%s\nplace, error and whether it is certain: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSites checks which remote secrets of two stores are one.
func TestSites(t *testing.T) {
	at := func(place, prefix string) location {
		return location{place: place, Identity: provider.Identity{Place: place, Prefix: prefix}}
	}
	for name, tc := range map[string]struct {
		reason string
		other  string
		same   bool
	}{
		"Same":    {"The same key at the same place is the same secret.", at("p", "x/").site("db"), true},
		"Prefix":  {"The prefix of a store counts as part of the key.", at("p", "").site("x/db"), true},
		"Spelled": {"Another key can be of the same secret.", location{place: "p", naming: naming{true, map[string]provider.Name{"arn:db": {Key: "x/db"}}}}.site("arn:db"), true},
		"Key":     {"Another key is another secret.", at("p", "").site("db"), false},
		"Place":   {"The same key at another place is another secret.", at("q", "x/").site("db"), false},
	} {
		if (at("p", "x/").site("db") == tc.other) != tc.same {
			t.Errorf("%s: %s", name, tc.reason)
		}
	}
}
