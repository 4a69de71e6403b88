package secretsmanager

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestFind(t *testing.T) {
	srv := awstest.Start(t)
	put := func(name string, tags map[string]string) { srv.Put(name, []byte("v"), emulator.Tags(tags)) }
	put("shop/db", map[string]string{"team": "shop", "stage": "live"})
	put("shop/db-old", map[string]string{"team": "shop", "stage": "livestock", "owner": "live"})
	put("shop/web/key", map[string]string{"Team": "shop"})
	put("shopping", map[string]string{"team": "shipping", "other": "shop"})
	put("bill/db", map[string]string{"team": "bill", "!odd,key": "é"})

	cases := map[string]struct {
		reason string
		prefix string
		query  provider.Query
		want   []string
	}{
		"TagOdd":     {"Tags for which AWS has no filter are compared here.", "", provider.Query{Tags: map[string]string{"!odd,key": "é"}}, []string{"bill/db=v"}},
		"Prefix":     {"A store with a prefix finds only names with it, and its keys do not contain it.", "shop/", provider.Query{}, []string{"db-old=v", "db=v", "web/key=v"}},
		"PrefixPath": {"The path follows the prefix, and the regular expression matches the name without it.", "shop/", provider.Query{Path: "db", Name: regexp.MustCompile("^db$")}, []string{"db=v"}},
		"Negation":   {"A path with a leading ! does not negate the filter.", "", provider.Query{Path: "!shop"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := awstest.Found(t.Context(), client(t, srv, awstest.WithPrefix(tc.prefix)), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindDeleted(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	for _, name := range []string{"p/a", "p/b", "p/c"} {
		srv.Put(name, []byte("v"))
	}
	if _, err := sdk(c.config).DeleteSecret(t.Context(), &secretsmanager.DeleteSecretInput{SecretId: aws.String("p/b")}); err != nil {
		t.Fatal(err)
	}
	// The secret is deleted between the list and the read of its value.
	srv.Inject(emulator.Fault{Entry: true, Key: "p/c", Code: "ResourceNotFoundException"})
	got, err := awstest.Found(t.Context(), c, provider.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p/a=v"}, got); diff != "" {
		t.Errorf("Secrets that are scheduled for deletion, or deleted meanwhile, must be omitted.\nFind(...): -want, +got:\n%s", diff)
	}
}

func TestFindTooMany(t *testing.T) {
	srv := awstest.Start(t)
	for i := range provider.MaxFound + 1 {
		srv.Put(fmt.Sprintf("p/%05d", i), []byte("v"))
	}
	got, err := awstest.Found(t.Context(), client(t, srv), provider.Query{})
	want := provider.NewError(provider.Invalid, "find: more than 10000 secrets match; narrow path, name or tags")
	if diff := cmp.Diff(error(want), err); diff != "" || len(got) > 0 {
		t.Errorf("Too many matches must be an error before any value is read: %d values\n-want error, +got error:\n%s", len(got), diff)
	}
	if n := srv.Count("BatchGetSecretValue"); n != 0 {
		t.Errorf("too many matches must be an error before any value is read: %d batches", n)
	}
}

func TestFilters(t *testing.T) {
	many := map[string]string{}
	for i := range 9 {
		many[fmt.Sprintf("k%d", i)] = "v"
	}
	cases := map[string]struct {
		reason string
		name   string
		tags   map[string]string
		want   map[types.FilterNameStringType]int
	}{
		"None":     {"An empty query has no filter.", "", nil, map[types.FilterNameStringType]int{}},
		"All":      {"The name and the tags are sent as filters.", "shop/", map[string]string{"team": "shop"}, map[types.FilterNameStringType]int{"name": 1, "tag-key": 1, "tag-value": 1}},
		"Negation": {"A value with a leading ! is not sent, because it would negate the filter.", "!shop", map[string]string{"!a": "!b"}, map[types.FilterNameStringType]int{}},
		"Odd":      {"A value with characters that AWS rejects is not sent.", "sh*p", map[string]string{"é": ""}, map[types.FilterNameStringType]int{}},
		"Many":     {"At most ten values are sent.", "p", many, map[types.FilterNameStringType]int{"name": 1, "tag-key": 5, "tag-value": 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[types.FilterNameStringType]int{}
			for _, f := range filters(tc.name, tc.tags) {
				got[f.Key]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfilters(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff(9, len(slices.Collect(maps.Keys(many)))); diff != "" {
		t.Errorf("the query must not be changed: %s", diff)
	}
}
