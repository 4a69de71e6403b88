package parameterstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const ours, theirs = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10", "7d4d5f5c-2f57-4ad4-8a4e-15b3a9a1c2d3"

func targetOf(metadata string) provider.Target {
	return provider.Target{Key: "/a", Metadata: []byte(cmp.Or(metadata, "{}"))}
}

func observed(t *testing.T, c *Client, metadata string) provider.Observed {
	t.Helper()
	o, err := c.Observe(t.Context(), targetOf(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func created(t *testing.T, c *Client, value, metadata string) provider.Observed {
	t.Helper()
	if _, err := c.Create(t.Context(), targetOf(metadata), []byte(value), ours); err != nil {
		t.Fatal(err)
	}
	return observed(t, c, metadata)
}

// settingsOf returns the settings of parameter "/a".
func settingsOf(t *testing.T, c *Client) metadata {
	t.Helper()
	d, err := c.describe(t.Context(), "/a", "/a")
	if err != nil {
		t.Fatal(err)
	}
	tags, err := c.tags(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	delete(tags, awsconfig.IDKey)
	m := metadata{Type: d.Type, Tier: d.Tier, DataType: aws.ToString(d.DataType), AllowedPattern: aws.ToString(d.AllowedPattern)}
	m.Description, m.KMSKeyID, m.Tags = aws.ToString(d.Description), aws.ToString(d.KeyId), tags
	return m
}

func TestWriteRefused(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	refused := func(key string) string {
		return fmt.Sprintf("parameter %q: cannot be written; use a name with letters, digits and . _ - / only, without ARN and version", key)
	}
	cases := map[string]struct {
		reason, key, data, metadata string
		want                        string
	}{
		"Empty":        {"An empty value is rejected.", "/a", "", "{}", `parameter "/a": the value is empty, which AWS does not allow`},
		"Binary":       {"A value that is not text is rejected.", "/a", "\xff", "{}", `parameter "/a": the value is not UTF-8 text, as parameters require; encode it with a template`},
		"Large":        {"A value that is too large for the standard tier is rejected, and the error names the tier to set.", "/a", strings.Repeat("x", 4097), "{}", `parameter "/a": the value has 4097 bytes, and AWS allows at most 4096 in the standard tier; set metadata.tier: Advanced`},
		"Huge":         {"A value that is too large for every tier is rejected.", "/a", strings.Repeat("x", 8193), `{"tier":"Intelligent-Tiering"}`, `parameter "/a": the value has 8193 bytes, and AWS allows at most 8192; push it to Secrets Manager`},
		"ARN":          {"An ARN is rejected.", "arn:aws:ssm:us-east-1:000000000000:parameter/a", "v", "{}", refused("arn:aws:ssm:us-east-1:000000000000:parameter/a")},
		"Version":      {"A version is rejected.", "/a:3", "v", "{}", refused("/a:3")},
		"Space":        {"A space is rejected, because AWS would remove it.", "/a ", "v", "{}", refused("/a ")},
		"Reference":    {"A reference to Secrets Manager is read-only.", "/aws/reference/secretsmanager/a@b", "v", "{}", refused("/aws/reference/secretsmanager/a@b")},
		"Unknown":      {"An unknown field is rejected.", "/a", "v", `{"secretType":"x"}`, `metadata: unknown field "secretType"; allowed are ` + takes},
		"Type":         {"An unknown type is rejected.", "/a", "v", `{"type":"Binary"}`, `metadata.type: "Binary" is not valid; set SecureString, String or StringList`},
		"Tier":         {"An unknown tier is rejected.", "/a", "v", `{"tier":"advanced"}`, `metadata.tier: "advanced" is not valid; set Standard, Advanced or Intelligent-Tiering`},
		"KeyOfString":  {"A KMS key is rejected for a String.", "/a", "v", `{"type":"String","kmsKeyID":"alias/k"}`, `metadata.kmsKeyID: only a SecureString is encrypted; remove kmsKeyID or metadata.type`},
		"Image":        {"An image is rejected, because AWS checks it after it has answered.", "/a", "v", `{"type":"String","dataType":"aws:ec2:image"}`, `metadata.dataType: AWS validates an image only after its response, so the operator cannot know whether it was written; use text`},
		"ReservedTags": {"A tag with the prefix of the marks is rejected.", "/a", "v", `{"tags":{"Direct-Secrets.io/id":"x"}}`, `metadata.tags: "Direct-Secrets.io/id" is reserved for the operator; choose another name`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Create(t.Context(), provider.Target{Key: tc.key, Metadata: []byte(tc.metadata)}, []byte(tc.data), ours)
			if diff := gocmp.Diff(error(provider.NewError(provider.Invalid, "%s", tc.want)), err); diff != "" {
				t.Errorf("%s\nCreate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
	if n := srv.Count(); n != 0 {
		t.Errorf("an invalid write must be rejected before any call: %d calls", n)
	}
}

func TestPrefixOfWrites(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv, awstest.WithPrefix("/shop"))
	seen := created(t, c, "v", "")
	if _, err := c.Update(t.Context(), targetOf(""), seen, []byte("w")); err != nil {
		t.Fatal(err)
	}
	all := client(t, srv)
	if v, err := all.Get(t.Context(), provider.Ref{Key: "/shop/a"}); err != nil || string(v.Data) != "w" {
		t.Errorf("the prefix must be added to keys that are written: %q, %v", v.Data, err)
	}
	if err := c.Delete(t.Context(), targetOf(""), observed(t, c, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Get(t.Context(), provider.Ref{Key: "/shop/a"}); !provider.IsNotFound(err) {
		t.Errorf("the prefix must be added to keys that are deleted: %v", err)
	}
}

// between runs f right before the client writes a value, after it has read the parameter.
func between(c *Client, f func()) {
	c.api = putting{api: c.api, before: f, after: func() {}}
}

// putting is an api that runs a function before and after it writes a value.
type putting struct {
	api
	before, after func()
}

func (p putting) PutParameter(ctx context.Context, in *ssm.PutParameterInput, o ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	p.before()
	defer p.after()
	return p.api.PutParameter(ctx, in, o...)
}

func TestCovered(t *testing.T) {
	type result struct {
		Class                  provider.Class
		Version, Lost, Current string
	}
	put := func(values ...string) func(*emulator.Server) {
		return func(s *emulator.Server) {
			for _, v := range values {
				s.PutParameter("/a", v, emulator.Secure())
			}
		}
	}
	recreate := func(values ...string) func(*emulator.Server) {
		return func(s *emulator.Server) {
			s.DeleteParameter("/a")
			put(values...)(s)
		}
	}
	cases := map[string]struct {
		reason  string
		between func(*emulator.Server)
		want    result
	}{
		"Nothing":          {"Overwriting the value in seen loses nothing.", put(), result{Version: "2", Current: "ours"}},
		"Theirs":           {"A value of another writer is returned as lost.", put("theirs"), result{Version: "3", Lost: "theirs", Current: "ours"}},
		"Many":             {"Of several values of another writer, the last one is returned as lost.", put("one", "two", "three"), result{Version: "5", Lost: "three", Current: "ours"}},
		"Same":             {"Nothing is lost if another writer stored the same value.", put("ours"), result{Version: "3", Current: "ours"}},
		"ThenSame":         {"A value that the same value replaced is returned as lost.", put("theirs", "ours"), result{Version: "4", Lost: "theirs", Current: "ours"}},
		"Back":             {"The value in seen is returned as lost if another writer stored it again.", put("theirs", "seen"), result{Version: "4", Lost: "seen", Current: "ours"}},
		"Gone":             {"A deleted parameter is not created again.", recreate(), result{Class: provider.Conflict}},
		"Recreated":        {"A new parameter with the same version number is detected.", recreate("theirs"), result{Version: "2", Lost: "theirs", Current: "ours"}},
		"RecreatedLonger":  {"A new parameter with a higher version number is detected.", recreate("one", "theirs"), result{Version: "3", Lost: "theirs", Current: "ours"}},
		"RecreatedTheSame": {"A new parameter with the value in seen loses nothing.", recreate("seen"), result{Version: "2", Current: "ours"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			seen := created(t, c, "seen", "")
			between(c, func() { tc.between(srv) })
			w, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours"))
			got := result{Version: w.Version, Lost: string(w.Lost)}
			if err != nil {
				got.Class = provider.ClassOf(err)
			}
			if v, err := c.Get(t.Context(), provider.Ref{Key: "/a"}); err == nil {
				got.Current = string(v.Data)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nUpdate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConflicts updates a parameter that has changed since it was read. The update is rejected before it
// overwrites anything.
func TestConflicts(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	seen := created(t, c, "seen", "")
	srv.PutParameter("/a", "theirs")
	if w, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict || w.Lost != nil {
		t.Errorf("Update(...): %v, want a conflict", err)
	}
	if got := observed(t, c, ""); string(got.Data) != "theirs" || got.Version != "2" {
		t.Errorf("the value of another writer is overwritten: version %s", got.Version)
	}
}

// TestCoveredWithTags makes the tag call fail after a value was overwritten.
func TestCoveredWithTags(t *testing.T) {
	const metadata = `{"tags":{"team":"shop"}}`
	srv := awstest.Start(t)
	c := client(t, srv)
	created(t, c, "seen", "")
	seen := observed(t, c, metadata)
	between(c, func() { srv.PutParameter("/a", "theirs") })
	srv.Inject(emulator.Fault{Call: "AddTagsToResource", Code: "AccessDeniedException"})
	w, err := c.Update(t.Context(), targetOf(metadata), seen, []byte("ours"))
	if err != nil || string(w.Lost) != "theirs" {
		t.Errorf("the overwritten value must be returned although the tag call fails: %q, %v", w.Lost, err)
	}
	if got := observed(t, c, metadata); len(got.Drift) != 1 {
		t.Errorf("the tags must be reported as drift: %q", got.Drift)
	}
}

// TestUndo lets another writer change a parameter before the update that created it again is undone.
func TestUndo(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	seen := created(t, c, "seen", "")
	sdk := c.api
	c.api = putting{api: sdk, before: func() { srv.DeleteParameter("/a") }, after: func() { srv.PutParameter("/a", "theirs") }}
	if _, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("Update(...): %v, want a conflict", err)
	}
	if got := observed(t, c, ""); string(got.Data) != "theirs" {
		t.Errorf("the value of the other writer must stay: %q", got.Data)
	}

	c.api = sdk
	between(c, func() { srv.DeleteParameter("/a") })
	srv.Inject(emulator.Fault{Call: "DeleteParameter", Code: "AccessDeniedException"})
	_, err := c.Update(t.Context(), targetOf(""), observed(t, c, ""), []byte("ours"))
	want := provider.NewError(provider.Denied, `it was deleted meanwhile and created again without the tag that records its owner, and removing it failed; delete it: parameter "/a": access denied; allow ssm:DeleteParameter in a policy`)
	if diff := gocmp.Diff(error(want), err); diff != "" {
		t.Errorf("The error must say that the write could not be undone: -want error, +got error:\n%s", diff)
	}
}

// TestLostAnswers makes AWS carry out calls without an answer, so that the SDK repeats them.
func TestLostAnswers(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	seen := created(t, c, "seen", "")
	srv.Inject(emulator.Fault{Call: "PutParameter", Times: 1, Body: emulator.BodyNone})
	w, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours"))
	if diff := gocmp.Diff(provider.Written{Version: "3", ID: seen.ID}, w); diff != "" || err != nil {
		t.Errorf("A repeated write must not report a lost value.\nUpdate(...): -want, +got:\n%s\n%v", diff, err)
	}
	srv.Inject(emulator.Fault{Call: "DeleteParameter", Times: 1, Body: emulator.BodyNone})
	if err := fake.Writer(c).Delete(t.Context(), targetOf(""), observed(t, c, "")); err != nil {
		t.Errorf("a repeated deletion must succeed: %v", err)
	}
}

func TestSettings(t *testing.T) {
	const first = `{"description":"d","kmsKeyID":"alias/k","allowedPattern":"^\\w+$","tags":{"team":"shop","stage":"live"}}`
	has := func(change func(*metadata)) metadata {
		m := metadata{Type: types.ParameterTypeSecureString, Tier: types.ParameterTierStandard, DataType: "text", AllowedPattern: `^\w+$`}
		m.Description, m.KMSKeyID = "d", "alias/k"
		m.Tags = map[string]string{"team": "shop", "stage": "live", awsconfig.MarkKey: ours}
		change(&m)
		return m
	}
	none := func(*metadata) {}
	cases := map[string]struct {
		reason   string
		metadata string
		value    string
		drift    []string
		version  string
		want     metadata
	}{
		"None":        {"Settings that the target does not set stay unchanged.", `{}`, "", nil, "1", has(none)},
		"Value":       {"A new value keeps the KMS key, for which AWS would take the default key.", `{}`, "w", nil, "2", has(none)},
		"Same":        {"Settings without drift are not written.", first, "", nil, "1", has(none)},
		"Tags":        {"A change of tags creates no version.", `{"tags":{"team":"pay"}}`, "", []string{"tags.team"}, "1", has(func(m *metadata) { m.Tags["team"] = "pay" })},
		"Description": {"A change of the description creates a version.", `{"description":"e"}`, "", []string{"description"}, "2", has(func(m *metadata) { m.Description = "e" })},
		"Key":         {"A change of the KMS key creates a version.", `{"kmsKeyID":"alias/l"}`, "", []string{"kmsKeyID"}, "2", has(func(m *metadata) { m.KMSKeyID = "alias/l" })},
		"Tier":        {"A change of the tier creates a version.", `{"tier":"Advanced"}`, "", []string{"tier"}, "2", has(func(m *metadata) { m.Tier = types.ParameterTierAdvanced })},
		"AWSChooses":  {"Any tier that AWS has chosen is accepted.", `{"tier":"Intelligent-Tiering"}`, "", nil, "1", has(none)},
		"Grows":       {"AWS chooses a tier that is large enough.", `{"tier":"Intelligent-Tiering"}`, strings.Repeat("w", 4097), nil, "2", has(func(m *metadata) { m.Tier = types.ParameterTierAdvanced })},
		"Pattern":     {"A change of the pattern creates a version.", `{"allowedPattern":"^v$"}`, "", []string{"allowedPattern"}, "2", has(func(m *metadata) { m.AllowedPattern = "^v$" })},
		"All":         {"A new value and new settings are written together.", `{"description":"e","tags":{"new":""}}`, "w", []string{"description", "tags.new"}, "2", has(func(m *metadata) { m.Description = "e"; m.Tags["new"] = "" })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, awstest.Start(t))
			created(t, c, "v", first)
			o := observed(t, c, tc.metadata)
			if diff := gocmp.Diff(tc.drift, o.Drift); diff != "" {
				t.Errorf("%s\nDrift: -want, +got:\n%s", tc.reason, diff)
			}
			var data []byte
			if tc.value != "" {
				data = []byte(tc.value)
			}
			w, err := c.Update(t.Context(), targetOf(tc.metadata), o, data)
			if diff := gocmp.Diff(provider.Written{Version: tc.version, ID: o.ID}, w); diff != "" || err != nil {
				t.Errorf("%s\nUpdate(...): -want, +got:\n%s\n%v", tc.reason, diff, err)
			}
			if diff := gocmp.Diff(tc.want, settingsOf(t, c)); diff != "" {
				t.Errorf("%s\nsettings: -want, +got:\n%s", tc.reason, diff)
			}
			now := observed(t, c, tc.metadata)
			if want := cmp.Or(tc.value, "v"); string(now.Data) != want || len(now.Drift) > 0 {
				t.Errorf("%s\nThe parameter has %d bytes and drifts in %q", tc.reason, len(now.Data), now.Drift)
			}
		})
	}
}

func TestImpossible(t *testing.T) {
	large := strings.Repeat("x", 4097)
	cases := map[string]struct {
		reason          string
		before, after   string
		value, newValue string
		want            *provider.Error
	}{
		"Type":  {"A change of the type is rejected.", `{"type":"String"}`, `{"type":"SecureString"}`, "v", "v", provider.NewError(provider.Invalid, `parameter "/a": is of type String, and AWS does not change the type; set metadata.type to this value, delete the parameter, or push to another key`)},
		"Tier":  {"A change to a smaller tier is rejected.", `{"tier":"Advanced"}`, `{"tier":"Standard"}`, "v", "v", provider.NewError(provider.Invalid, `parameter "/a": is in the advanced tier, which AWS does not change back; set metadata.tier to this value, delete the parameter, or push to another key`)},
		"Grows": {"A value that is too large for the present tier is rejected.", `{}`, `{}`, "v", large, provider.NewError(provider.Invalid, `parameter "/a": the value has 4097 bytes, and AWS allows at most 4096 in the standard tier; set metadata.tier: Advanced`)},
		"Stays": {"The present tier decides if none is requested.", `{"tier":"Advanced"}`, `{}`, "v", large, nil},
		"Moves": {"The requested tier decides.", `{}`, `{"tier":"Advanced"}`, "v", large, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, awstest.Start(t))
			created(t, c, tc.value, tc.before)
			_, err := c.Update(t.Context(), targetOf(tc.after), observed(t, c, tc.after), []byte(tc.newValue))
			if tc.want == nil {
				if got := observed(t, c, ""); err != nil || string(got.Data) != tc.newValue {
					t.Errorf("%s\nUpdate(...): %d bytes, %v", tc.reason, len(got.Data), err)
				}
				return
			}
			if diff := gocmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nUpdate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if got := observed(t, c, ""); got.Version != "1" {
				t.Errorf("%s\nThe parameter was written", tc.reason)
			}
		})
	}
}

// TestOthers writes a parameter that another writer created. It keeps its type, and its ID is derived from the
// modification time.
func TestOthers(t *testing.T) {
	var ticks atomic.Int64 // AWS reports times in milliseconds, so each write needs a new one.
	srv := awstest.Start(t, emulator.WithClock(func() time.Time { return time.Now().Add(time.Duration(ticks.Add(1)) * time.Millisecond) }))
	c := client(t, srv)
	srv.PutParameter("/a", "v")
	seen := observed(t, c, "")
	w, err := c.Update(t.Context(), targetOf(""), seen, []byte("w"))
	if err != nil {
		t.Fatal(err)
	}
	now := observed(t, c, "")
	if diff := gocmp.Diff(provider.Observed{Data: []byte("w"), Version: w.Version, ID: w.ID, Token: seen.Token}, now); diff != "" || w.ID == seen.ID || !strings.HasPrefix(w.ID, timed) {
		t.Errorf("the ID must be the modification time: %q, %q\n-want, +got:\n%s", seen.ID, w.ID, diff)
	}
	if got := settingsOf(t, c); got.Type != types.ParameterTypeString || len(got.Tags) > 0 {
		t.Errorf("the type must stay, and no tags must be added: %+v", got)
	}
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason             string
		changeConcurrently func(*emulator.Server, map[string]string)
		want               error
		unavailable        bool
	}{
		"Ours":    {"An unchanged parameter is deleted.", func(*emulator.Server, map[string]string) {}, nil, true},
		"Gone":    {"A parameter that is already deleted does not exist.", func(s *emulator.Server, _ map[string]string) { s.DeleteParameter("/a") }, provider.NewError(provider.NotFound, `parameter "/a": does not exist in region us-east-1; create it, correct the key, or use find.path for the parameters below it`), true},
		"Value":   {"A parameter that another writer changed is kept.", func(s *emulator.Server, _ map[string]string) { s.PutParameter("/a", "w") }, provider.ErrChanged, false},
		"Another": {"A new parameter with the same version number is kept.", func(s *emulator.Server, _ map[string]string) { s.DeleteParameter("/a"); s.PutParameter("/a", "v") }, provider.ErrChanged, false},
		"Mark": {"A new parameter with the mark of another object is kept.", func(s *emulator.Server, tags map[string]string) {
			s.DeleteParameter("/a")
			tags[awsconfig.MarkKey] = theirs
			s.PutParameter("/a", "v", emulator.ParameterTags(tags))
		}, provider.ErrChanged, false},
		"Copy": {"A copy with another ID is kept.", func(s *emulator.Server, tags map[string]string) {
			s.DeleteParameter("/a")
			tags[awsconfig.IDKey] = "x"
			s.PutParameter("/a", "v", emulator.ParameterTags(tags))
		}, provider.ErrChanged, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			seen := created(t, c, "v", "")
			tags, err := c.tags(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			tc.changeConcurrently(srv, tags)
			if diff := gocmp.Diff(tc.want, c.Delete(t.Context(), targetOf(""), seen)); diff != "" {
				t.Errorf("%s\nDelete(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if _, err := c.Observe(t.Context(), targetOf("")); provider.IsNotFound(err) != tc.unavailable {
				t.Errorf("%s\nObserve(...): %v", tc.reason, err)
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	with := func(code string) *provider.Error {
		return provider.NewError(codes[code].Class, `parameter "/a": %s`, codes[code].Text)
	}
	cases := map[string]struct {
		reason    string
		operation string
		fault     emulator.Fault
		want      *provider.Error
	}{
		"Put":      {"The error names the permission to write.", "PutParameter", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:PutParameter in a policy`)},
		"Describe": {"The error names the permission to read the settings.", "DescribeParameters", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:DescribeParameters in a policy`)},
		"Tag":      {"The error names the permission for tags.", "AddTagsToResource", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:AddTagsToResource in a policy`)},
		"TagGone":  {"A parameter that was deleted before the tag call does not exist.", "AddTagsToResource", emulator.Fault{Code: "InvalidResourceId"}, provider.NewError(provider.NotFound, `parameter "/a": does not exist in region us-east-1; create it, correct the key, or use find.path for the parameters below it`)},
		"Limit":    {"An exhausted quota has its own message.", "PutParameter", emulator.Fault{Code: "ParameterLimitExceeded", Message: canary}, with("ParameterLimitExceeded")},
		"Versions": {"A label on the oldest version has its own message.", "PutParameter", emulator.Fault{Code: "ParameterMaxVersionLimitExceeded", Message: canary}, with("ParameterMaxVersionLimitExceeded")},
		"Updates":  {"Concurrent updates have their own message.", "PutParameter", emulator.Fault{Code: "TooManyUpdates"}, with("TooManyUpdates")},
		"Key":      {"A disabled KMS key has its own message.", "PutParameter", emulator.Fault{Code: "InvalidKeyId", Message: canary}, with("InvalidKeyId")},
		"Pattern":  {"An invalid pattern has its own message.", "PutParameter", emulator.Fault{Code: "InvalidAllowedPatternException", Message: canary}, with("InvalidAllowedPatternException")},
		"Unknown":  {"An unknown error code is Unavailable.", "PutParameter", emulator.Fault{Code: "NewException", Message: canary}, provider.NewError(provider.Unavailable, `parameter "/a": AWS returned the error NewException`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			created(t, c, "v", "")
			metadata, data := `{"tags":{"team":"shop"}}`, []byte(canary)
			seen := observed(t, c, metadata)
			if tc.operation == "AddTagsToResource" {
				data = nil
			}
			tc.fault.Call = tc.operation
			srv.Inject(tc.fault)
			_, err := c.Update(t.Context(), targetOf(metadata), seen, data)
			if diff := gocmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nUpdate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			srv.ClearFaults()
			if diff := gocmp.Diff(seen, observed(t, c, metadata), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nThe parameter has changed: %s", tc.reason, diff)
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	awstest.CheckAccounts(t, "PutParameter", func(srv *emulator.Server) provider.Writer { return client(t, srv) })
}
