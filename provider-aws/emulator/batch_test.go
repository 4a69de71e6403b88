package emulator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// batch reads every page. It returns "name=value" or "id: code" for each entry, and "|" after each page.
func batch(ctx context.Context, c *sm.Client, in *sm.BatchGetSecretValueInput) []string {
	var got []string
	for p := sm.NewBatchGetSecretValuePaginator(c, in); p.HasMorePages(); {
		out, err := p.NextPage(ctx)
		if err != nil {
			return append(got, apiError(err))
		}
		for _, v := range out.SecretValues {
			got = append(got, fmt.Sprintf("%s=%.8s%x", *v.Name, aws.ToString(v.SecretString), v.SecretBinary))
		}
		for _, e := range out.Errors {
			got = append(got, *e.SecretId+": "+*e.ErrorCode+": "+*e.Message)
		}
		got = append(got, "|")
	}
	return got
}

func numbered(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	return names
}

func TestBatch(t *testing.T) {
	byName := func(values ...string) []types.Filter {
		return []types.Filter{{Key: types.FilterNameStringTypeName, Values: values}}
	}
	runScripts(t, map[string]scriptCase{
		"PerEntryErrors": {
			reason: "a secret that cannot be read fails only its own entry",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("text", []byte("v"))
				srv.Put("bin", []byte{0xff})
				srv.Put("going", []byte("v"))
				if _, err := c.DeleteSecret(ctx, &sm.DeleteSecretInput{SecretId: aws.String("going")}); err != nil {
					t.Fatal(err)
				}
				if _, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("empty")}); err != nil {
					t.Fatal(err)
				}
				return batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: []string{"text", "none", "going", "empty", "bin"}})
			},
			want: []string{"text=v", "bin=ff", "none: " + errNotFound, "going: " + errMarked, "empty: " + errNoCurrent, "|"},
		},
		"TooMany": {
			reason: "more than 20 ids are rejected",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return append(batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: numbered(21)}), batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: numbered(1)})...)
			},
			want: []string{
				"ValidationException: 1 validation error detected: Value '[" + strings.Join(numbered(21), ", ") +
					"]' at 'secretIdList' failed to satisfy constraint: Member must have length less than or equal to 20",
				"s00: " + errNotFound, "|",
			},
		},
		"IdsOrFilters": {
			reason: "a batch has either ids or filters, and MaxResults only with filters",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				one := []string{"a"}
				got := batch(ctx, c, &sm.BatchGetSecretValueInput{})
				got = append(got, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: one, Filters: byName("a")})...)
				return append(got, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: one, MaxResults: aws.Int32(5)})...)
			},
			want: []string{
				"InvalidParameterException: Either 'SecretIdList' or 'Filters' must be provided, but not both.",
				"InvalidParameterException: Either 'SecretIdList' or 'Filters' must be provided, but not both.",
				"InvalidParameterException: 'Filters' not specified. 'Filters' must also be specified when 'MaxResults' is provided.",
			},
		},
		"LargeAnswer": {
			reason: "a large answer continues on a next page",
			opts:   []emulator.Option{emulator.WithMaxBatchBytes(100_000)},
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(3) {
					srv.Put(n, []byte(strings.Repeat("x", 60_000)))
				}
				return batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: numbered(3)})
			},
			want: []string{"s00=xxxxxxxx", "s01=xxxxxxxx", "|", "s02=xxxxxxxx", "|"},
		},
		"Filters": {
			reason: "filters select the same secrets as in ListSecrets, page by page",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(5) {
					srv.Put(n, []byte("v"))
				}
				srv.Put("other", []byte("v"))
				return batch(ctx, c, &sm.BatchGetSecretValueInput{Filters: byName("s"), MaxResults: aws.Int32(2)})
			},
			want: []string{"s00=v", "s01=v", "|", "s02=v", "s03=v", "|", "s04=v", "|"},
		},
		"WrongToken": {
			reason: "a page token is valid for its own query only",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(2) {
					srv.Put(n, []byte("v"))
				}
				out, err := c.BatchGetSecretValue(ctx, &sm.BatchGetSecretValueInput{Filters: byName("s"), MaxResults: aws.Int32(1)})
				_, other := c.BatchGetSecretValue(ctx, &sm.BatchGetSecretValueInput{Filters: byName("t"), NextToken: out.NextToken})
				_, junk := c.ListSecrets(ctx, &sm.ListSecretsInput{NextToken: aws.String("junk")})
				return []string{apiError(err), apiError(other), apiError(junk)}
			},
			want: []string{"", "InvalidNextTokenException: Invalid NextToken.", "InvalidNextTokenException: Invalid NextToken."},
		},
	})
}
