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
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
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
		"All":        {"Nothing set selects everything.", "", provider.Query{}, []string{"bill/db=v", "shop/db-old=v", "shop/db=v", "shop/web/key=v", "shopping=v"}},
		"Path":       {"A path is the beginning of names.", "", provider.Query{Path: "shop/"}, []string{"shop/db-old=v", "shop/db=v", "shop/web/key=v"}},
		"Name":       {"A name is a regular expression, anywhere.", "", provider.Query{Name: regexp.MustCompile("db$")}, []string{"bill/db=v", "shop/db=v"}},
		"Tag":        {"Tags are compared whole, and with their case.", "", provider.Query{Tags: map[string]string{"team": "shop"}}, []string{"shop/db-old=v", "shop/db=v"}},
		"TagValue":   {"A value belongs to its key.", "", provider.Query{Tags: map[string]string{"stage": "live"}}, []string{"shop/db=v"}},
		"Tags":       {"All tags must match.", "", provider.Query{Tags: map[string]string{"team": "shop", "stage": "livestock"}}, []string{"shop/db-old=v"}},
		"TagOdd":     {"What AWS cannot filter is still compared.", "", provider.Query{Tags: map[string]string{"!odd,key": "é"}}, []string{"bill/db=v"}},
		"TagNone":    {"A tag that nobody has selects nothing.", "", provider.Query{Tags: map[string]string{"!team": "shop"}}, nil},
		"Prefix":     {"A store with a prefix sees nothing else, and keys are without it.", "shop/", provider.Query{}, []string{"db-old=v", "db=v", "web/key=v"}},
		"PrefixPath": {"A path comes behind the prefix, and a name is matched without it.", "shop/", provider.Query{Path: "db", Name: regexp.MustCompile("^db$")}, []string{"db=v"}},
		"Negation":   {"A path is no negation.", "", provider.Query{Path: "!shop"}, nil},
		"Combined":   {"All that is set must match.", "", provider.Query{Path: "shop", Name: regexp.MustCompile("o"), Tags: map[string]string{"team": "shop"}}, []string{"shop/db-old=v", "shop/db=v"}},
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

func TestFindPages(t *testing.T) {
	srv := awstest.Start(t)
	var want []string
	for i := range 250 {
		name := fmt.Sprintf("p/%03d", i)
		srv.Put(name, []byte("v"))
		want = append(want, name+"=v")
	}
	c := client(t, srv)
	got, err := awstest.Found(t.Context(), c, provider.Query{Path: "p/"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("A list goes on over pages: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"ListSecrets": 3, "BatchGetSecretValue": 13}, srv.CallCounts()); diff != "" {
		t.Errorf("Pages hold a hundred, batches twenty.\ncalls: -want, +got:\n%s", diff)
	}
}

func TestFindIncomplete(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		want   provider.Class
	}{
		"ListDenied":    {"A list that may not be had is no empty list.", emulator.Fault{Operation: "ListSecrets", Code: "AccessDeniedException"}, provider.Denied},
		"ListThrottled": {"Nor is one that must wait.", emulator.Fault{Operation: "ListSecrets", Code: "ThrottlingException"}, provider.Throttled},
		"ListTruncated": {"Nor is half of one.", emulator.Fault{Operation: "ListSecrets", Body: emulator.BodyTruncated}, provider.Unavailable},
		"EntryDenied":   {"A value that may not be read is missing in the list.", emulator.Fault{Entry: true, SecretID: "p/30", Code: "AccessDeniedException"}, provider.Denied},
		"EntryKMS":      {"So is one that cannot be decrypted.", emulator.Fault{Entry: true, SecretID: "p/30", Code: "DecryptionFailure"}, provider.Denied},
		"BatchCut":      {"So is one that the answer lacks.", emulator.Fault{Operation: "BatchGetSecretValue", Page: emulator.PageCut, KeepEntries: 3}, provider.Unavailable},
		"Internal":      {"So are all of a batch that fails.", emulator.Fault{Operation: "BatchGetSecretValue", Code: "InternalServiceError"}, provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			for i := range 45 {
				srv.Put(fmt.Sprintf("p/%02d", i), []byte("v"))
			}
			srv.Inject(tc.fault)
			after, last := awstest.Unfinished(t.Context(), client(t, srv), provider.Query{})
			if got := provider.ClassOf(last); last == nil || got != tc.want || after > 0 {
				t.Errorf("%s\nFind(...): class %s, want %s, then %d more: %v", tc.reason, got, tc.want, after, last)
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
	// Gone between the list and the read of its value.
	srv.Inject(emulator.Fault{Entry: true, SecretID: "p/c", Code: "ResourceNotFoundException"})
	got, err := awstest.Found(t.Context(), c, provider.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p/a=v"}, got); diff != "" {
		t.Errorf("What is scheduled for deletion, or deleted meanwhile, does not exist.\nFind(...): -want, +got:\n%s", diff)
	}
}

func TestFindTooMany(t *testing.T) {
	srv := awstest.Start(t)
	for i := range awsconfig.MaxFound + 1 {
		srv.Put(fmt.Sprintf("p/%05d", i), []byte("v"))
	}
	got, err := awstest.Found(t.Context(), client(t, srv), provider.Query{})
	want := provider.NewError(provider.Invalid, "find: more than 10000 secrets match; narrow path, name or tags")
	if diff := cmp.Diff(error(want), err); diff != "" || len(got) > 0 {
		t.Errorf("Too many is an error before any value is read: %d values\n-want error, +got error:\n%s", len(got), diff)
	}
	if n := srv.Calls("BatchGetSecretValue"); n != 0 {
		t.Errorf("Too many is an error before any value is read: %d batches", n)
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
		"None":     {"Nothing to filter by is no filter.", "", nil, map[types.FilterNameStringType]int{}},
		"All":      {"What AWS can leave out is not sent.", "shop/", map[string]string{"team": "shop"}, map[types.FilterNameStringType]int{"name": 1, "tag-key": 1, "tag-value": 1}},
		"Negation": {"A leading ! would turn the filter round.", "!shop", map[string]string{"!a": "!b"}, map[types.FilterNameStringType]int{}},
		"Odd":      {"AWS rejects other characters.", "sh*p", map[string]string{"é": ""}, map[types.FilterNameStringType]int{}},
		"Many":     {"AWS takes ten filters.", "p", many, map[types.FilterNameStringType]int{"name": 1, "tag-key": 5, "tag-value": 4}},
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
		t.Errorf("The query is not changed: %s", diff)
	}
}
