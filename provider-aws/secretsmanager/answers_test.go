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

// TestGetBatchOtherErrors checks that the error of an ARN is that of the request by name, if it can be that of no other.
func TestGetBatchOtherErrors(t *testing.T) {
	const own, other = "arn:aws:secretsmanager:us-east-1:000000000000:secret:", "arn:aws:secretsmanager:us-east-1:111111111111:secret:"
	cases := map[string]struct {
		reason string
		keys   []string
		failed string
		want   []string
	}{
		"Name":       {"The request is by name.", []string{"a", "b"}, own + "a-bbbbbb", []string{"Denied", "b=B"}},
		"NoSuffix":   {"The ARN can be without its suffix.", []string{"a", "b"}, own + "a", []string{"Denied", "b=B"}},
		"ARN":        {"The request is by ARN.", []string{own + "a-bbbbbb", "b"}, own + "a-bbbbbb", []string{"Denied", "b=B"}},
		"CutARN":     {"The request is by ARN without its suffix.", []string{own + "a", "b"}, own + "a-bbbbbb", []string{"Denied", "b=B"}},
		"Unclear":    {"An ARN that can be that of two names is read alone.", []string{"a", "a-bbbbbb", "b"}, own + "a-bbbbbb", []string{"a=single", "a-bbbbbb=single", "b=B"}},
		"OtherNamed": {"The error of a requested ARN is not that of a name.", []string{"a", other + "a-bbbbbb", "b"}, other + "a-bbbbbb", []string{"Unavailable", "Denied", "b=B"}},
		"Unasked":    {"An error of another secret fails no request.", []string{"c", "b"}, own + "a-bbbbbb", []string{"Unavailable", "b=B"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, awstest.Start(t))
			o := oneAnswer{api: c.api}
			o.out.Errors = []types.APIErrorType{{SecretId: aws.String(tc.failed), ErrorCode: aws.String("AccessDeniedException"), Message: aws.String("x")}}
			o.out.SecretValues = []types.SecretValueEntry{{Name: aws.String("b"), ARN: aws.String(own + "b-dddddd"), SecretString: aws.String("B"), VersionId: aws.String("v")}}
			c.api = o
			if diff := cmp.Diff(tc.want, awstest.Outcomes(c.GetBatch(t.Context(), awstest.Refs(tc.keys...)))); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
