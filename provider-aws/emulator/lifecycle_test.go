package emulator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// A clock advances only when the test moves it.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.offset.Load()))
}

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

func remove(ctx context.Context, c *sm.Client, in *sm.DeleteSecretInput) string {
	out, err := c.DeleteSecret(ctx, in)
	if err != nil {
		return apiError(err)
	}
	return *out.Name + " " + out.DeletionDate.Format(time.DateOnly)
}

func TestDeletion(t *testing.T) {
	db := aws.String("db")
	purge := &clock{}
	still := &clock{}
	runScripts(t, map[string]scriptCase{
		"Scheduled": {
			reason: "a secret that is scheduled for deletion can be described and restored, but not read, written or created",
			opts:   []emulator.Option{emulator.WithClock(still.now)},
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				got := []string{
					remove(ctx, c, &sm.DeleteSecretInput{SecretId: db}), current(ctx, c, "db"), put(ctx, c, "db", "w", token(1)), create(ctx, c, "db", "w"),
					remove(ctx, c, &sm.DeleteSecretInput{SecretId: db}),
				}
				d, err := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: db})
				got = append(got, apiError(err), d.DeletedDate.Format(time.DateOnly))
				_, err = c.RestoreSecret(ctx, &sm.RestoreSecretInput{SecretId: db})
				return append(got, apiError(err), current(ctx, c, "db"))
			},
			want: []string{
				"db 2026-01-31", errMarked, errMarked,
				"InvalidRequestException: You can't create this secret because a secret with this name is already scheduled for deletion.",
				"InvalidRequestException: You can't perform this operation on the secret because it was already scheduled for deletion.",
				"", "2026-01-31", "", "v",
			},
		},
		"Due": {
			reason: "a secret is deleted after its recovery window",
			opts:   []emulator.Option{emulator.WithClock(purge.now)},
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				got := []string{remove(ctx, c, &sm.DeleteSecretInput{SecretId: db, RecoveryWindowInDays: aws.Int64(7)})}
				purge.advance(7 * 24 * time.Hour)
				_, err := c.RestoreSecret(ctx, &sm.RestoreSecretInput{SecretId: db})
				return append(got, apiError(err), current(ctx, c, "db"), create(ctx, c, "db", "new"), current(ctx, c, "db"))
			},
			want: []string{"db 2026-01-08", errNotFound, errNotFound, "", "new"},
		},
		"Forced": {
			reason: "a forced deletion is immediate, and succeeds for a secret that does not exist",
			opts:   []emulator.Option{emulator.WithClock(still.now)},
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				in := &sm.DeleteSecretInput{SecretId: db, ForceDeleteWithoutRecovery: aws.Bool(true)}
				return []string{remove(ctx, c, in), current(ctx, c, "db"), remove(ctx, c, in), create(ctx, c, "db", "w")}
			},
			want: []string{"db 2026-01-01", errNotFound, "db 2026-01-01", ""},
		},
		"Windows": {
			reason: "the window has bounds and cannot be combined with force",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				return []string{
					remove(ctx, c, &sm.DeleteSecretInput{SecretId: db, RecoveryWindowInDays: aws.Int64(6)}),
					remove(ctx, c, &sm.DeleteSecretInput{SecretId: db, RecoveryWindowInDays: aws.Int64(7), ForceDeleteWithoutRecovery: aws.Bool(true)}),
					remove(ctx, c, &sm.DeleteSecretInput{SecretId: aws.String("none")}),
				}
			},
			want: []string{
				"InvalidParameterException: The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).",
				"InvalidParameterException: You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.",
				errNotFound,
			},
		},
		"NewARN": {
			reason: "a secret that is created again has a new ARN, and the old one is not found",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				out, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: db, SecretString: aws.String("old")})
				if err != nil {
					t.Fatal(err)
				}
				srv.Delete("db")
				srv.Put("db", []byte("new"))
				return []string{current(ctx, c, *out.ARN), current(ctx, c, "db")}
			},
			want: []string{errNotFound, "new"},
		},
	})
}

