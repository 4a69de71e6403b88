package emulator_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	errNotFound  = "ResourceNotFoundException: Secrets Manager can't find the specified secret."
	errNoCurrent = "ResourceNotFoundException: Secrets Manager can't find the specified secret value for staging label: AWSCURRENT"
	errMarked    = "InvalidRequestException: You can't perform this operation on the secret because it was marked for deletion."
)

// A script makes calls in order and returns the result of each.
type script func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string

type scriptCase struct {
	reason string
	opts   []emulator.Option
	run    script
	want   []string
}

func runScripts(t *testing.T, cases map[string]scriptCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, tc.opts...)
			got := tc.run(t.Context(), t, srv, secretsClient(t, srv))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func create(ctx context.Context, c *sm.Client, name, value string, tokens ...*string) string {
	in := &sm.CreateSecretInput{Name: &name, SecretString: &value}
	if len(tokens) > 0 {
		in.ClientRequestToken = tokens[0]
	}
	_, err := c.CreateSecret(ctx, in)
	return apiError(err)
}

func put(ctx context.Context, c *sm.Client, name, value string, tok *string, stages ...string) string {
	out, err := c.PutSecretValue(ctx, &sm.PutSecretValueInput{SecretId: &name, SecretString: &value, ClientRequestToken: tok, VersionStages: stages})
	if err != nil {
		return apiError(err)
	}
	return strings.Join(out.VersionStages, ",")
}

// stages lists the versions and their labels.
func stages(ctx context.Context, c *sm.Client, name string) string {
	out, err := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: &name})
	if err != nil {
		return apiError(err)
	}
	var lines []string
	for id, labels := range out.VersionIdsToStages {
		sort.Strings(labels)
		lines = append(lines, strings.TrimLeft(strings.TrimPrefix(id, "token-"), "0")+"="+strings.Join(labels, "+"))
	}
	sort.Strings(lines)
	return strings.Join(lines, " ")
}

