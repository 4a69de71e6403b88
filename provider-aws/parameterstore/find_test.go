package parameterstore

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestFind(t *testing.T) {
	srv := awstest.Start(t)
	put := func(name string, tags map[string]string) {
		srv.PutParameter(name, "v", emulator.Secure(), emulator.ParameterTags(tags))
	}
	put("/shop/db", map[string]string{"team": "shop", "stage": "live"})
	put("/shop/db/old", map[string]string{"team": "shop", "stage": "livestock", "owner": "live"})
	put("/shop/web/key", map[string]string{"Team": "shop", "empty": ""})
	put("/shopping", map[string]string{"team": "shipping", "other": "shop"})
	put("bill-db", map[string]string{"team": "bill", "empty": "no"})
	put("bill-web", nil)

	byPath, listed := "GetParametersByPath", "DescribeParameters"
	cases := map[string]struct {
		reason string
		prefix string
		query  provider.Query
		want   []string
		call   string
	}{
		"All":        {"An empty query selects everything.", "", provider.Query{}, []string{"/shop/db/old=v", "/shop/db=v", "/shop/web/key=v", "/shopping=v", "bill-db=v", "bill-web=v"}, listed},
		"Path":       {"A path selects all levels of a hierarchy.", "", provider.Query{Path: "/shop"}, []string{"/shop/db/old=v", "/shop/db=v", "/shop/web/key=v"}, byPath},
		"PathSlash":  {"A path can end in a slash.", "", provider.Query{Path: "/shop/"}, []string{"/shop/db/old=v", "/shop/db=v", "/shop/web/key=v"}, byPath},
		"PathLeaf":   {"A path does not select the parameter of the same name.", "", provider.Query{Path: "/shop/db"}, []string{"/shop/db/old=v"}, byPath},
		"Root":       {"The path / selects every hierarchy, but no plain name.", "", provider.Query{Path: "/"}, []string{"/shop/db/old=v", "/shop/db=v", "/shop/web/key=v", "/shopping=v"}, byPath},
		"Plain":      {"A path without a leading slash is a prefix of plain names.", "", provider.Query{Path: "bill-"}, []string{"bill-db=v", "bill-web=v"}, listed},
		"Name":       {"The regular expression matches anywhere in the name.", "", provider.Query{Name: regexp.MustCompile("db$")}, []string{"/shop/db=v", "bill-db=v"}, listed},
		"NameCase":   {"A regular expression without a literal prefix is compared here.", "", provider.Query{Name: regexp.MustCompile("(?i)SHOP/DB$|^bill.w")}, []string{"/shop/db=v", "bill-web=v"}, listed},
		"PathName":   {"The path and the name must both match.", "", provider.Query{Path: "/shop", Name: regexp.MustCompile("key")}, []string{"/shop/web/key=v"}, byPath},
		"TagEmpty":   {"A tag with an empty value is compared here, because AWS has no filter for it.", "", provider.Query{Tags: map[string]string{"empty": ""}}, []string{"/shop/web/key=v"}, listed},
		"PathTag":    {"A hierarchy can be limited by tags.", "", provider.Query{Path: "/shop/", Tags: map[string]string{"team": "shop"}}, []string{"/shop/db/old=v", "/shop/db=v"}, listed},
		"Prefix":     {"A store with a prefix finds only names with it, and its keys do not contain it.", "/shop/", provider.Query{}, []string{"db/old=v", "db=v", "web/key=v"}, byPath},
		"PrefixText": {"A prefix can end anywhere in a name.", "/shop", provider.Query{}, []string{"/db/old=v", "/db=v", "/web/key=v", "ping=v"}, listed},
		"PrefixPath": {"The path follows the prefix, and the regular expression matches the name without it.", "/shop/", provider.Query{Path: "web", Name: regexp.MustCompile("^web/key$")}, []string{"web/key=v"}, byPath},
		"Nothing":    {"An empty hierarchy is not an error.", "", provider.Query{Path: "/none"}, nil, byPath},
		"Combined":   {"Path, name and tags must all match.", "", provider.Query{Path: "/shop", Name: regexp.MustCompile("o"), Tags: map[string]string{"stage": "livestock"}}, []string{"/shop/db/old=v"}, listed},
		"PathOdd":    {"A path that no name can start with selects nothing.", "", provider.Query{Path: "bill "}, nil, listed},
		"Hostile":    {"A path with .. does not leave the prefix.", "", provider.Query{Path: "/shop/../"}, nil, byPath},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			got, err := awstest.Found(t.Context(), client(t, srv, awstest.WithPrefix(tc.prefix)), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
			if srv.Count(tc.call) == 0 {
				t.Errorf("%s\nno call of %s: %v", tc.reason, tc.call, srv.Counts())
			}
		})
	}
}