func TestTags(t *testing.T) {
	tags := func(ctx context.Context, c *sm.Client) string {
		out, err := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: aws.String("db")})
		if err != nil {
			return apiError(err)
		}
		s := ""
		for _, t := range out.Tags {
			s += fmt.Sprintf("%s=%s ", *t.Key, *t.Value)
		}
		return s
	}
	pair := func(k, v string) types.Tag { return types.Tag{Key: &k, Value: &v} }
	runScripts(t, map[string]scriptCase{
		"TagAndUntag": {
			reason: "tags are added, replaced by key and removed",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"), emulator.Tags(map[string]string{"b": "2", "a": "1"}))
				got := []string{tags(ctx, c)}
				_, err := c.TagResource(ctx, &sm.TagResourceInput{SecretId: aws.String("db"), Tags: []types.Tag{pair("a", "3"), pair("c", "4")}})
				got = append(got, apiError(err), tags(ctx, c))
				_, err = c.UntagResource(ctx, &sm.UntagResourceInput{SecretId: aws.String("db"), TagKeys: []string{"a", "none"}})
				got = append(got, apiError(err), tags(ctx, c))
				_, err = c.TagResource(ctx, &sm.TagResourceInput{SecretId: aws.String("none"), Tags: []types.Tag{pair("a", "3")}})
				return append(got, apiError(err))
			},
			want: []string{"a=1 b=2 ", "", "a=3 b=2 c=4 ", "", "b=2 c=4 ", errNotFound},
		},
		"Created": {
			reason: "a secret is created with its tags",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				_, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("db"), SecretString: aws.String("v"), Tags: []types.Tag{pair("x", "y")}})
				return []string{apiError(err), tags(ctx, c)}
			},
			want: []string{"", "x=y "},
		},
	})
}

func TestVersionStages(t *testing.T) {
	db := aws.String("db")
	move := func(ctx context.Context, c *sm.Client, stage string, from, to *string) string {
		_, err := c.UpdateSecretVersionStage(ctx, &sm.UpdateSecretVersionStageInput{SecretId: db, VersionStage: &stage, RemoveFromVersionId: from, MoveToVersionId: to})
		return apiError(err)
	}
	versions := func(ctx context.Context, c *sm.Client, all bool, size int32) string {
		s := ""
		p := sm.NewListSecretVersionIdsPaginator(c, &sm.ListSecretVersionIdsInput{SecretId: db, IncludeDeprecated: &all, MaxResults: &size})
		for p.HasMorePages() {
			out, err := p.NextPage(ctx)
			if err != nil {
				return apiError(err)
			}
			for _, v := range out.Versions {
				s += (*v.VersionId)[31:] + " "
			}
			s += "|"
		}
		return s
	}
	runScripts(t, map[string]scriptCase{
		"Move": {
			reason: "a label that is in use moves only away from the version that the caller names, and AWSPREVIOUS moves with AWSCURRENT",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), put(ctx, c, "db", "two", token(2)),
					move(ctx, c, "AWSCURRENT", nil, token(1)), move(ctx, c, "AWSCURRENT", token(1), token(1)), move(ctx, c, "AWSCURRENT", token(2), nil),
					move(ctx, c, "AWSCURRENT", token(2), token(1)), stages(ctx, c, "db"), current(ctx, c, "db"),
					move(ctx, c, "BLUE", nil, token(2)), stages(ctx, c, "db"), move(ctx, c, "BLUE", token(2), nil), stages(ctx, c, "db"),
				}
			},
			want: []string{
				"", "AWSCURRENT",
				"InvalidParameterException: The parameter RemoveFromVersionId can't be empty. Staging label AWSCURRENT is currently attached to version " +
					*token(2) + ", so you must explicitly reference that version in RemoveFromVersionId.",
				"InvalidParameterException: Staging label AWSCURRENT is not attached to version " + *token(1) + ".",
				"InvalidParameterException: You can only move staging label AWSCURRENT to a different secret version. It can't be completely removed.",
				"", "1=AWSCURRENT 2=AWSPREVIOUS", "one",
				"", "1=AWSCURRENT 2=AWSPREVIOUS+BLUE", "", "1=AWSCURRENT 2=AWSPREVIOUS",
			},
		},
		"List": {
			reason: "versions without a label are deprecated, and listed on request only, page by page",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), put(ctx, c, "db", "two", token(2)), put(ctx, c, "db", "three", token(3)),
					versions(ctx, c, false, 100), versions(ctx, c, true, 2),
				}
			},
			want: []string{"", "AWSCURRENT", "AWSCURRENT", "2 3 |", "1 2 |3 |"},
		},
	})
}
