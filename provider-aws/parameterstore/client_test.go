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

// canary is in every value of these tests, and must be in no message.
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
		"Current":  {"No version is the current one, decrypted.", "", provider.Ref{Key: "/app/db"}, provider.Value{Data: []byte("new"), Version: "2"}},
		"List":     {"A list is the text that AWS has.", "", provider.Ref{Key: "/app/hosts"}, provider.Value{Data: []byte("a,b,c"), Version: "1"}},
		"String":   {"Text stays as it is.", "", provider.Ref{Key: "plain"}, provider.Value{Data: []byte(` {"a": 1} `), Version: "1"}},
		"Number":   {"A number is a version.", "", provider.Ref{Key: "/app/db", Version: "1"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"Label":    {"A label is a version; what was read is its number.", "", provider.Ref{Key: "/app/db", Version: "live"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"InKey":    {"A key may end in a version.", "", provider.Ref{Key: "/app/db:1"}, provider.Value{Data: []byte("old"), Version: "1"}},
		"Tags":     {"Tags are the metadata, whatever the version.", "", provider.Ref{Key: "/app/db:live", Metadata: true}, provider.Value{Data: []byte("old"), Version: "1", Metadata: map[string]string{"team": "shop"}}},
		"NoTags":   {"No tags are empty metadata.", "", provider.Ref{Key: "plain", Metadata: true}, provider.Value{Data: []byte(` {"a": 1} `), Version: "1", Metadata: map[string]string{}}},
		"Prefix":   {"A prefix is put before names.", "/app/", provider.Ref{Key: "db"}, provider.Value{Data: []byte("new"), Version: "2"}},
		"ARN":      {"An ARN is complete.", "/app/", provider.Ref{Key: arn}, provider.Value{Data: []byte("new"), Version: "2"}},
		"ARNLabel": {"So it is with a version.", "/app/", provider.Ref{Key: arn, Version: "live", Metadata: true}, provider.Value{Data: []byte("old"), Version: "1", Metadata: map[string]string{"team": "shop"}}},
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
		"NotFound":   {"Only this says that a parameter is not there.", emulator.Fault{Code: "ParameterNotFound", Message: canary}, of(provider.NotFound, `parameter "/a": does not exist`)},
		"NoVersion":  {"And this that a version is not.", emulator.Fault{Code: "ParameterVersionNotFound", Message: canary}, of(provider.NotFound, `parameter "/a": does not have this version or label`)},
		"KMS":        {"KMS is named: the policy of the parameter is not at fault.", emulator.Fault{Code: "InvalidKeyId", Message: canary}, of(provider.Denied, `parameter "/a": `+awsconfig.CannotDecrypt)},
		"KMSDenied":  {"So it is where the key may not be used.", emulator.Fault{Code: "AccessDeniedException", Message: "(Service: AWSKMS)"}, of(provider.Denied, `parameter "/a": the KMS key of the secret may not be used; allow kms:Decrypt in a policy and in the key's`)},
		"Denied":     {"Who may not do what is told.", emulator.Fault{Code: "AccessDeniedException", Message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform: ssm:GetParameter on resource: x"}, of(provider.Denied, `parameter "/a": arn:aws:iam::000000000000:user/test may not ssm:GetParameter; allow it in a policy`)},
		"Throttled":  {"Too many calls.", emulator.Throttled(), of(provider.Throttled, `parameter "/a": AWS asks for fewer calls`)},
		"Invalid":    {"A bad name is for a person to mend.", emulator.Fault{Code: "ValidationException", Message: canary}, of(provider.Invalid, `parameter "/a": AWS rejects the request as not valid`)},
		"Internal":   {"A failure of the service proves nothing.", emulator.Fault{Code: "InternalServerError", Message: canary}, of(provider.Unavailable, `parameter "/a": AWS has an internal error`)},
		"NotInTable": {"Neither does a code that nobody knows.", emulator.Fault{Code: "ParameterGone", Message: canary}, of(provider.Unavailable, `parameter "/a": AWS answers with the error ParameterGone`)},
		"Proxy":      {"A proxy's 404 is no missing parameter.", emulator.Fault{Status: 404}, of(provider.Unavailable, `parameter "/a": AWS answers with status 404`)},
		"Truncated":  {"Half an answer is none.", emulator.Fault{Body: emulator.BodyTruncated}, of(provider.Unavailable, `parameter "/a": the answer of AWS is cut off or damaged`)},
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
	want := provider.NewError(provider.Denied, `metadata of parameter "/a": arn:aws:iam::000000000000:user/test may not ssm:ListTagsForResource; allow it in a policy`)
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("Tags that may not be read are not taken for none.\nGet(...): -want error, +got error:\n%s", diff)
	}
	got := c.GetBatch(t.Context(), []provider.Ref{{Key: "/a", Metadata: true}, {Key: "/b"}})
	if diff := cmp.Diff([]string{"Denied", "/b=v"}, awstest.Outcomes(got)); diff != "" {
		t.Errorf("Nor do they spoil a batch.\nGetBatch(...): -want, +got:\n%s", diff)
	}
}

func TestBadKeys(t *testing.T) {
	srv := awstest.Start(t)
	srv.PutParameter("/app/a", canary)
	srv.PutParameter("/other", canary)
	c := client(t, srv, awstest.WithPrefix("/app/"))
	for reason, ref := range map[string]provider.Ref{
		"An empty key would read the prefix.":                      {},
		"AWS would reject the whole batch for it.":                 {Key: strings.Repeat("k", awsconfig.MaxID)},
		"AWS ignores spaces, so that a key would have many names.": {Key: " a"},
		"A line break is a space, too.":                            {Key: "a\n"},
		"Letters that look alike are others.":                      {Key: "а"},
		"Which of two versions would win?":                         {Key: "a:1", Version: "1"},
		"Nor do two versions in a key say which.":                  {Key: "a:1:2"},
		"A colon ends in a version.":                               {Key: "a:"},
		"A version is no name.":                                    {Key: "a", Version: "1/../../other"},
		"Nor a second version.":                                    {Key: "a", Version: "1:2"},
		"An ARN begins in lower case, and else is no name.":        {Key: "ARN:aws:ssm:us-east-1:000000000000:parameter/other"},
		"An ARN of another service is none of a parameter.":        {Key: "arn:aws:secretsmanager:us-east-1:000000000000:secret:other"},
		"Neither is one of another resource.":                      {Key: "arn:aws:ssm:us-east-1:000000000000:document/other"},
		"An ARN has a name.":                                       {Key: "arn:aws:ssm:us-east-1:000000000000:parameter/"},
		"An ARN that was cut is none.":                             {Key: "arn:aws:ssm"},
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
	if n := srv.Calls(""); n != 0 {
		t.Errorf("A key that cannot be is not asked for: %d calls", n)
	}
	// What has the form of a name stays behind the prefix, for AWS does not resolve it.
	for _, key := range []string{"../other", "/other", "..", "A", "a/"} {
		if _, err := c.Get(t.Context(), provider.Ref{Key: key}); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("Get(%q): error %v", key, err)
		}
	}
}

// FuzzID looks for keys that read something else than they say.
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
			t.Errorf("id(%q, %q): %q is no id", key, version, id)
		}
	})
}

func TestCheck(t *testing.T) {
	awstest.RunCheck(t, func(t testing.TB, srv *emulator.Server, opts ...awstest.Option) provider.Checker {
		return client(t, srv, opts...)
	})
}