// filled returns an emulator with n parameters below /p, and their keys.
func filled(t *testing.T, n int) (*emulator.Server, []string) {
	srv := awstest.Start(t)
	var want []string
	for i := range n {
		name := fmt.Sprintf("/p/%05d", i)
		srv.PutParameter(name, "v")
		want = append(want, name+"=v")
	}
	return srv, want
}

func TestFindPages(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  provider.Query
		calls  map[string]int
	}{
		"Hierarchy": {"A page of a hierarchy has ten values.", provider.Query{Path: "/p"}, map[string]int{"GetParametersByPath": 13}},
		"List":      {"A page of a list has fifty names, a batch ten values.", provider.Query{Name: regexp.MustCompile("p")}, map[string]int{"DescribeParameters": 3, "GetParameters": 13}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, want := filled(t, 125)
			c := client(t, srv)
			got, err := awstest.Found(t.Context(), c, tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("All pages of a list are read: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			// AWS can end a page before it is full, and even while it is empty.
			srv.Inject(emulator.Fault{Times: 1, Page: emulator.PageSplit})
			srv.Inject(emulator.Fault{Times: 1, Page: emulator.PageSplit, KeepEntries: 3})
			got, err = awstest.Found(t.Context(), c, tc.query)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("An empty page must not end the list: error %v, -want, +got:\n%s", err, diff)
			}
		})
	}
}

func TestFindIncomplete(t *testing.T) {
	byPath, byName := provider.Query{Path: "/p"}, provider.Query{}
	cases := map[string]struct {
		reason string
		query  provider.Query
		fault  emulator.Fault
		want   provider.Class
	}{
		"PathDenied":    {"A denied list is not an empty list.", byPath, emulator.Fault{Call: "GetParametersByPath", Code: "AccessDeniedException"}, provider.Denied},
		"PathThrottled": {"A throttled list is not an empty list.", byPath, emulator.Fault{Call: "GetParametersByPath", Code: "ThrottlingException"}, provider.Throttled},
		"PathTruncated": {"A truncated list is not an empty list.", byPath, emulator.Fault{Call: "GetParametersByPath", Body: emulator.BodyTruncated}, provider.Unavailable},
		"PathKMS":       {"A list with a value that cannot be decrypted is not an empty list.", byPath, emulator.Fault{Call: "GetParametersByPath", Code: "InvalidKeyId"}, provider.Denied},
		"PathGone":      {"A NotFound for the list is not an empty list.", byPath, emulator.Fault{Call: "GetParametersByPath", Code: "InvalidNextToken"}, provider.Unavailable},
		"ListFilter":    {"A rejected filter is Invalid.", byName, emulator.Fault{Call: "DescribeParameters", Code: "InvalidFilterValue"}, provider.Invalid},
		"SamePage":      {"Pages that repeat a token are an error.", byPath, emulator.Fault{Call: "GetParametersByPath", Page: emulator.PageSplit}, provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, _ := filled(t, 45)
			srv.Inject(tc.fault)
			after, last := awstest.Unfinished(t.Context(), client(t, srv), tc.query)
			if got := provider.ClassOf(last); last == nil || got != tc.want || after > 0 {
				t.Errorf("%s\nFind(...): class %s, want %s, then %d more: %v", tc.reason, got, tc.want, after, last)
			}
		})
	}
}

func TestFindStops(t *testing.T) {
	srv, _ := filled(t, 45)
	seen := 0
	for _, err := range client(t, srv).Find(t.Context(), provider.Query{Path: "/p"}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if got := srv.Count("GetParametersByPath"); got != 1 {
		t.Errorf("no call must follow after the caller stops: %d", got)
	}
}

func TestFindTooMany(t *testing.T) {
	srv, _ := filled(t, provider.MaxFound+1)
	got, err := awstest.Found(t.Context(), client(t, srv), provider.Query{})
	want := provider.NewError(provider.Invalid, "find: more than 10000 secrets match; narrow path, name or tags")
	if diff := cmp.Diff(error(want), err); diff != "" || len(got) > 0 {
		t.Errorf("Too many matches must be an error before any value is read: %d values\n-want error, +got error:\n%s", len(got), diff)
	}
	if n := srv.Count("GetParameters"); n != 0 {
		t.Errorf("too many matches must be an error before any value is read: %d batches", n)
	}
}
