package emulator_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// list reads every page. It returns the names, and "|" after each page.
func list(ctx context.Context, c *sm.Client, in *sm.ListSecretsInput) []string {
	var got []string
	for p := sm.NewListSecretsPaginator(c, in); p.HasMorePages(); {
		out, err := p.NextPage(ctx)
		if err != nil {
			return append(got, apiError(err))
		}
		for _, s := range out.SecretList {
			got = append(got, *s.Name)
		}
		got = append(got, "|")
	}
	return got
}

func TestFilters(t *testing.T) {
	t.Parallel()
	srv := start(t)
	c := secretsClient(t, srv)
	srv.Put("shop/db", []byte("v"), emulator.Tags(map[string]string{"team": "shop", "Env": "prod"}), emulator.Description("The main database"))
	srv.Put("shop/api", []byte("v"), emulator.Tags(map[string]string{"team": "web"}))
	srv.Put("credsDatabase892", []byte("v"))
	srv.Put("Shop", []byte("v"), emulator.Tags(map[string]string{"environment": "test"}))

	cases := map[string]struct {
		reason  string
		filters []types.Filter
		want    []string
	}{
		"None":              {"without a filter all secrets are listed in order of creation", nil, []string{"shop/db", "shop/api", "credsDatabase892", "Shop", "|"}},
		"NamePrefix":        {"a name is matched by its prefix, with case", where("name", "shop/"), []string{"shop/db", "shop/api", "|"}},
		"NoInfix":           {"the middle of a name does not match", where("name", "db"), []string{"|"}},
		"Alternatives":      {"a filter matches if one of its values matches", where("name", "Shop", "creds"), []string{"credsDatabase892", "Shop", "|"}},
		"Negation":          {"an exclamation mark excludes", where("name", "!shop/"), []string{"credsDatabase892", "Shop", "|"}},
		"TagKey":            {"a tag key is matched by its prefix, with case", where("tag-key", "env"), []string{"Shop", "|"}},
		"TagValue":          {"a tag value is matched by its prefix", where("tag-value", "shop"), []string{"shop/db", "|"}},
		"Both":              {"every filter must match", append(where("tag-key", "team"), where("tag-value", "web")...), []string{"shop/api", "|"}},
		"TagKeyNegated":     {"an excluded tag selects the secrets without it", where("tag-key", "!team"), []string{"credsDatabase892", "Shop", "|"}},
		"Description":       {"a description is matched without case", where("description", "the MAIN"), []string{"shop/db", "|"}},
		"All":               {"the filter all matches words anywhere, without case", where("all", "DATABASE"), []string{"shop/db", "credsDatabase892", "|"}},
		"AllNumber":         {"a change from letters to digits separates words", where("all", "892"), []string{"credsDatabase892", "|"}},
		"AllSeveral":        {"one matching word is enough", where("all", "web_prod"), []string{"shop/db", "shop/api", "|"}},
		"PositiveNegative":  {"a value can be required and another one excluded", where("name", "shop/", "!shop/api"), []string{"shop/db", "|"}},
		"NoReplicas":        {"no secret has a primary region", where("primary-region", "eu"), []string{"|"}},
		"NotOwnedByService": {"no secret is managed by another service", where("owning-service", "!rds"), []string{"shop/db", "shop/api", "credsDatabase892", "Shop", "|"}},
		"UnknownKey": {"an unknown key is rejected", where("color", "red"), []string{
			"ValidationException: 1 validation error detected: Value at 'filters.1.member.key' failed to satisfy constraint: " +
				"Member must satisfy enum value set: [all, description, name, owning-service, primary-region, tag-key, tag-value]"}},
		"ManyValues": {"a filter has at most ten values", where("name", numbered(11)...), []string{
			"ValidationException: 1 validation error detected: Value at 'filters.1.member.values' failed to satisfy constraint: " +
				"Member must have length less than or equal to 10"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, list(t.Context(), c, &sm.ListSecretsInput{Filters: tc.filters})); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func where(key string, values ...string) []types.Filter {
	return []types.Filter{{Key: types.FilterNameStringType(key), Values: values}}
}

func TestListPages(t *testing.T) {
	size := func(n int32) *sm.ListSecretsInput { return &sm.ListSecretsInput{MaxResults: &n} }
	runScripts(t, map[string]scriptCase{
		"Pages": {
			reason: "a list has several pages, and the last one has no token",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(4) {
					srv.Put(n, []byte("v"))
				}
				return append(list(ctx, c, size(3)), list(ctx, c, size(2))...)
			},
			want: []string{"s00", "s01", "s02", "|", "s03", "|", "s00", "s01", "|", "s02", "s03", "|"},
		},
		"Sizes": {
			reason: "a page has 1 to 100 secrets",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				_, big := c.ListSecrets(ctx, size(101))
				_, small := c.ListSecrets(ctx, size(0))
				return []string{apiError(big), apiError(small)}
			},
			want: []string{
				"ValidationException: 1 validation error detected: Value at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100",
				"ValidationException: 1 validation error detected: Value at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1",
			},
		},
		"ChangesBetweenPages": {
			reason: "deleting secrets between two pages neither hides nor repeats others",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(4) {
					srv.Put(n, []byte("v"))
				}
				out, err := c.ListSecrets(ctx, size(2))
				if err != nil {
					t.Fatal(err)
				}
				srv.Delete("s00")
				srv.Delete("s01")
				return list(ctx, c, &sm.ListSecretsInput{NextToken: out.NextToken})
			},
			want: []string{"s02", "s03", "|"},
		},
		"Order": {
			reason: "the order can be reversed, and can be by name",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range []string{"b", "a", "c"} {
					srv.Put(n, []byte("v"))
				}
				desc := size(2)
				desc.SortOrder = types.SortOrderTypeDesc
				name := size(2)
				name.SortBy = types.SortByTypeName
				return append(list(ctx, c, desc), list(ctx, c, name)...)
			},
			want: []string{"c", "a", "|", "b", "|", "a", "b", "|", "c", "|"},
		},
		"PlannedDeletion": {
			reason: "a secret that is scheduled for deletion is listed on request only",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("a", []byte("v"))
				srv.Put("b", []byte("v"))
				if _, err := c.DeleteSecret(ctx, &sm.DeleteSecretInput{SecretId: aws.String("a")}); err != nil {
					t.Fatal(err)
				}
				return append(list(ctx, c, &sm.ListSecretsInput{}), list(ctx, c, &sm.ListSecretsInput{IncludePlannedDeletion: aws.Bool(true)})...)
			},
			want: []string{"b", "|", "a", "b", "|"},
		},
		"Entry": {
			reason: "an entry has the tags and the labels of its versions, never a value",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				id := srv.Put("a", []byte("v"), emulator.Tags(map[string]string{"k": "w"}))
				out, err := c.ListSecrets(ctx, &sm.ListSecretsInput{})
				if err != nil {
					t.Fatal(err)
				}
				s := out.SecretList[0]
				return append([]string{*s.Tags[0].Key, *s.Tags[0].Value}, s.SecretVersionsToStages[id]...)
			},
			want: []string{"k", "w", "AWSCURRENT"},
		},
	})
}
