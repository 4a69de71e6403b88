package secretmanager

import (
	"fmt"
	"slices"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func search(t testing.TB, c *Client, q provider.Query) (keys []string, err error) {
	t.Helper()
	for v, e := range c.Find(soon(t), q) {
		if e != nil {
			return nil, e
		}
		keys = append(keys, v.Key)
	}
	slices.Sort(keys)
	return keys, nil
}

func found(t testing.TB, c *Client, q provider.Query) []string {
	t.Helper()
	keys, err := search(t, c, q)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestFilter(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  provider.Query
		want   string
	}{
		"None":  {"An empty query has no filter.", provider.Query{}, ""},
		"Both":  {"The filter has the path and the labels, always in the same order.", provider.Query{Path: "shop-", Tags: map[string]string{"team": "shop", "a": "b"}}, "name:shop- AND labels.a=b AND labels.team=shop"},
		"Part":  {"Terms that would need quotes are omitted.", provider.Query{Path: "a b", Tags: map[string]string{"team": "x y", "T": "u", "ok": "1"}}, "labels.ok=1"},
		"Empty": {"An empty label value is omitted.", provider.Query{Tags: map[string]string{"team": ""}}, ""},
		"Word":  {"A path that would be an operator of the filter is omitted.", provider.Query{Path: "or"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, filter(tc.query)); diff != "" {
				t.Errorf("%s\nfilter(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindNarrows(t *testing.T) {
	srv := start(t)
	for i := range 300 {
		srv.Put(fmt.Sprintf("other-%d", i), []byte("x"))
	}
	srv.Put("shop-db", []byte("x"))
	c := client(t, srv)
	if got := found(t, c, provider.Query{Path: "shop-"}); !cmp.Equal(got, []string{"shop-db"}) {
		t.Errorf("found %v", got)
	}
	if diff := cmp.Diff(map[string]int{emulator.MethodToken: 1, "ListSecrets": 1, access: 1}, srv.Counts()); diff != "" {
		t.Errorf("Google must omit secrets that do not match: calls: -want, +got:\n%s", diff)
	}
}

func TestFindWithoutValue(t *testing.T) {
	srv := start(t)
	srv.Put("good", []byte("x"))
	srv.Put("empty", nil, emulator.Empty())
	srv.Put("gone", []byte("x"))
	srv.SetState("gone", 1, pb.SecretVersion_DESTROYED)
	c := client(t, srv)
	if got := found(t, c, provider.Query{}); !cmp.Equal(got, []string{"good"}) {
		t.Errorf("secrets without a value must be omitted: %v", got)
	}
	srv.Put("off", []byte("x"))
	srv.SetState("off", 1, pb.SecretVersion_DISABLED)
	_, err := search(t, c, provider.Query{})
	fails(t, "A disabled version fails the query, because a list without it would remove its key.", err, provider.Invalid, `secret "off": is disabled`)
}

func TestFindFailures(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"SamePage":  {"A page that repeats itself is an error.", emulator.Fault{Call: "ListSecrets", Body: emulator.BodySamePage}, provider.Unavailable, ""},
		"NoProject": {"An unknown project is not an empty list.", emulator.Fault{Call: "ListSecrets", Code: codes.NotFound}, provider.Invalid, "spec.projectID"},
		"NoSecret":  {"A list is not about one secret.", emulator.Fault{Call: "ListSecrets", Code: codes.NotFound, Message: "Secret [x] not found."}, provider.Invalid, "spec.projectID"},
		"Denied":    {"A denied list is not an empty list.", emulator.Fault{Call: "ListSecrets", Code: codes.PermissionDenied}, provider.Denied, "listing secrets"},
		"OneDenied": {"A secret that cannot be read fails the query.", emulator.Fault{Call: access, Key: "b", Code: codes.PermissionDenied}, provider.Denied, `secret "b"`},
		"OneBroken": {"A secret with a wrong checksum fails the query.", emulator.Fault{Call: access, Key: "b", Body: emulator.BodyBadChecksum}, provider.Unavailable, `secret "b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, emulator.WithPageSize(2))
			for _, id := range []string{"a", "b", "c"} {
				srv.Put(id, []byte("x"))
			}
			c := client(t, srv)
			srv.Inject(tc.fault)
			_, err := search(t, c, provider.Query{})
			fails(t, tc.reason, err, tc.class, tc.part)
		})
	}
}
