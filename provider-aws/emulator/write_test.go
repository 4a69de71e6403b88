package emulator_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestStagedWrite does a guarded write: it stores a version with its own label, and then makes it current
// instead of the version that was seen.
func TestStagedWrite(t *testing.T) {
	db := aws.String("db")
	move := func(ctx context.Context, c *sm.Client, stage string, from, to *string) string {
		_, err := c.UpdateSecretVersionStage(ctx, &sm.UpdateSecretVersionStageInput{SecretId: db, VersionStage: &stage, RemoveFromVersionId: from, MoveToVersionId: to})
		return code(err)
	}
	runScripts(t, map[string]scriptCase{
		"Alone": {
			reason: "AWSPREVIOUS moves with AWSCURRENT, and another label can be removed",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), put(ctx, c, "db", "two", token(2), "x/staged"), current(ctx, c, "db"),
					move(ctx, c, "AWSCURRENT", token(1), token(2)), move(ctx, c, "x/staged", token(2), nil), stages(ctx, c, "db"), current(ctx, c, "db"),
				}
			},
			want: []string{"", "x/staged", "one", "", "", "1=AWSPREVIOUS 2=AWSCURRENT", "two"},
		},
		"Moved": {
			reason: "a label that another version has by now does not move, and a version without labels is deprecated but can be read",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), put(ctx, c, "db", "two", token(2), "x/staged"), put(ctx, c, "db", "three", token(3)),
					move(ctx, c, "AWSCURRENT", token(1), token(2)), move(ctx, c, "x/staged", token(2), nil), stages(ctx, c, "db"),
					read(ctx, c, &sm.GetSecretValueInput{SecretId: db, VersionId: token(2)}),
				}
			},
			want: []string{"", "x/staged", "AWSCURRENT", "InvalidParameterException", "", "1=AWSPREVIOUS 3=AWSCURRENT", "two"},
		},
		"Race": {
			reason: "only one version can have a label, and a version that lost it can still become current",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return []string{
					create(ctx, c, "db", "one", token(1)), put(ctx, c, "db", "two", token(2), "x/staged"), put(ctx, c, "db", "three", token(3), "x/staged"),
					move(ctx, c, "AWSCURRENT", token(1), token(2)), move(ctx, c, "AWSCURRENT", token(1), token(3)), move(ctx, c, "x/staged", token(2), nil), stages(ctx, c, "db"),
				}
			},
			want: []string{"", "x/staged", "x/staged", "", "InvalidParameterException", "InvalidParameterException", "1=AWSPREVIOUS 2=AWSCURRENT 3=x/staged"},
		},
		"First": {
			reason: "the first version is current whatever its labels, and the second is not",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				_, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: db})
				return []string{
					apiError(err), put(ctx, c, "db", "one", token(1), "x/staged"), put(ctx, c, "db", "two", token(2), "x/staged"),
					move(ctx, c, "AWSCURRENT", nil, token(2)), current(ctx, c, "db"),
				}
			},
			want: []string{"", "x/staged,AWSCURRENT", "x/staged", "InvalidParameterException", "one"},
		},
		"Settings": {
			reason: "description and key change without a new version",
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				got := []string{create(ctx, c, "db", "one", token(1))}
				out, err := c.UpdateSecret(ctx, &sm.UpdateSecretInput{SecretId: db, Description: aws.String("d"), KmsKeyId: aws.String("alias/k")})
				if err != nil {
					return append(got, apiError(err))
				}
				d, err := c.DescribeSecret(ctx, &sm.DescribeSecretInput{SecretId: db})
				if err != nil {
					return append(got, apiError(err))
				}
				return append(got, aws.ToString(out.VersionId), *d.Description, *d.KmsKeyId, stages(ctx, c, "db"))
			},
			want: []string{"", "", "d", "alias/k", "1=AWSCURRENT"},
		},
	})
}

// TestOverwrite checks which settings a parameter keeps when it is overwritten, and which the request must
// repeat.
func TestOverwrite(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := ssmClient(t, start(t))
	secure := func(in *ssm.PutParameterInput) { in.Type = types.ParameterTypeSecureString }
	full := func(in *ssm.PutParameterInput) {
		in.KeyId, in.Description = aws.String("alias/k"), aws.String("d")
		in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("shop")}}
	}
	got := []string{written(ctx, c, newParameter("/a", "v", secure, full, tier(types.ParameterTierAdvanced)))}
	settings := func() {
		d, err := c.DescribeParameters(ctx, &ssm.DescribeParametersInput{})
		if err != nil || len(d.Parameters) != 1 {
			t.Fatalf("DescribeParameters: %+v, %v", d, err)
		}
		tags, err := c.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/a")})
		if err != nil {
			t.Fatal(err)
		}
		p := d.Parameters[0]
		line := string(p.Type) + " " + string(p.Tier) + " " + aws.ToString(p.KeyId) + " " + aws.ToString(p.Description)
		for _, tag := range tags.TagList {
			line += " " + *tag.Key + "=" + *tag.Value
		}
		got = append(got, line)
	}
	settings()
	got = append(got, written(ctx, c, newParameter("/a", "w", overwrite, func(in *ssm.PutParameterInput) { in.Type = "" })))
	settings()
	got = append(got, written(ctx, c, newParameter("arn:aws:ssm:us-east-1:000000000000:parameter/a", "w", overwrite)))
	want := []string{
		"1 Advanced", "SecureString Advanced alias/k d team=shop",
		"2 Advanced", "SecureString Advanced alias/aws/ssm d team=shop",
		"ValidationException",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("All settings but the key are kept, and an ARN is not accepted: -want, +got:\n%s", diff)
	}
}
