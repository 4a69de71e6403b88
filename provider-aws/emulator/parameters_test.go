package emulator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestParameterStore makes calls that no client of the provider makes.
func TestParameterStore(t *testing.T) {
	const put, get, list, describe, label = "ssm.PutParameter", "ssm.GetParameter", "ssm.GetParametersByPath", "ssm.DescribeParameters", "ssm.LabelParameterVersion"
	large, huge := strings.Repeat("x", 4097), strings.Repeat("x", 8193)
	for name, steps := range map[string][]step{
		"Input": {
			{call: put, body: `{"Name":"/new","Value":"v"}`, want: "type is required"},
			{call: put, body: `{"Name":"/new","Value":"v","Type":"Binary"}`, want: "enum value set"},
			{call: put, body: `{"Name":"/new","Value":"","Type":"String"}`, want: "greater than or equal to 1"},
			{call: put, body: `{"Name":"a/b","Value":"v","Type":"String"}`, want: "fully qualified name"},
			{call: put, body: `{"Name":"a b","Value":"v","Type":"String"}`, want: "ValidationException"},
			{call: put, body: `{"Name":"/aws/x","Value":"v","Type":"String"}`, want: "AccessDeniedException"},
			{call: put, body: `{"Name":"` + strings.Repeat("/a", 16) + `","Value":"v","Type":"String"}`, want: "HierarchyLevelLimitExceededException"},
			{call: put, body: `{"Name":"` + strings.Repeat("a", 1012) + `","Value":"v","Type":"String"}`, want: "no longer than"},
			{call: put, body: `{"Name":"/new","Value":"v","Type":"String","AllowedPattern":"^\\d+$"}`, want: "ParameterPatternMismatchException"},
			{call: put, body: `{"Name":"/a","Value":"v","Type":"SecureString","Overwrite":true}`, want: "HierarchyTypeMismatchException"},
			{call: put, body: `{"Name":"/a","Value":"v","Overwrite":true,"Tags":[{"Key":"k","Value":"v"}]}`, want: "tags and overwrite"},
			{call: put, body: `{"Name":"arn:aws:ssm:us-east-1:000000000000:parameter/a","Value":"v","Overwrite":true}`, want: "ValidationException"},
		},
		"Tiers": {
			{call: put, body: `{"Name":"/new","Value":"` + large + `","Type":"String"}`, want: "Standard tier parameters support"},
			{call: put, body: `{"Name":"/new","Value":"` + huge + `","Type":"String","Tier":"Advanced"}`, want: "ValidationException"},
			{call: put, body: `{"Name":"/new","Value":"` + large + `","Type":"String","Tier":"Intelligent-Tiering"}`, want: `"Tier":"Advanced"`},
			{call: put, body: `{"Name":"/new","Value":"v","Overwrite":true}`, want: `"Tier":"Advanced"`},
			{call: put, body: `{"Name":"/new","Value":"v","Overwrite":true,"Tier":"Standard"}`, want: "advanced-parameter t"},
		},
		"Labels": {
			{call: label, body: `{"Name":"/a","Labels":["keep","aws-x","1st"]}`, want: `"InvalidLabels":["aws-x","1st"]`},
			{call: label, body: `{"Name":"/a","ParameterVersion":9,"Labels":["x"]}`, want: "ParameterVersionNotFound"},
			{call: label, body: `{"Name":"/none","Labels":["x"]}`, want: "ParameterNotFound"},
			{call: label, body: `{"Name":"/a","Labels":["a","b","c","d","e","f","g","h","i","j"]}`, want: "ParameterVersionLabelLimitExceeded"},
			{call: get, body: `{"Name":"/a:keep"}`, want: `"Version":1`},
			{call: list, body: `{"Path":"/","ParameterFilters":[{"Key":"Label","Values":["keep"]}]}`, want: `"Name":"/a"`},
		},
		"Lists": {
			{call: list, body: `{"Path":"p"}`, want: "ValidationException"},
			{call: list, body: `{"Path":"/","NextToken":"x"}`, want: "InvalidNextToken"},
			{call: list, body: `{"Path":"/","ParameterFilters":[{"Key":"tag:a","Values":["b"]}]}`, want: "InvalidFilterKey"},
			{call: describe, body: `{"ParameterFilters":[{"Key":"Type","Values":["SecureString"]}]}`, want: `{"Parameters":[{"ARN":"arn:aws:ssm:us-east-1:000000000000:parameter/secure"`},
			{call: describe, body: `{"ParameterFilters":[{"Key":"Color","Values":["b"]}]}`, want: "ValidationException"},
			{call: describe, body: `{"ParameterFilters":[{"Key":"tag:a"}]}`, want: "InvalidFilterValue"},
			{call: describe, body: `{"ParameterFilters":[{"Key":"tag:a","Option":"Contains","Values":["b"]}]}`, want: "InvalidFilterOption"},
			{call: "ssm.GetParameters", body: `{"Names":["` + strings.Repeat(`/a","`, 10) + `/b"]}`, want: "less than or equal to 10"},
		},
		"TagsAndDeletion": {
			{call: "ssm.RemoveTagsFromResource", body: `{"ResourceType":"Parameter","ResourceId":"/a","TagKeys":["team"]}`, want: "200"},
			{call: "ssm.ListTagsForResource", body: `{"ResourceType":"Parameter","ResourceId":"/a"}`, want: `"TagList":[]`},
			{call: "ssm.ListTagsForResource", body: `{"ResourceType":"Document","ResourceId":"/a"}`, want: "InvalidResourceType"},
			{call: "ssm.DeleteParameters", body: `{"Names":["/a","/none"]}`, want: `{"DeletedParameters":["/a"],"InvalidParameters":["/none"]}`},
			{call: get, body: `{"Name":"/a"}`, want: "ParameterNotFound"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t)
			srv.PutParameter("/a", "v", emulator.ParameterTags(map[string]string{"team": "shop"}))
			srv.PutParameter("/secure", "canary", emulator.Secure())
			run(t, srv, steps)
			if got := (step{call: get, body: `{"Name":"/secure"}`}).ask(t, srv); strings.Contains(got, "canary") {
				t.Errorf("without decryption the value must be unusable: %s", got)
			}
		})
	}
}

// TestParameterVersions fills the 100 versions of a parameter.
func TestParameterVersions(t *testing.T) {
	srv := start(t)
	for i := range 100 {
		srv.PutParameter("/a", fmt.Sprint(i+1))
	}
	const put = `{"Name":"/a","Value":"v","Overwrite":true}`
	run(t, srv, []step{
		{call: "ssm.LabelParameterVersion", body: `{"Name":"/a","ParameterVersion":1,"Labels":["keep"]}`, want: "200"},
		{call: "ssm.PutParameter", body: put, want: "ParameterMaxVersionLimitExceeded"},
		{call: "ssm.LabelParameterVersion", body: `{"Name":"/a","ParameterVersion":2,"Labels":["keep"]}`, want: "200"},
		{call: "ssm.PutParameter", body: put, want: `"Version":101`},
		{call: "ssm.GetParameter", body: `{"Name":"/a:1"}`, want: "ParameterVersionNotFound"},
	})
}
