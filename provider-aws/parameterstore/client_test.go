package parameterstore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// canary is in every value of these tests, and must appear in no message.
const canary = "c4n4ry"

func TestGet(t *testing.T) {
	srv := awstest.Start(t)
	srv.PutParameter("/app/db", "old", emulator.Secure(), emulator.ParameterTags(map[string]string{"team": "shop"}))
	srv.LabelParameter("/app/db", "live")
	srv.PutParameter("/app/db", "new")
	srv.PutParameter("/app/hosts", "a,b,c", emulator.List())
	srv.PutParameter("plain", ` {"a": 1} `)
	const arn = "arn:aws:ssm:us-east-1:000000000000:parameter/app/db"

	cases := map[string]struct {
		reason string
		prefix string
		ref    provider.Ref
		want   provider.Value
	}{
		"Current":  {"Without a version the current one is read and decrypted.", "", provider.Ref{Key: "/app/db"}, provider.Value{Data: []byte("new"), Version: "2"}},
		"List":     {"A StringList is returned as the text that AWS stores.", "", provider.Ref{Key: "/app/hosts"}, provider.Value{Data: []byte("a,b,c"), Version: "1"}},
		"String":   {"Text is returned unchanged.", "", provider.Ref{Key: "plain"}, provider.Value{Data: []byte(` {"a": 1} `), Version: "1"}},
		"Number":   {"A version can be a number.", "", provider.Ref{Key: "/app/db", Version: "1"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"Label":    {"A version can be a label. The result has its number.", "", provider.Ref{Key: "/app/db", Version: "live"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"InKey":    {"A key can end in a version.", "", provider.Ref{Key: "/app/db:1"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"Tags":     {"The metadata are the tags, whatever the version.", "", provider.Ref{Key: "/app/db:live", Metadata: true}, provider.Value{Data: []byte("old"), Version: "1", Metadata: map[string]string{"team": "shop"}}},
		"NoTags":   {"No tags are empty metadata.", "", provider.Ref{Key: "plain", Metadata: true}, provider.Value{Data: []byte(` {"a": 1} `), Version: "1", Metadata: map[string]string{}}},
		"Prefix":   {"The prefix is added to names.", "/app/", provider.Ref{Key: "db"}, provider.Value{Data: []byte("new"), Version: "2"}},
		"ARN":      {"No prefix is added to an ARN.", "/app/", provider.Ref{Key: arn}, provider.Value{Data: []byte("new"), Version: "2"}},
		"ARNLabel": {"No prefix is added to an ARN with a version.", "/app/", provider.Ref{Key: arn, Version: "live", Metadata: true}, provider.Value{Data: []byte("old"), Version: "1", Metadata: map[string]string{"team": "shop"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Key = tc.ref.Key
			got, err := client(t, srv, awstest.WithPrefix(tc.prefix)).Get(t.Context(), tc.ref)
			if err != nil {
				t.Fatalf("%s\nGet(...): %s", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	of := func(class provider.Class, message string) *provider.Error {
		return provider.NewError(class, "%s", message)
	}
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		want   *provider.Error
	}{
		"NotFound":   {"ParameterNotFound is NotFound.", emulator.Fault{Code: "ParameterNotFound", Message: canary}, of(provider.NotFound, `parameter "/a": does not exist in region us-east-1; create it, correct the key, or use find.path for the parameters below it`)},
		"NoVersion":  {"ParameterVersionNotFound is NotFound.", emulator.Fault{Code: "ParameterVersionNotFound", Message: canary}, of(provider.NotFound, `parameter "/a": does not have this version or label in region us-east-1`)},
		"KMS":        {"The error of a disabled KMS key names KMS.", emulator.Fault{Code: "InvalidKeyId", Message: canary}, of(provider.Denied, `parameter "/a": `+awsconfig.CannotDecrypt)},
		"KMSDenied":  {"The error of a denied KMS key names KMS.", emulator.Fault{Code: "AccessDeniedException", Message: "(Service: AWSKMS)"}, of(provider.Denied, `parameter "/a": the caller is not allowed to use the KMS key of the secret; allow kms:Decrypt in a policy and in the key policy`)},
		"Denied":     {"The error names the user and the denied action.", emulator.Fault{Code: "AccessDeniedException", Message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform: ssm:GetParameter on resource: x"}, of(provider.Denied, `parameter "/a": arn:aws:iam::000000000000:user/test is not allowed to perform ssm:GetParameter; allow it in a policy`)},
		"Throttled":  {"Too many calls are Throttled.", emulator.Throttled(), of(provider.Throttled, `parameter "/a": AWS throttles the calls; retrying with back-off`)},
		"Invalid":    {"A rejected request is Invalid.", emulator.Fault{Code: "ValidationException", Message: canary}, of(provider.Invalid, `parameter "/a": AWS rejects the request as invalid; check the spec`)},
		"Internal":   {"An internal error of AWS is Unavailable.", emulator.Fault{Code: "InternalServerError", Message: canary}, of(provider.Unavailable, `parameter "/a": AWS has an internal error`)},
		"NotInTable": {"An unknown error code is Unavailable.", emulator.Fault{Code: "ParameterGone", Message: canary}, of(provider.Unavailable, `parameter "/a": AWS returned the error ParameterGone`)},
		"Proxy":      {"A 404 of a proxy is not NotFound.", emulator.Fault{Status: 404}, of(provider.Unavailable, `parameter "/a": AWS returned status 404`)},
		"Truncated":  {"A truncated answer is Unavailable.", emulator.Fault{Body: emulator.BodyTruncated}, of(provider.Unavailable, `parameter "/a": the response of AWS is incomplete or damaged`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			srv.PutParameter("/a", strings.Repeat(canary, 100))
			srv.Inject(tc.fault)
			_, err := client(t, srv).Get(t.Context(), provider.Ref{Key: "/a"})
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nGet(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
	for code, m := range codes {
		if m.Class == "" || m.Text == "" {
			t.Errorf("%s: class %q, text %q", code, m.Class, m.Text)
		}
	}
}

func TestMetadataFails(t *testing.T) {
	srv := awstest.Start(t, deny("ssm:ListTagsForResource", ""))
	srv.PutParameter("/a", "v")
	srv.PutParameter("/b", "v")
	c := client(t, srv)
	_, err := c.Get(t.Context(), provider.Ref{Key: "/a", Metadata: true})
	want := provider.NewError(provider.Denied, `metadata of parameter "/a": arn:aws:iam::000000000000:user/test is not allowed to perform ssm:ListTagsForResource; allow it in a policy`)
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("Tags that cannot be read are not an empty result.\nGet(...): -want error, +got error:\n%s", diff)
	}
	got := c.GetBatch(t.Context(), []provider.Ref{{Key: "/a", Metadata: true}, {Key: "/b"}})
	if diff := cmp.Diff([]string{"Denied", "/b=v"}, awstest.Outcomes(got)); diff != "" {
		t.Errorf("Invalid keys must not fail the other keys of a batch.\nGetBatch(...): -want, +got:\n%s", diff)
	}
}

// TestPrefixIsShown names the parameter as AWS knows it, so that a second slash is seen.
func TestPrefixIsShown(t *testing.T) {
	srv := awstest.Start(t)
	_, err := client(t, srv, awstest.WithPrefix("/ns/")).Get(t.Context(), provider.Ref{Key: "/json"})
	var want error = provider.NewError(provider.NotFound, `parameter "/json" ("/ns//json"): does not exist in region us-east-1; create it, correct the key, or use find.path for the parameters below it`)
	if diff := cmp.Diff(want, err); diff != "" {
		t.Errorf("Get(): -want, +got:\n%s", diff)
	}
}

func TestBadKeys(t *testing.T) {
	srv := awstest.Start(t)
	srv.PutParameter("/app/a", canary)
	srv.PutParameter("/other", canary)
	c := client(t, srv, awstest.WithPrefix("/app/"))
	for reason, ref := range map[string]provider.Ref{
		"An empty key is rejected, because it would read the prefix.":                             {},
		"A key that is too long is rejected, because AWS would reject the whole batch.":           {Key: strings.Repeat("k", awsconfig.MaxID)},
		"A key with spaces is rejected: AWS ignores them, so one parameter would have many keys.": {Key: " a"},
		"A key with a line break is rejected.":                                                    {Key: "a\n"},
		"A key with letters outside ASCII is rejected.":                                           {Key: "а"},
		"A version in the key and in the ref is rejected.":                                        {Key: "a:1", Version: "1"},
		"Two versions in the key are rejected.":                                                   {Key: "a:1:2"},
		"A key that ends in a colon is rejected.":                                                 {Key: "a:"},
		"A key with only a version is rejected.":                                                  {Key: "a", Version: "1/../../other"},
		"A version that contains another version is rejected.":                                    {Key: "a", Version: "1:2"},
		"An ARN in upper case is rejected.":                                                       {Key: "ARN:aws:ssm:us-east-1:000000000000:parameter/other"},
		"The ARN of another service is rejected.":                                                 {Key: "arn:aws:secretsmanager:us-east-1:000000000000:secret:other"},
		"The ARN of another resource is rejected.":                                                {Key: "arn:aws:ssm:us-east-1:000000000000:document/other"},
		"An ARN without a name is rejected.":                                                      {Key: "arn:aws:ssm:us-east-1:000000000000:parameter/"},
		"An incomplete ARN is rejected.":                                                          {Key: "arn:aws:ssm"},
	} {
		_, err := c.Get(t.Context(), ref)
		if provider.ClassOf(err) != provider.Invalid || strings.Contains(err.Error(), canary) {
			t.Errorf("%s\nGet(%+v): %v", reason, ref, err)
		}
		for _, r := range c.GetBatch(t.Context(), []provider.Ref{ref, ref}) {
			if diff := cmp.Diff(err, r.Err); diff != "" {
				t.Errorf("%s\nGetBatch(...): -single, +batch:\n%s", reason, diff)
			}
		}
	}
	if n := srv.Count(); n != 0 {
		t.Errorf("an invalid key must not cause a call: %d calls", n)
	}
	// A key in the form of a name stays behind the prefix, because AWS does not resolve paths.
	for _, key := range []string{"../other", "/other", "..", "A", "a/"} {
		if _, err := c.Get(t.Context(), provider.Ref{Key: key}); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("Get(%q): error %v", key, err)
		}
	}
}

// FuzzID looks for keys that read another parameter than they name.
func FuzzID(f *testing.F) {
	for _, s := range []string{"a", "/a/b", "a:1", "arn:aws:ssm:us-east-1:000000000000:parameter/a:1", "a:b:c", "", ":"} {
		f.Add(s, "")
		f.Add(s, "1")
	}
	c := &Client{config: &awsconfig.Config{Prefix: "/app/"}}
	f.Fuzz(func(t *testing.T, key, version string) {
		id, err := c.id(provider.Ref{Key: key, Version: version})
		if err != nil {
			if provider.ClassOf(err) != provider.Invalid {
				t.Errorf("id(%q, %q): class %s", key, version, provider.ClassOf(err))
			}
			return
		}
		want := key
		if !awsconfig.IsARN(key) {
			want = "/app/" + key
		}
		if version != "" {
			want += ":" + version
		}
		if id != want {
			t.Errorf("id(%q, %q): got %q, want %q", key, version, id, want)
		}
		if strings.ContainsAny(id, " \t\r\n") || strings.Count(id, ":") > 6 {
			t.Errorf("id(%q, %q): %q is not a valid id", key, version, id)
		}
	})
}

func TestCheck(t *testing.T) {
	awstest.RunCheck(t, func(t testing.TB, srv *emulator.Server, opts ...awstest.Option) provider.Checker {
		return client(t, srv, opts...)
	})
}
