package parameterstore

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// oneAnswer is an api that returns one answer to every batch, and "single" to every single read.
type oneAnswer struct {
	api
	out ssm.GetParametersOutput
}

func (g oneAnswer) GetParameters(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error) {
	return &g.out, nil
}

func (g oneAnswer) GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	return &ssm.GetParameterOutput{Parameter: parameter("", "", 1, "single")}, nil
}

func parameter(name, selector string, version int64, v string) *types.Parameter {
	return &types.Parameter{Name: aws.String(name), ARN: aws.String("arn:aws:ssm:us-east-1:000000000000:parameter" + name), Selector: aws.String(selector), Version: version, Value: aws.String(v)}
}

// elsewhere returns a parameter with the same name in another account.
func elsewhere(name string, v string) *types.Parameter {
	p := parameter(name, "", 1, v)
	p.ARN = aws.String("arn:aws:ssm:us-east-1:111111111111:parameter" + name)
	return p
}

func TestGetBatchOtherAnswers(t *testing.T) {
	type all = []*types.Parameter
	const unavailable = "Unavailable"
	cases := map[string]struct {
		reason  string
		refs    []provider.Ref
		answer  all
		invalid []string
		want    []string
	}{
		"NoSelector":     {"One answer fits the current version and the number.", awstest.Refs("/p", "/p:1"), all{parameter("/p", "", 1, "old")}, nil, []string{unavailable, unavailable}},
		"OnlyThose":      {"Other parameters of the batch are not affected.", awstest.Refs("/p", "/p:1", "/q"), all{parameter("/p", "", 1, "old"), parameter("/q", "", 1, "q")}, nil, []string{unavailable, unavailable, "/q=q"}},
		"TwoNoSelector":  {"The order of answers is not that of the requests.", awstest.Refs("/p", "/p:1"), all{parameter("/p", "", 2, "new"), parameter("/p", "", 1, "old")}, nil, []string{unavailable, unavailable}},
		"Swapped":        {"The order of answers is not that of the requests.", awstest.Refs("/p:1", "/p"), all{parameter("/p", "", 1, "old"), parameter("/p", "", 2, "new")}, nil, []string{unavailable, unavailable}},
		"Label":          {"An answer without a selector can be that of the label.", awstest.Refs("/p", "/p:old"), all{parameter("/p", "", 1, "old")}, nil, []string{unavailable, unavailable}},
		"VersionField":   {"A version in the ref is the same as one in the key.", []provider.Ref{{Key: "/p"}, {Key: "/p", Version: "1"}}, all{parameter("/p", "", 1, "old")}, nil, []string{unavailable, unavailable}},
		"ARN":            {"An ARN names the same parameter.", awstest.Refs("/p", "arn:aws:ssm:us-east-1:000000000000:parameter/p:1"), all{parameter("/p", "", 1, "old")}, nil, []string{unavailable, unavailable}},
		"Same":           {"A name and an ARN ask for the same version.", awstest.Refs("/p", "arn:aws:ssm:us-east-1:000000000000:parameter/p"), all{parameter("/p", "", 1, "v")}, nil, []string{"/p=v", "arn:aws:ssm:us-east-1:000000000000:parameter/p=v"}},
		"SameTwice":      {"AWS can answer a name and an ARN separately.", awstest.Refs("/p", "arn:aws:ssm:us-east-1:000000000000:parameter/p"), all{parameter("/p", "", 1, "v"), parameter("/p", "", 1, "v")}, nil, []string{"/p=v", "arn:aws:ssm:us-east-1:000000000000:parameter/p=v"}},
		"Selectors":      {"Selectors tell the answers apart.", awstest.Refs("/p", "/p:1", "/p:old"), all{parameter("/p", "", 1, "v"), parameter("/p", ":1", 1, "v1"), parameter("/p", ":old", 1, "vold")}, nil, []string{"/p=v", "/p:1=v1", "/p:old=vold"}},
		"OneRequest":     {"A number alone is clear without a selector.", awstest.Refs("/p:1", "/q"), all{parameter("/p", "", 1, "old"), parameter("/q", "", 1, "q")}, nil, []string{"/p:1=old", "/q=q"}},
		"OtherNumber":    {"Another number is clear, and the missing one is not in the answer.", awstest.Refs("/p", "/p:7"), all{parameter("/p", "", 9, "new")}, nil, []string{"/p=new", unavailable}},
		"InvalidLabel":   {"A label that AWS calls invalid has its answer.", awstest.Refs("/p", "/p:typo"), all{parameter("/p", "", 9, "new")}, []string{"/p:typo"}, []string{"/p=new", "/p:typo=single"}},
		"OtherAccount":   {"A name can be that of a shared parameter, too, so it is read alone.", awstest.Refs("/p", "arn:aws:ssm:us-east-1:111111111111:parameter/p"), all{parameter("/p", "", 1, "own"), elsewhere("/p", "shared")}, nil, []string{"/p=single", "arn:aws:ssm:us-east-1:111111111111:parameter/p=shared"}},
		"OtherWithNoOwn": {"A shared parameter is not the own one of that name.", awstest.Refs("/p", "arn:aws:ssm:us-east-1:111111111111:parameter/p"), all{elsewhere("/p", "shared")}, []string{"/p"}, []string{"/p=single", "arn:aws:ssm:us-east-1:111111111111:parameter/p=shared"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, awstest.Start(t))
			g := oneAnswer{api: c.api}
			for _, p := range tc.answer {
				g.out.Parameters = append(g.out.Parameters, *p)
			}
			g.out.InvalidParameters = tc.invalid
			c.api = g
			if diff := cmp.Diff(tc.want, awstest.Outcomes(c.GetBatch(t.Context(), tc.refs))); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