func TestValues(t *testing.T) {
	inUse := func(c *sm.Client) string {
		out, err := c.DescribeSecret(context.Background(), &sm.DescribeSecretInput{SecretId: aws.String("db")})
		if err != nil {
			return apiError(err)
		}
		return "ResourceExistsException: You can't use ClientRequestToken " + *token(1) +
			" because that value is already in use for a version of secret " + *out.ARN + "."
	}
	runScripts(t, map[string]scriptCase{
		"UnknownSecret": {
			reason: "an unknown name or ARN is ResourceNotFoundException",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{current(ctx, c, "db"), current(ctx, c, "arn:aws:secretsmanager:us-east-1:000000000000:secret:db")}
			},
			want: []string{errNotFound, errNotFound},
		},
		"WithoutValue": {
			reason: "a secret without a value has no AWSCURRENT",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				out, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("db")})
				return []string{apiError(err), fmt.Sprint(out.VersionId == nil), current(ctx, c, "db")}
			},
			want: []string{"", "true", errNoCurrent},
		},
		"NamesAndARNs": {
			reason: "a secret is found by name, ARN, and ARN without the random suffix, but not with another suffix",
			run: func(ctx context.Context, t *testing.T, _ *emulator.Server, c *sm.Client) []string {
				out, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("shop/db-dbpass"), SecretString: aws.String("v")})
				if err != nil {
					t.Fatal(err)
				}
				partial := (*out.ARN)[:len(*out.ARN)-7]
				shape := regexp.MustCompile(`^arn:aws:secretsmanager:us-east-1:000000000000:secret:shop/db-dbpass-[A-Za-z0-9]{6}$`)
				return []string{
					fmt.Sprint(shape.MatchString(*out.ARN)), current(ctx, c, "shop/db-dbpass"), current(ctx, c, *out.ARN),
					current(ctx, c, partial), current(ctx, c, partial+"-000000"), current(ctx, c, partial[:len(partial)-7]),
				}
			},
			want: []string{"true", "v", "v", "v", errNotFound, errNotFound},
		},
		"Binary": {
			reason: "binary values are returned as SecretBinary",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				_, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("bin"), SecretBinary: []byte{0, 255}})
				srv.Put("direct", []byte{0xff, 0xfe})
				srv.Put("forced", []byte("A"), emulator.Binary())
				return []string{apiError(err), current(ctx, c, "bin"), current(ctx, c, "direct"), current(ctx, c, "forced")}
			},
			want: []string{"", "binary 00ff", "binary fffe", "binary 41"},
		},
		"StagesMove": {
			reason: "PutSecretValue moves AWSCURRENT, and AWSPREVIOUS to the version that was current",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), stages(ctx, c, "db"),
					put(ctx, c, "db", "two", token(2)), stages(ctx, c, "db"),
					put(ctx, c, "db", "three", token(3)), stages(ctx, c, "db"),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionStage: aws.String("AWSPREVIOUS")}),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionId: token(1)}),
				}
			},
			want: []string{"", "1=AWSCURRENT", "AWSCURRENT", "1=AWSPREVIOUS 2=AWSCURRENT", "AWSCURRENT", "2=AWSPREVIOUS 3=AWSCURRENT", "two", "one"},
		},
		"CustomStages": {
			reason: "a version with labels does not get AWSCURRENT, except for the first one",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				_, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("db")})
				return []string{
					apiError(err),
					put(ctx, c, "db", "one", token(1), "BLUE"), put(ctx, c, "db", "two", token(2), "BLUE", "GREEN"), stages(ctx, c, "db"), current(ctx, c, "db"),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionStage: aws.String("GREEN")}),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionStage: aws.String("RED")}),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionId: token(9)}),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionId: token(1), VersionStage: aws.String("BLUE")}),
				}
			},
			want: []string{
				"", "BLUE,AWSCURRENT", "BLUE,GREEN", "1=AWSCURRENT 2=BLUE+GREEN", "one", "two",
				"ResourceNotFoundException: Secrets Manager can't find the specified secret value for staging label: RED",
				"ResourceNotFoundException: Secrets Manager can't find the specified secret value for VersionId: " + *token(9),
				"InvalidRequestException: You provided a VersionStage that is not associated to the provided VersionId.",
			},
		},
		"Idempotency": {
			reason: "the same token with the same value changes nothing; with another value it is ResourceExistsException",
			run: func(ctx context.Context, t *testing.T, _ *emulator.Server, c *sm.Client) []string {
				got := []string{
					create(ctx, c, "db", "one", token(1)), create(ctx, c, "db", "one", token(1)),
					put(ctx, c, "db", "two", token(2)), put(ctx, c, "db", "one", token(1)), stages(ctx, c, "db"),
				}
				if diff := cmp.Diff(inUse(c), put(ctx, c, "db", "other", token(1))); diff != "" {
					t.Errorf("token in use: -want, +got:\n%s", diff)
				}
				if diff := cmp.Diff(inUse(c), create(ctx, c, "db", "other", token(1))); diff != "" {
					t.Errorf("token in use: -want, +got:\n%s", diff)
				}
				return append(got, create(ctx, c, "db", "one", token(3)))
			},
			want: []string{"", "", "AWSCURRENT", "AWSPREVIOUS", "1=AWSPREVIOUS 2=AWSCURRENT",
				"ResourceExistsException: The operation failed because the secret db already exists."},
		},
		"Update": {
			reason: "UpdateSecret creates a version only if the request has a value",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				got := []string{create(ctx, c, "db", "one", token(1))}
				out, err := c.UpdateSecret(ctx, &sm.UpdateSecretInput{SecretId: aws.String("db"), Description: aws.String("text")})
				got = append(got, apiError(err), fmt.Sprint(out.VersionId == nil), stages(ctx, c, "db"))
				_, err = c.UpdateSecret(ctx, &sm.UpdateSecretInput{SecretId: aws.String("db"), SecretString: aws.String("two"), ClientRequestToken: token(2)})
				d, _ := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: aws.String("db")})
				return append(got, apiError(err), current(ctx, c, "db"), *d.Description)
			},
			want: []string{"", "", "true", "1=AWSCURRENT", "", "two", "text"},
		},
		"Limits": {
			reason: "a value can have 65,536 bytes",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{create(ctx, c, "fits", strings.Repeat("x", 65536)), create(ctx, c, "big", strings.Repeat("x", 65537))}
			},
			want: []string{"", "ValidationException: 1 validation error detected: Value at 'secretString' failed to satisfy constraint: Member must have length less than or equal to 65536"},
		},
		"RaisedLimit": {
			reason: "the limit can be changed, and Put has none",
			opts:   []emulator.Option{emulator.WithMaxValueBytes(2 << 20)},
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("direct", bytes.Repeat([]byte("x"), 3<<20))
				return []string{create(ctx, c, "big", strings.Repeat("x", 2<<20)), fmt.Sprint(len(current(ctx, c, "big")), len(current(ctx, c, "direct")))}
			},
			want: []string{"", fmt.Sprint(2<<20, 3<<20)},
		},
		"BadInput": {
			reason: "names, tokens and values are validated like in the service",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				_, both := c.PutSecretValue(ctx, &sm.PutSecretValueInput{SecretId: aws.String("db"), SecretString: aws.String("a"), SecretBinary: []byte("b")})
				_, none := c.PutSecretValue(ctx, &sm.PutSecretValueInput{SecretId: aws.String("db")})
				return []string{
					create(ctx, c, "a name", "v"), put(ctx, c, "db", "v", aws.String("short")), apiError(both), apiError(none), current(ctx, c, ""),
				}
			},
			want: []string{
				"ValidationException: Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
				"InvalidParameterException: ClientRequestToken must be 32-64 characters long.",
				"InvalidParameterException: You can't specify both a binary secret value and a string secret value in the same secret.",
				"InvalidRequestException: You must provide either SecretString or SecretBinary.",
				"ValidationException: 1 validation error detected: Value at 'secretId' failed to satisfy constraint: Member must have length greater than or equal to 1",
			},
		},
		"BadName": {
			reason: "every call validates the name, also that of a secret that cannot exist",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				id := aws.String("a name")
				_, deleted := c.DeleteSecret(ctx, &sm.DeleteSecretInput{SecretId: id})
				_, forced := c.DeleteSecret(ctx, &sm.DeleteSecretInput{SecretId: id, ForceDeleteWithoutRecovery: aws.Bool(true)})
				_, described := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: id})
				_, listed := c.ListSecretVersionIds(ctx, &sm.ListSecretVersionIdsInput{SecretId: id})
				_, tagged := c.TagResource(ctx, &sm.TagResourceInput{SecretId: id, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
				_, updated := c.UpdateSecret(ctx, &sm.UpdateSecretInput{SecretId: id, Description: aws.String("d")})
				all := []string{put(ctx, c, *id, "v", nil), current(ctx, c, *id)}
				for _, err := range []error{deleted, forced, described, listed, tagged, updated} {
					all = append(all, apiError(err))
				}
				return slices.Compact(all)
			},
			want: []string{"ValidationException: Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!"},
		},
		"Direct": {
			reason: "Put, Get and Delete work without the API",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("one"))
				srv.Put("db", []byte("two"))
				srv.Put("db", []byte("three"), emulator.Stages("NEXT"))
				value, ok := srv.Get("db")
				got := []string{string(value), fmt.Sprint(ok), read(ctx, c, &sm.GetSecretValueInput{SecretId: aws.String("db"), VersionStage: aws.String("NEXT")})}
				srv.Delete("db")
				_, ok = srv.Get("db")
				return append(got, fmt.Sprint(ok), current(ctx, c, "db"))
			},
			want: []string{"two", "true", "three", "false", errNotFound},
		},
	})
}
