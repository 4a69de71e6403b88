package secretsmanager

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// oneAnswer is an api that returns one answer to every batch, and "single" to every single read.
type oneAnswer struct {
	api
	out secretsmanager.BatchGetSecretValueOutput
}

func (o oneAnswer) BatchGetSecretValue(context.Context, *secretsmanager.BatchGetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.BatchGetSecretValueOutput, error) {
	return &o.out, nil
}

func (oneAnswer) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	return &secretsmanager.GetSecretValueOutput{Name: in.SecretId, SecretString: aws.String("single"), VersionId: aws.String("v")}, nil
}

// TestGetBatchOtherAnswers checks that an entry that can be that of two secrets is read alone.
func TestGetBatchOtherAnswers(t *testing.T) {
	const own, other = "arn:aws:secretsmanager:us-east-1:000000000000:secret:", "arn:aws:secretsmanager:us-east-1:111111111111:secret:"
	secret := func(name, arn, v string) types.SecretValueEntry {
		return types.SecretValueEntry{Name: aws.String(name), ARN: aws.String(arn), SecretString: aws.String(v), VersionId: aws.String("v")}
	}
	type all = []types.SecretValueEntry
	cases := map[string]struct {
		reason string
		keys   []string
		answer all
		want   []string
	}{
		"OtherAccount":   {"A secret of another account can have the same name.", []string{"a", other + "a-aaaaaa"}, all{secret("a", own+"a-bbbbbb", "own"), secret("a", other+"a-aaaaaa", "shared")}, []string{"a=single", other + "a-aaaaaa=shared"}},
		"OtherFirst":     {"The order of entries does not matter.", []string{"a", other + "a-aaaaaa"}, all{secret("a", other+"a-aaaaaa", "shared"), secret("a", own+"a-bbbbbb", "own")}, []string{"a=single", other + "a-aaaaaa=shared"}},
		"Spellings":      {"Name, ARN and ARN without its suffix name one secret.", []string{"a", own + "a-bbbbbb", own + "a"}, all{secret("a", own+"a-bbbbbb", "v")}, []string{"a=v", own + "a-bbbbbb=v", own + "a=v"}},
		"Repeated":       {"AWS can repeat an entry.", []string{"a", own + "a-bbbbbb"}, all{secret("a", own+"a-bbbbbb", "v"), secret("a", own+"a-bbbbbb", "v")}, []string{"a=v", own + "a-bbbbbb=v"}},
		"Suffix":         {"An ARN without its suffix can be the ARN of another secret.", []string{own + "a-bbbbbb", "b"}, all{secret("a-bbbbbb", own+"a-bbbbbb-cccccc", "like"), secret("a", own+"a-bbbbbb", "v"), secret("b", own+"b-dddddd", "b")}, []string{own + "a-bbbbbb=v", "b=b"}},
		"TwoSuffixes":    {"Two secrets have the ARN without its suffix.", []string{own + "a", "b"}, all{secret("a", own+"a-bbbbbb", "1"), secret("a", own+"a-cccccc", "2"), secret("b", own+"b-dddddd", "b")}, []string{own + "a=single", "b=b"}},
		"OtherVersion":   {"Two versions of one secret in an answer.", []string{"a", "b"}, all{secret("a", own+"a-bbbbbb", "1"), {Name: aws.String("a"), ARN: aws.String(own + "a-bbbbbb"), SecretString: aws.String("2"), VersionId: aws.String("w")}, secret("b", own+"b-dddddd", "b")}, []string{"a=single", "b=b"}},
		"NameLikeARN":    {"A name that ends like an ARN is a name.", []string{own + "a-bbbbbb", own + "a"}, all{secret("a-bbbbbb", own+"a-bbbbbb-cccccc", "like")}, []string{own + "a-bbbbbb=like", "Unavailable"}},
		"ARNWithoutName": {"An entry without a name is found by its ARN.", []string{"a", own + "b-bbbbbb"}, all{secret("", own+"b-bbbbbb", "b"), secret("a", own+"a-bbbbbb", "a")}, []string{"a=a", own + "b-bbbbbb=b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, awstest.Start(t))
			o := oneAnswer{api: c.api}
			o.out.SecretValues = tc.answer
			c.api = o
			if diff := cmp.Diff(tc.want, awstest.Outcomes(c.GetBatch(t.Context(), awstest.Refs(tc.keys...)))); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
