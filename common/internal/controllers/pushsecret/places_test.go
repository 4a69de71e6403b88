package pushsecret

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

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

// TestSiteLocks checks that only one push or removal works on a remote secret, whatever store leads there.
func TestSiteLocks(t *testing.T) {
	at := func(place, prefix string) location {
		return location{place: place, Identity: provider.Identity{Place: place, Prefix: prefix}}
	}
	cases := map[string]struct {
		reason string
		other  string
		waits  bool
	}{
		"Same":    {"The same key at the same place is the same secret.", at("p", "x/").site("db"), true},
		"Prefix":  {"The prefix of a store counts as part of the key.", at("p", "").site("x/db"), true},
		"Spelled": {"Another key can be of the same secret.", location{place: "p", naming: naming{true, map[string]provider.Name{"arn:db": {Key: "x/db"}}}}.site("arn:db"), true},
		"Key":     {"Another key is another secret.", at("p", "").site("db"), false},
		"Place":   {"The same key at another place is another secret.", at("q", "x/").site("db"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l siteLocks
				unlock, err := l.enter(t.Context(), at("p", "x/").site("db"))
				if err != nil {
					t.Fatal(err)
				}
				entered := false
				go func() {
					next, err := l.enter(t.Context(), tc.other)
					if err != nil {
						t.Error(err)
					}
					entered = true
					next()
				}()
				synctest.Wait()
				if entered == tc.waits {
					t.Errorf("%s\nentered: %t", tc.reason, entered)
				}
				over, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := l.enter(over, at("p", "x/").site("db")); err == nil {
					t.Error("a held secret was entered")
				}
				unlock()
				synctest.Wait()
				if !entered || len(l.held) > 0 {
					t.Errorf("%s\nafterwards entered: %t, %d locks are left", tc.reason, entered, len(l.held))
				}
			})
		})
	}
}
