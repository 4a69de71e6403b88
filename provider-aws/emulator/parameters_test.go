package emulator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func ssmClient(t testing.TB, srv *emulator.Server) *ssm.Client {
	t.Helper()
	return ssm.NewFromConfig(awsConfig(t, srv, static("test", "test", "")))
}

// written calls PutParameter, and returns the version and tier, or the error code.
func written(ctx context.Context, c *ssm.Client, in *ssm.PutParameterInput) string {
	out, err := c.PutParameter(ctx, in)
	if err != nil {
		return code(err)
	}
	return fmt.Sprintf("%d %s", out.Version, out.Tier)
}

func code(err error) string {
	c, _, _ := strings.Cut(apiError(err), ":")
	return c
}

// parameterText reads a parameter, and returns it in one line, or the error code.
func parameterText(ctx context.Context, c *ssm.Client, name string, decrypt bool) string {
	out, err := c.GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: &decrypt})
	if err != nil {
		return code(err)
	}
	return line(*out.Parameter)
}

func line(p types.Parameter) string {
	return fmt.Sprintf("%s%s %s %s v%d", *p.Name, aws.ToString(p.Selector), p.Type, *p.Value, p.Version)
}

func lines(all []types.Parameter) (out []string) {
	for _, p := range all {
		out = append(out, line(p))
	}
	return out
}

func newParameter(name, value string, change ...func(*ssm.PutParameterInput)) *ssm.PutParameterInput {
	in := &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeString}
	for _, f := range change {
		f(in)
	}
	return in
}

func overwrite(in *ssm.PutParameterInput) { in.Overwrite = aws.Bool(true) }

func tier(t types.ParameterTier) func(*ssm.PutParameterInput) {
	return func(in *ssm.PutParameterInput) { in.Tier = t }
}

