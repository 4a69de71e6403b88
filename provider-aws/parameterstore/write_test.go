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

// settingsOf are the settings that parameter "/a" has.
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
		return fmt.Sprintf("parameter %q: cannot be written; AWS takes a name, which has letters, digits and . _ - / only, and no ARN and no version", key)
	}
	cases := map[string]struct {
		reason, key, data, metadata string
		want                        string
	}{
		"Empty":        {"AWS has no empty value.", "/a", "", "{}", `parameter "/a": the value is empty, and AWS takes no such value`},
		"Binary":       {"AWS has text only.", "/a", "\xff", "{}", `parameter "/a": the value is not text, and parameters hold text only; encode it with a template`},
		"Large":        {"There is a tier with more room.", "/a", strings.Repeat("x", 4097), "{}", `parameter "/a": the value has 4097 bytes, and AWS takes at most 4096 in the standard tier; set metadata.tier: Advanced`},
		"Huge":         {"And no tier beyond.", "/a", strings.Repeat("x", 8193), `{"tier":"Intelligent-Tiering"}`, `parameter "/a": the value has 8193 bytes, and AWS takes at most 8192; push it to Secrets Manager`},
		"ARN":          {"AWS takes names.", "arn:aws:ssm:us-east-1:000000000000:parameter/a", "v", "{}", refused("arn:aws:ssm:us-east-1:000000000000:parameter/a")},
		"Version":      {"AWS chooses the version.", "/a:3", "v", "{}", refused("/a:3")},
		"Space":        {"AWS would cut it off.", "/a ", "v", "{}", refused("/a ")},
		"Reference":    {"What leads to Secrets Manager is read only.", "/aws/reference/secretsmanager/a@b", "v", "{}", refused("/aws/reference/secretsmanager/a@b")},
		"Unknown":      {"A field that nobody reads is a mistake.", "/a", "v", `{"secretType":"x"}`, `metadata: unknown field "secretType"; it takes ` + takes},
		"Type":         {"There are three types.", "/a", "v", `{"type":"Binary"}`, `metadata.type: "Binary" is none; set SecureString, String or StringList`},
		"Tier":         {"There are three tiers.", "/a", "v", `{"tier":"advanced"}`, `metadata.tier: "advanced" is none; set Standard, Advanced or Intelligent-Tiering`},
		"KeyOfString":  {"Only secrets have a key.", "/a", "v", `{"type":"String","kmsKeyID":"alias/k"}`, `metadata.kmsKeyID: only a SecureString is encrypted; remove it, or metadata.type`},
		"Image":        {"An answer must mean something.", "/a", "v", `{"type":"String","dataType":"aws:ec2:image"}`, `metadata.dataType: AWS checks an image after it has answered, so that nobody would know whether it was written; use text`},
		"ReservedTags": {"Nobody else makes a mark.", "/a", "v", `{"tags":{"Direct-Secrets.io/id":"x"}}`, `metadata.tags: keys such as "Direct-Secrets.io/id" say which object created the secret, and are set by themselves; remove it`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Create(t.Context(), provider.Target{Key: tc.key, Metadata: []byte(tc.metadata)}, []byte(tc.data), ours)
			if diff := gocmp.Diff(error(provider.NewError(provider.Invalid, "%s", tc.want)), err); diff != "" {
				t.Errorf("%s\nCreate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
	if n := srv.Calls(""); n != 0 {
		t.Errorf("What cannot be is refused before any call: %d calls", n)
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
		t.Errorf("A prefix is put before keys that are written: %q, %v", v.Data, err)
	}
	if err := c.Delete(t.Context(), targetOf(""), observed(t, c, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Get(t.Context(), provider.Ref{Key: "/shop/a"}); !provider.IsNotFound(err) {
		t.Errorf("A prefix is put before keys that are deleted: %v", err)
	}
}

// between runs f right before the client puts a value, when it has looked at the parameter already.
func between(c *Client, f func()) {
	c.api = putting{api: c.api, before: f, after: func() {}}
}

// putting is an api that does something before it puts a value, and after.
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
	anew := func(values ...string) func(*emulator.Server) {
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
		"Nothing":     {"What was seen is not lost.", put(), result{Version: "2", Current: "ours"}},
		"Theirs":      {"What somebody else wrote is handed back.", put("theirs"), result{Version: "3", Lost: "theirs", Current: "ours"}},
		"Many":        {"Of many the last, which was current.", put("one", "two", "three"), result{Version: "5", Lost: "three", Current: "ours"}},
		"Same":        {"The same value is not lost.", put("ours"), result{Version: "3", Current: "ours"}},
		"ThenSame":    {"But what it covered is.", put("theirs", "ours"), result{Version: "4", Lost: "theirs", Current: "ours"}},
		"Back":        {"Nor is what was seen if it came back.", put("theirs", "seen"), result{Version: "4", Lost: "seen", Current: "ours"}},
		"Gone":        {"A parameter that is gone is not made again.", anew(), result{Class: provider.Conflict}},
		"Anew":        {"One that was made anew may have come to the same number.", anew("theirs"), result{Version: "2", Lost: "theirs", Current: "ours"}},
		"AnewLonger":  {"Or beyond it.", anew("one", "theirs"), result{Version: "3", Lost: "theirs", Current: "ours"}},
		"AnewTheSame": {"With the value that was seen nothing is lost.", anew("seen"), result{Version: "2", Current: "ours"}},
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

// TestConflicts updates what was seen long ago: that is refused before it covers anything.
func TestConflicts(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	seen := created(t, c, "seen", "")
	srv.PutParameter("/a", "theirs")
	if w, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict || w.Lost != nil {
		t.Errorf("Update(...): %v, want a conflict", err)
	}
	if got := observed(t, c, ""); string(got.Data) != "theirs" || got.Version != "2" {
		t.Errorf("What somebody else wrote is covered: version %s", got.Version)
	}
}

// TestCoveredWithTags has the tags fail after a value was covered.
func TestCoveredWithTags(t *testing.T) {
	const metadata = `{"tags":{"team":"shop"}}`
	srv := awstest.Start(t)
	c := client(t, srv)
	created(t, c, "seen", "")
	seen := observed(t, c, metadata)
	between(c, func() { srv.PutParameter("/a", "theirs") })
	srv.Inject(emulator.Fault{Operation: "AddTagsToResource", Code: "AccessDeniedException"})
	w, err := c.Update(t.Context(), targetOf(metadata), seen, []byte("ours"))
	if err != nil || string(w.Lost) != "theirs" {
		t.Errorf("What was covered is handed back, whatever else fails: %q, %v", w.Lost, err)
	}
	if got := observed(t, c, metadata); len(got.Drift) != 1 {
		t.Errorf("And the tags are found to differ: %q", got.Drift)
	}
}

// TestUndo has somebody write a parameter that overwriting made anew before that is undone.
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
		t.Errorf("What somebody else wrote stays: %q", got.Data)
	}

	c.api = sdk
	between(c, func() { srv.DeleteParameter("/a") })
	srv.Inject(emulator.Fault{Operation: "DeleteParameter", Code: "AccessDeniedException"})
	_, err := c.Update(t.Context(), targetOf(""), observed(t, c, ""), []byte("ours"))
	want := provider.NewError(provider.Denied, `it was deleted meanwhile, is made anew without its mark, and that cannot be undone; delete it: parameter "/a": access denied; allow ssm:DeleteParameter in a policy`)
	if diff := gocmp.Diff(error(want), err); diff != "" {
		t.Errorf("What cannot be undone is told: -want error, +got error:\n%s", diff)
	}
}

// TestLostAnswers has AWS carry calls out whose answers are lost, so that the SDK makes them again.
func TestLostAnswers(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	seen := created(t, c, "seen", "")
	srv.Inject(emulator.Fault{Operation: "PutParameter", Times: 1, Body: emulator.BodyNone})
	w, err := c.Update(t.Context(), targetOf(""), seen, []byte("ours"))
	if diff := gocmp.Diff(provider.Written{Version: "3", ID: seen.ID}, w); diff != "" || err != nil {
		t.Errorf("What was written twice covered nothing of others.\nUpdate(...): -want, +got:\n%s\n%v", diff, err)
	}
	srv.Inject(emulator.Fault{Operation: "DeleteParameter", Times: 1, Body: emulator.BodyNone})
	if err := c.Delete(t.Context(), targetOf(""), observed(t, c, "")); err != nil {
		t.Errorf("What was deleted twice is deleted: %v", err)
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
		"None":        {"What is not named is left alone.", `{}`, "", nil, "1", has(none)},
		"Value":       {"Also by a new value, in whose call AWS would take the default key.", `{}`, "w", nil, "2", has(none)},
		"Same":        {"What is as it should be is not written.", first, "", nil, "1", has(none)},
		"Tags":        {"Tags make no version.", `{"tags":{"team":"pay"}}`, "", []string{"tags.team"}, "1", has(func(m *metadata) { m.Tags["team"] = "pay" })},
		"Description": {"All else does.", `{"description":"e"}`, "", []string{"description"}, "2", has(func(m *metadata) { m.Description = "e" })},
		"Key":         {"The key, too.", `{"kmsKeyID":"alias/l"}`, "", []string{"kmsKeyID"}, "2", has(func(m *metadata) { m.KMSKeyID = "alias/l" })},
		"Tier":        {"And the tier.", `{"tier":"Advanced"}`, "", []string{"tier"}, "2", has(func(m *metadata) { m.Tier = types.ParameterTierAdvanced })},
		"AWSChooses":  {"A tier that AWS chooses is right.", `{"tier":"Intelligent-Tiering"}`, "", nil, "1", has(none)},
		"Grows":       {"AWS chooses by size.", `{"tier":"Intelligent-Tiering"}`, strings.Repeat("w", 4097), nil, "2", has(func(m *metadata) { m.Tier = types.ParameterTierAdvanced })},
		"Pattern":     {"And the pattern.", `{"allowedPattern":"^v$"}`, "", []string{"allowedPattern"}, "2", has(func(m *metadata) { m.AllowedPattern = "^v$" })},
		"All":         {"A new value takes them along.", `{"description":"e","tags":{"new":""}}`, "w", []string{"description", "tags.new"}, "2", has(func(m *metadata) { m.Description = "e"; m.Tags["new"] = "" })},
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
				t.Errorf("%s\nIt holds %d bytes and drifts in %q", tc.reason, len(now.Data), now.Drift)
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
		"Type":  {"A type stays.", `{"type":"String"}`, `{"type":"SecureString"}`, "v", "v", provider.NewError(provider.Invalid, `parameter "/a": is of type String, and AWS does not change types; set metadata.type to that, delete the parameter, or push to another key`)},
		"Tier":  {"A tier does not go back.", `{"tier":"Advanced"}`, `{"tier":"Standard"}`, "v", "v", provider.NewError(provider.Invalid, `parameter "/a": is of the advanced tier, from which AWS does not go back; set metadata.tier to that, delete the parameter, or push to another key`)},
		"Grows": {"A value outgrows its tier.", `{}`, `{}`, "v", large, provider.NewError(provider.Invalid, `parameter "/a": the value has 4097 bytes, and AWS takes at most 4096 in the standard tier; set metadata.tier: Advanced`)},
		"Stays": {"A tier that is there counts.", `{"tier":"Advanced"}`, `{}`, "v", large, nil},
		"Moves": {"So does one that shall be.", `{}`, `{"tier":"Advanced"}`, "v", large, nil},
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
				t.Errorf("%s\nIt was written", tc.reason)
			}
		})
	}
}

// TestOthers writes a parameter that somebody else made: it keeps its type, and its ID goes by its value.
func TestOthers(t *testing.T) {
	var ticks atomic.Int64 // Two values may have been written within the millisecond that AWS tells.
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
		t.Errorf("What others made goes by the time of its value: %q, %q\n-want, +got:\n%s", seen.ID, w.ID, diff)
	}
	if got := settingsOf(t, c); got.Type != types.ParameterTypeString || len(got.Tags) > 0 {
		t.Errorf("What others made keeps its type, and gets no tags: %+v", got)
	}
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason string
		meddle func(*emulator.Server, map[string]string)
		want   error
		gone   bool
	}{
		"Ours":    {"What is as it was seen is deleted.", func(*emulator.Server, map[string]string) {}, nil, true},
		"Gone":    {"One that is gone is no error.", func(s *emulator.Server, _ map[string]string) { s.DeleteParameter("/a") }, nil, true},
		"Value":   {"One that somebody else wrote stays.", func(s *emulator.Server, _ map[string]string) { s.PutParameter("/a", "w") }, changed("/a"), false},
		"Another": {"Another with the same number stays.", func(s *emulator.Server, _ map[string]string) { s.DeleteParameter("/a"); s.PutParameter("/a", "v") }, changed("/a"), false},
		"Mark": {"So does one with the mark of another object.", func(s *emulator.Server, tags map[string]string) {
			s.DeleteParameter("/a")
			tags[awsconfig.MarkKey] = theirs
			s.PutParameter("/a", "v", emulator.ParameterTags(tags))
		}, changed("/a"), false},
		"Copy": {"So does a copy, which has another ID.", func(s *emulator.Server, tags map[string]string) {
			s.DeleteParameter("/a")
			tags[awsconfig.IDKey] = "x"
			s.PutParameter("/a", "v", emulator.ParameterTags(tags))
		}, changed("/a"), false},
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
			tc.meddle(srv, tags)
			if diff := gocmp.Diff(tc.want, c.Delete(t.Context(), targetOf(""), seen)); diff != "" {
				t.Errorf("%s\nDelete(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if _, err := c.Observe(t.Context(), targetOf("")); provider.IsNotFound(err) != tc.gone {
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
		"Put":      {"The permission that is missing is named.", "PutParameter", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:PutParameter in a policy`)},
		"Describe": {"So is the one without which the key might change.", "DescribeParameters", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:DescribeParameters in a policy`)},
		"Tag":      {"And the one for tags.", "AddTagsToResource", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `parameter "/a": access denied; allow ssm:AddTagsToResource in a policy`)},
		"TagGone":  {"A parameter that is gone has no tags.", "AddTagsToResource", emulator.Fault{Code: "InvalidResourceId"}, provider.NewError(provider.Conflict, `parameter "/a": does not exist`)},
		"Limit":    {"A quota is for a person to see to.", "PutParameter", emulator.Fault{Code: "ParameterLimitExceeded", Message: canary}, with("ParameterLimitExceeded")},
		"Versions": {"So is a label in the way.", "PutParameter", emulator.Fault{Code: "ParameterMaxVersionLimitExceeded", Message: canary}, with("ParameterMaxVersionLimitExceeded")},
		"Updates":  {"AWS asks for time.", "PutParameter", emulator.Fault{Code: "TooManyUpdates"}, with("TooManyUpdates")},
		"Key":      {"A key may be disabled.", "PutParameter", emulator.Fault{Code: "InvalidKeyId", Message: canary}, with("InvalidKeyId")},
		"Pattern":  {"A pattern may be none.", "PutParameter", emulator.Fault{Code: "InvalidAllowedPatternException", Message: canary}, with("InvalidAllowedPatternException")},
		"Unknown":  {"What nobody knows proves nothing.", "PutParameter", emulator.Fault{Code: "NewException", Message: canary}, provider.NewError(provider.Unavailable, `parameter "/a": AWS answers with the error NewException`)},
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
			tc.fault.Operation = tc.operation
			srv.Inject(tc.fault)
			_, err := c.Update(t.Context(), targetOf(metadata), seen, data)
			if diff := gocmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nUpdate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			srv.ClearFaults()
			if diff := gocmp.Diff(seen, observed(t, c, metadata), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nIt has changed: %s", tc.reason, diff)
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	awstest.CheckAccounts(t, "PutParameter", func(srv *emulator.Server) provider.Writer { return client(t, srv) })
}