func TestPutParameter(t *testing.T) {
	t.Parallel()
	small, large, huge := strings.Repeat("x", 4096), strings.Repeat("x", 4097), strings.Repeat("x", 8193)
	cases := map[string]struct {
		reason string
		in     *ssm.PutParameterInput
		want   string
	}{
		"New":             {"a new parameter has the standard tier", newParameter("/new", "v"), "1 Standard"},
		"Exists":          {"an existing parameter is overwritten on request only", newParameter("/a", "v"), "ParameterAlreadyExists"},
		"Overwrite":       {"a new version has the next number", newParameter("/a", "v", overwrite), "2 Standard"},
		"OverwriteNew":    {"overwriting can create a parameter", newParameter("/new", "v", overwrite), "1 Standard"},
		"OverwriteTags":   {"tags are accepted for new parameters only", newParameter("/a", "v", overwrite, func(in *ssm.PutParameterInput) { in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}} }), "ValidationException"},
		"OverwriteType":   {"the type cannot change", newParameter("/a", "v", overwrite, func(in *ssm.PutParameterInput) { in.Type = types.ParameterTypeSecureString }), "HierarchyTypeMismatchException"},
		"NoType":          {"a new parameter needs a type", newParameter("/new", "v", func(in *ssm.PutParameterInput) { in.Type = "" }), "ValidationException"},
		"NoTypeOverwrite": {"a new version needs no type", newParameter("/a", "v", overwrite, func(in *ssm.PutParameterInput) { in.Type = "" }), "2 Standard"},
		"BadType":         {"an unknown type is rejected", newParameter("/new", "v", func(in *ssm.PutParameterInput) { in.Type = "Binary" }), "ValidationException"},
		"Empty":           {"an empty value is rejected", newParameter("/new", ""), "ValidationException"},
		"Full":            {"4 KB fit into the standard tier", newParameter("/new", small), "1 Standard"},
		"Large":           {"more than 4 KB do not fit into the standard tier", newParameter("/new", large), "ValidationException"},
		"Advanced":        {"more than 4 KB fit into the advanced tier", newParameter("/new", large, tier(types.ParameterTierAdvanced)), "1 Advanced"},
		"TooLarge":        {"more than 8 KB are rejected", newParameter("/new", huge, tier(types.ParameterTierAdvanced)), "ValidationException"},
		"Intelligent":     {"the service can choose the tier", newParameter("/new", large, tier(types.ParameterTierIntelligentTiering)), "1 Advanced"},
		"IntelligentFew":  {"the service chooses the smallest tier", newParameter("/new", small, tier(types.ParameterTierIntelligentTiering)), "1 Standard"},
		"Stays":           {"an advanced parameter stays advanced", newParameter("/advanced", "v", overwrite), "2 Advanced"},
		"Downgrade":       {"a change back to the standard tier is rejected", newParameter("/advanced", "v", overwrite, tier(types.ParameterTierStandard)), "ValidationException"},
		"Slash":           {"a hierarchy must start with a slash", newParameter("a/b", "v"), "ValidationException"},
		"Space":           {"a name with a space is rejected", newParameter("a b", "v"), "ValidationException"},
		"Reserved":        {"the prefix aws is reserved", newParameter("/aws/x", "v"), "AccessDeniedException"},
		"SSM":             {"the prefix ssm is reserved", newParameter("/ssm/x", "v"), "ValidationException"},
		"Levels":          {"more than fifteen levels are rejected", newParameter(strings.Repeat("/a", 16), "v"), "HierarchyLevelLimitExceededException"},
		"Long":            {"a name that is too long is rejected", newParameter(strings.Repeat("a", 1012), "v"), "ValidationException"},
		"Pattern":         {"a value must match the allowed pattern", newParameter("/new", "v", func(in *ssm.PutParameterInput) { in.AllowedPattern = aws.String(`^\d+$`) }), "ParameterPatternMismatchException"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t)
			c := ssmClient(t, srv)
			srv.PutParameter("/a", "v")
			written(t.Context(), c, newParameter("/advanced", large, tier(types.ParameterTierAdvanced)))
			if diff := cmp.Diff(tc.want, written(t.Context(), c, tc.in)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParameterVersions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := start(t)
	c := ssmClient(t, srv)
	label := func(version int64, labels ...string) string {
		out, err := c.LabelParameterVersion(ctx, &ssm.LabelParameterVersionInput{Name: aws.String("/a"), ParameterVersion: &version, Labels: labels})
		if err != nil {
			return code(err)
		}
		return fmt.Sprint(out.InvalidLabels)
	}
	want := func(reason, want, got string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, diff)
		}
	}
	for i := range 100 {
		srv.PutParameter("/a", fmt.Sprint(i+1))
	}
	want("without a selector the newest version is read", "/a String 100 v100", parameterText(ctx, c, "/a", false))
	want("a number selects a version", "/a:1 String 1 v1", parameterText(ctx, c, "/a:1", false))
	want("an invalid label is reported", "[aws-x 1st]", label(1, "keep", "aws-x", "1st"))
	want("a label selects a version", "/a:keep String 1 v1", parameterText(ctx, c, "/a:keep", false))
	want("an ARN can be used as the name", "/a:keep String 1 v1", parameterText(ctx, c, "arn:aws:ssm:us-east-1:000000000000:parameter/a:keep", false))
	want("a missing version has its own error", "ParameterVersionNotFound", parameterText(ctx, c, "/a:101", false))
	want("a missing label has its own error", "ParameterVersionNotFound", parameterText(ctx, c, "/a:other", false))
	want("a missing parameter has its own error", "ParameterNotFound", parameterText(ctx, c, "/b:1", false))
	want("an invalid name is rejected", "ValidationException", parameterText(ctx, c, "/a b", false))
	want("a label on the oldest version prevents the next version", "ParameterMaxVersionLimitExceeded", written(ctx, c, newParameter("/a", "v", overwrite)))
	want("a label moves", "[]", label(2, "keep"))
	want("the label can be moved", "/a:keep String 2 v2", parameterText(ctx, c, "/a:keep", false))
	want("the oldest version without a label is removed", "101 Standard", written(ctx, c, newParameter("/a", "v", overwrite)))
	want("the oldest version no longer exists", "ParameterVersionNotFound", parameterText(ctx, c, "/a:1", false))
	want("more than ten labels are rejected", "ParameterVersionLabelLimitExceeded", label(2, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"))
	want("a removed version cannot get a label", "ParameterVersionNotFound", label(1, "a"))
}

func TestGetParameters(t *testing.T) {
	t.Parallel()
	srv := start(t, emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", Deny: []emulator.Deny{
		{Action: "ssm:GetParameters", Secret: "/denied"}, {Action: "kms:Decrypt", Secret: "/kms"},
	}}))
	srv.PutParameter("/b", "1")
	srv.PutParameter("/b", "2")
	srv.PutParameter("/a", "x,y", emulator.List())
	srv.PutParameter("/secret", "canary", emulator.Secure())
	srv.PutParameter("/denied", "d")
	srv.PutParameter("/kms", "k", emulator.Secure())
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprint(i))
	}
	cases := map[string]struct {
		reason  string
		names   []string
		want    []string
		invalid []string
		code    string
	}{
		"Order":   {"answers are sorted", []string{"/secret", "/b", "/a"}, []string{"/a StringList x,y v1", "/b String 2 v2", "/secret SecureString canary v1"}, nil, ""},
		"Once":    {"a parameter is answered once for each selector", []string{"/b", "arn:aws:ssm:us-east-1:000000000000:parameter/b", "/b:1"}, []string{"/b String 2 v2", "/b:1 String 1 v1"}, nil, ""},
		"Invalid": {"a missing parameter and an invalid name are listed as invalid", []string{"/none", "/b", "/b:9", "a b", "/none"}, []string{"/b String 2 v2"}, []string{"/none", "/b:9", "a b"}, ""},
		"Denied":  {"a denied parameter fails the whole call", []string{"/b", "/denied"}, nil, nil, "AccessDeniedException"},
		"KMS":     {"a parameter that cannot be decrypted fails the whole call", []string{"/b", "/kms"}, nil, nil, "AccessDeniedException"},
		"Many":    {"more than ten are rejected", eleven, nil, nil, "ValidationException"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := ssmClient(t, srv).GetParameters(t.Context(), &ssm.GetParametersInput{Names: tc.names, WithDecryption: aws.Bool(true)})
			if diff := cmp.Diff(tc.code, code(err)); diff != "" {
				t.Fatalf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			got := slices.Concat(lines(out.Parameters), []string{"and not"}, out.InvalidParameters)
			if diff := cmp.Diff(slices.Concat(tc.want, []string{"and not"}, tc.invalid), got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	c := ssmClient(t, srv)
	if got := parameterText(t.Context(), c, "/secret", false); strings.Contains(got, "canary") || !strings.Contains(got, "SecureString") {
		t.Errorf("without decryption the value must be unusable: %s", got)
	}
	if got := parameterText(t.Context(), c, "/kms", true); got != "AccessDeniedException" {
		t.Errorf("a parameter that cannot be decrypted must be denied: %s", got)
	}
}

// walk reads all pages of a hierarchy. It returns the number of entries of each page, all entries, and the
// error code.
func walk(ctx context.Context, c *ssm.Client, in *ssm.GetParametersByPathInput) (sizes []int, all []string, failure string) {
	for {
		out, err := c.GetParametersByPath(ctx, in)
		if err != nil {
			return sizes, all, code(err)
		}
		sizes = append(sizes, len(out.Parameters))
		for _, p := range out.Parameters {
			all = append(all, *p.Name)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return sizes, all, ""
		}
	}
}

func TestGetParametersByPath(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := start(t)
	c := ssmClient(t, srv)
	for i := range 12 {
		srv.PutParameter(fmt.Sprintf("/p/%02d", i), "v")
	}
	srv.PutParameter("/p/deep/er", "v", emulator.Secure())
	srv.PutParameter("/pq", "v")
	srv.PutParameter("p", "v")
	srv.LabelParameter("/p/03", "live")
	path := func(p string, change ...func(*ssm.GetParametersByPathInput)) *ssm.GetParametersByPathInput {
		in := &ssm.GetParametersByPathInput{Path: &p, Recursive: aws.Bool(true), WithDecryption: aws.Bool(true)}
		for _, f := range change {
			f(in)
		}
		return in
	}
	filter := func(key, option, value string) func(*ssm.GetParametersByPathInput) {
		return func(in *ssm.GetParametersByPathInput) {
			in.ParameterFilters = []types.ParameterStringFilter{{Key: &key, Option: &option, Values: []string{value}}}
		}
	}
	cases := map[string]struct {
		reason string
		in     *ssm.GetParametersByPathInput
		sizes  []int
		last   string
		code   string
	}{
		"Recursive": {"all levels are listed, in pages of ten", path("/p"), []int{10, 3}, "/p/deep/er", ""},
		"Slash":     {"a path can end in a slash", path("/p/"), []int{10, 3}, "/p/deep/er", ""},
		"OneLevel":  {"one level is listed", path("/p", func(in *ssm.GetParametersByPathInput) { in.Recursive = nil }), []int{10, 2}, "/p/11", ""},
		"Small":     {"pages can be smaller", path("/p", func(in *ssm.GetParametersByPathInput) { in.MaxResults = aws.Int32(7) }), []int{7, 6}, "/p/deep/er", ""},
		"Root":      {"the path / does not list plain names", path("/"), []int{10, 4}, "/pq", ""},
		"None":      {"an empty hierarchy is an empty answer", path("/none"), []int{0}, "", ""},
		"Type":      {"a type can be selected", path("/p", filter("Type", "Equals", "SecureString")), []int{1}, "/p/deep/er", ""},
		"Label":     {"a label can be selected", path("/p", filter("Label", "Equals", "live")), []int{1}, "/p/03", ""},
		"Tag":       {"a tag cannot be selected", path("/p", filter("tag:a", "Equals", "b")), nil, "", "InvalidFilterKey"},
		"Plain":     {"a path must start with a slash", path("p"), nil, "", "ValidationException"},
		"Many":      {"a page has at most ten entries", path("/p", func(in *ssm.GetParametersByPathInput) { in.MaxResults = aws.Int32(11) }), nil, "", "ValidationException"},
		"Token":     {"an invalid token is rejected", path("/p", func(in *ssm.GetParametersByPathInput) { in.NextToken = aws.String("x") }), nil, "", "InvalidNextToken"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sizes, all, failure := walk(ctx, c, tc.in)
			last := ""
			if len(all) > 0 {
				last = all[len(all)-1]
			}
			if diff := cmp.Diff([]any{tc.sizes, tc.last, tc.code}, []any{sizes, last, failure}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDescribeParameters(t *testing.T) {
	t.Parallel()
	srv := start(t)
	c := ssmClient(t, srv)
	for i := range 51 {
		srv.PutParameter(fmt.Sprintf("/p/%02d", i), "v")
	}
	srv.PutParameter("/shop/db", "v", emulator.Secure(), emulator.ParameterTags(map[string]string{"team": "shop", "stage": "live"}))
	srv.PutParameter("/shop/deep/db", "v", emulator.ParameterTags(map[string]string{"team": "shopping"}))
	filter := func(key, option string, values ...string) types.ParameterStringFilter {
		return types.ParameterStringFilter{Key: &key, Option: &option, Values: values}
	}
	cases := map[string]struct {
		reason  string
		filters []types.ParameterStringFilter
		want    string
	}{
		"All":       {"a page has fifty entries", nil, "50 more"},
		"Equals":    {"a name can be selected", []types.ParameterStringFilter{filter("Name", "Equals", "/shop/db")}, "/shop/db"},
		"Begins":    {"a prefix of the name can be selected", []types.ParameterStringFilter{filter("Name", "BeginsWith", "/shop")}, "/shop/db /shop/deep/db"},
		"Contains":  {"a part of the name can be selected", []types.ParameterStringFilter{filter("Name", "Contains", "deep")}, "/shop/deep/db"},
		"Recursive": {"a hierarchy can be selected", []types.ParameterStringFilter{filter("Path", "Recursive", "/shop")}, "/shop/db /shop/deep/db"},
		"OneLevel":  {"one level of a hierarchy can be selected", []types.ParameterStringFilter{filter("Path", "OneLevel", "/shop")}, "/shop/db"},
		"Type":      {"a type can be selected", []types.ParameterStringFilter{filter("Type", "Equals", "SecureString")}, "/shop/db"},
		"Tag":       {"the value of a tag can be selected", []types.ParameterStringFilter{filter("tag:team", "Equals", "shop")}, "/shop/db"},
		"TagBegins": {"the prefix of a tag's value can be selected", []types.ParameterStringFilter{filter("tag:team", "BeginsWith", "shop")}, "/shop/db /shop/deep/db"},
		"Or":        {"one of several values is enough", []types.ParameterStringFilter{filter("tag:team", "Equals", "shop", "shopping")}, "/shop/db /shop/deep/db"},
		"And":       {"all filters must match", []types.ParameterStringFilter{filter("tag:team", "BeginsWith", "shop"), filter("tag:stage", "Equals", "live")}, "/shop/db"},
		"Label":     {"labels cannot be selected", []types.ParameterStringFilter{filter("Label", "Equals", "x")}, "InvalidFilterKey"},
		"Option":    {"a part of a tag's value cannot be selected", []types.ParameterStringFilter{filter("tag:team", "Contains", "x")}, "InvalidFilterOption"},
		"NoValue":   {"an empty tag value cannot be selected", []types.ParameterStringFilter{filter("tag:team", "Equals")}, "InvalidFilterValue"},
		"Unknown":   {"an unknown key is rejected", []types.ParameterStringFilter{filter("Color", "Equals", "x")}, "ValidationException"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := c.DescribeParameters(t.Context(), &ssm.DescribeParametersInput{ParameterFilters: tc.filters})
			got := code(err)
			if err == nil {
				var names []string
				for _, p := range out.Parameters {
					names = append(names, *p.Name)
				}
				if got = strings.Join(names, " "); out.NextToken != nil {
					got = fmt.Sprintf("%d more", len(names))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParameterTagsAndDeletion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := start(t)
	c := ssmClient(t, srv)
	for _, name := range []string{"/a", "/b", "/c"} {
		srv.PutParameter(name, "v", emulator.ParameterTags(map[string]string{"team": "shop"}))
	}
	tags := func(id string) string {
		out, err := c.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &id})
		if err != nil {
			return code(err)
		}
		var all []string
		for _, tag := range out.TagList {
			all = append(all, *tag.Key+"="+*tag.Value)
		}
		return strings.Join(all, " ")
	}
	want := func(reason, want, got string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, diff)
		}
	}
	_, err := c.AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{
		ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/a"),
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("bank")}, {Key: aws.String("more"), Value: aws.String("")}},
	})
	want("tags are added", "", code(err))
	want("a tag with the same key is replaced", "team=bank more=", tags("/a"))
	_, err = c.RemoveTagsFromResource(ctx, &ssm.RemoveTagsFromResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/a"), TagKeys: []string{"team"}})
	want("tags are removed", "", code(err))
	want("other tags stay", "more=", tags("/a"))
	want("the tags of other parameters stay", "team=shop", tags("/b"))
	want("an ARN is rejected", "InvalidResourceId", tags("arn:aws:ssm:us-east-1:000000000000:parameter/a"))
	_, err = c.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingDocument, ResourceId: aws.String("/a")})
	want("another resource type is rejected", "InvalidResourceType", code(err))

	_, err = c.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/a")})
	want("a parameter is deleted", "", code(err))
	want("a deleted parameter does not exist", "ParameterNotFound", parameterText(ctx, c, "/a", false))
	out, err := c.DeleteParameters(ctx, &ssm.DeleteParametersInput{Names: []string{"/a", "/b", "/c"}})
	if err != nil {
		t.Fatal(err)
	}
	want("several parameters can be deleted at once, and missing ones are reported", "[/b /c] [/a]", fmt.Sprint(out.DeletedParameters, out.InvalidParameters))
	want("a parameter that is created again starts with version 1", "1 Standard", written(ctx, c, newParameter("/a", "v")))
	want("every call is counted", "DeleteParameter 1", fmt.Sprint("DeleteParameter ", srv.Count("DeleteParameter")))
}
