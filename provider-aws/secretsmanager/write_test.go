package secretsmanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	ours   = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"
	theirs = "7d4d5f5c-2f57-4ad4-8a4e-15b3a9a1c2d3"
)

var target = provider.Target{Key: "a"}

// observed is what a client sees of secret "a", which must exist.
func observed(t *testing.T, c *Client) provider.Observed {
	t.Helper()
	o, err := c.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func described(t *testing.T, c *Client) *secretsmanager.DescribeSecretOutput {
	t.Helper()
	d, err := sdk(c.config).DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: aws.String(c.config.ID("a"))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// labels of the versions of secret "a" by their values, without versions that have none.
func labels(t *testing.T, c *Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for id, stages := range described(t, c).VersionIdsToStages {
		v, err := c.Get(t.Context(), provider.Ref{Key: "a", Version: versionName(id)})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(stages)
		all[string(v.Data)] = strings.Join(stages, "+")
	}
	return all
}

func TestWriteRefused(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	create := func(key string, data []byte, metadata string) error {
		_, err := c.Create(t.Context(), provider.Target{Key: key, Metadata: []byte(metadata)}, data, ours)
		return err
	}
	many := `{"tags":{"0":""`
	for i := 1; i < 49; i++ {
		many += fmt.Sprintf(`,"%d":""`, i)
	}
	cases := map[string]struct {
		reason, key string
		data        []byte
		metadata    string
		want        string
	}{
		"Empty":     {"AWS has no empty value.", "a", nil, "{}", `secret "a": the value is empty, and AWS takes no such value`},
		"Large":     {"AWS has a limit.", "a", make([]byte, maxValue+1), "{}", `secret "a": the value has 65537 bytes, and AWS takes at most 65536`},
		"ARN":       {"AWS makes ARNs.", "arn:aws:secretsmanager:us-east-1:000000000000:secret:a-abcdef", []byte("v"), "{}", `secret "arn:aws:secretsmanager:us-east-1:000000000000:secret:a-abcdef": does not exist, and AWS gives a new secret its ARN; push to a name`},
		"Key":       {"A key that cannot be is not tried.", "", []byte("v"), "{}", "a key of 0 characters is none that AWS can have"},
		"Unknown":   {"A field that nobody reads is a mistake.", "a", []byte("v"), `{"kmsKeyId":"x"}`, `metadata: unknown field "kmsKeyId"; it takes description, kmsKeyID and tags`},
		"Twice":     {"So is one that is there twice.", "a", []byte("v"), `{"description":"x","description":"y"}`, `metadata: duplicate field "description"; it takes description, kmsKeyID and tags`},
		"Type":      {"Values have types.", "a", []byte("v"), `{"description":1}`, `metadata: cannot unmarshal number into Go struct field Metadata.description of type string; it takes description, kmsKeyID and tags`},
		"TagAWS":    {"Some tags belong to AWS.", "a", []byte("v"), `{"tags":{"AWS:x":"y"}}`, `metadata.tags: AWS keeps keys such as "AWS:x" to itself; use another one`},
		"TagMark":   {"Nobody else makes a mark.", "a", []byte("v"), `{"tags":{"direct-secrets.io/created-by":"me"}}`, `metadata.tags: keys such as "direct-secrets.io/created-by" say which object created the secret, and are set by themselves; remove it`},
		"TagEmpty":  {"A tag has a key.", "a", []byte("v"), `{"tags":{"":"y"}}`, `metadata.tags: a key is empty; name the tag`},
		"TagsMany":  {"There is a limit.", "a", []byte("v"), many + `}}`, `metadata.tags: 49 tags, and at most 48 are taken; remove some`},
		"NotObject": {"It is an object.", "a", []byte("v"), `[]`, `metadata: cannot unmarshal array into Go value of type awsconfig.Metadata; it takes description, kmsKeyID and tags`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(tc.key, tc.data, tc.metadata)
			if diff := cmp.Diff(error(provider.NewError(provider.Invalid, "%s", tc.want)), err); diff != "" {
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
	c := client(t, srv, awstest.WithPrefix("shop/"))
	if _, err := c.Create(t.Context(), target, []byte("v"), ours); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), target, observed(t, c), []byte("w")); err != nil {
		t.Fatal(err)
	}
	if got, _ := srv.Get("shop/a"); string(got) != "w" {
		t.Errorf("A prefix is put before keys that are written: %q", got)
	}
	if err := c.Delete(t.Context(), target, observed(t, c)); err != nil {
		t.Fatal(err)
	}
	if _, ok := srv.Get("shop/a"); ok {
		t.Error("A prefix is put before keys that are deleted")
	}
}

func TestCreateScheduled(t *testing.T) {
	cases := map[string]struct {
		reason string
		mark   string
		want   error
		labels map[string]string
	}{
		"Ours":   {"What this object made and deleted is taken back.", ours, nil, map[string]string{"new": "AWSCURRENT", "old": "AWSPREVIOUS"}},
		"Theirs": {"What another made is for a person to decide.", theirs, provider.NewError(provider.Invalid, `secret "a": is scheduled for deletion, and another made it; restore it, delete it for good, or push to another key`), nil},
		"Nobody": {"So is what no object made.", "", provider.NewError(provider.Invalid, `secret "a": is scheduled for deletion, and another made it; restore it, delete it for good, or push to another key`), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			var tags map[string]string
			if tc.mark != "" {
				tags = map[string]string{awsconfig.MarkKey: tc.mark}
			}
			srv.Put("a", []byte("old"), emulator.Tags(tags))
			if err := c.Delete(t.Context(), target, observed(t, c)); err != nil {
				t.Fatal(err)
			}
			w, err := c.Create(t.Context(), target, []byte("new"), ours)
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Fatalf("%s\nCreate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				if described(t, c).DeletedDate == nil {
					t.Errorf("%s\nIt was restored", tc.reason)
				}
				return
			}
			if diff := cmp.Diff(tc.labels, labels(t, c)); diff != "" {
				t.Errorf("%s\nlabels: -want, +got:\n%s", tc.reason, diff)
			}
			want := provider.Observed{Data: []byte("new"), Version: w.Version, ID: w.ID, Mark: ours}
			if diff := cmp.Diff(want, observed(t, c)); diff != "" {
				t.Errorf("%s\nObserve(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// between runs f right before the client puts a value, when it has looked at the secret already.
func between(c *Client, f func()) {
	c.api = putting{api: c.api, before: f}
}

// putting is an api that does something before it puts a value.
type putting struct {
	api
	before func()
}

func (p putting) PutSecretValue(ctx context.Context, in *secretsmanager.PutSecretValueInput, o ...func(*secretsmanager.Options)) (*secretsmanager.PutSecretValueOutput, error) {
	p.before()
	return p.api.PutSecretValue(ctx, in, o...)
}

func TestUpdateLabels(t *testing.T) {
	cases := map[string]struct {
		reason  string
		between func(*emulator.Server)
		class   provider.Class
		want    map[string]string
	}{
		"Alone":   {"The label of AWS for the version before follows, and ours goes.", func(*emulator.Server) {}, "", map[string]string{"b": "AWSCURRENT", "a": "AWSPREVIOUS"}},
		"Moved":   {"What somebody else writes meanwhile stays current.", func(s *emulator.Server) { s.Put("a", []byte("theirs")) }, provider.Conflict, map[string]string{"theirs": "AWSCURRENT", "a": "AWSPREVIOUS"}},
		"Deleted": {"A secret that is deleted meanwhile is not brought back.", func(s *emulator.Server) { s.Delete("a") }, provider.Conflict, nil},
		"Another": {"Nor is another of the same name written.", func(s *emulator.Server) { s.Delete("a"); s.Put("a", []byte("theirs")) }, provider.Conflict, map[string]string{"theirs": "AWSCURRENT"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			if _, err := c.Create(t.Context(), target, []byte("a"), ours); err != nil {
				t.Fatal(err)
			}
			seen := observed(t, c)
			between(c, func() { tc.between(srv) })
			_, err := c.Update(t.Context(), target, seen, []byte("b"))
			if err != nil && provider.ClassOf(err) != tc.class || err == nil && tc.class != "" {
				t.Errorf("%s\nUpdate(...): class %q, want %q: %v", tc.reason, provider.ClassOf(err), tc.class, err)
			}
			if tc.want == nil {
				if _, err := c.Observe(t.Context(), target); !provider.IsNotFound(err) {
					t.Errorf("%s\nObserve(...): %v", tc.reason, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, labels(t, c)); diff != "" {
				t.Errorf("%s\nlabels: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConflictsMakeNoVersions counts the versions that updates of what was seen long ago leave behind: AWS
// keeps each for a day, and has a limit.
func TestConflictsMakeNoVersions(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	srv.Put("a", []byte("one"))
	seen := observed(t, c)
	srv.Put("a", []byte("two"))
	for range 3 {
		if _, err := c.Update(t.Context(), target, seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict {
			t.Errorf("Update(...): %v, want a conflict", err)
		}
	}
	out, err := sdk(c.config).ListSecretVersionIds(t.Context(), &secretsmanager.ListSecretVersionIdsInput{SecretId: aws.String("a"), IncludeDeprecated: aws.Bool(true)})
	if err != nil || len(out.Versions) != 2 {
		t.Errorf("%d versions, want 2: %v", len(out.Versions), err)
	}
}

// TestLostAnswers has AWS carry calls out whose answers are lost, so that the SDK makes them again.
func TestLostAnswers(t *testing.T) {
	for _, operation := range []string{"CreateSecret", "PutSecretValue", "UpdateSecretVersionStage", "DeleteSecret"} {
		t.Run(operation, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			srv.Inject(emulator.Fault{Operation: operation, Times: 1, Body: emulator.BodyNone})
			if _, err := c.Create(t.Context(), target, []byte("a"), ours); err != nil {
				t.Fatalf("Create(...): %v", err)
			}
			w, err := c.Update(t.Context(), target, observed(t, c), []byte("b"))
			if err != nil || w.Version != observed(t, c).Version {
				t.Fatalf("Update(...): %+v, %v", w, err)
			}
			if diff := cmp.Diff(map[string]string{"b": "AWSCURRENT", "a": "AWSPREVIOUS"}, labels(t, c)); diff != "" {
				t.Errorf("A call that is made twice makes one version.\nlabels: -want, +got:\n%s", diff)
			}
			if err := c.Delete(t.Context(), target, observed(t, c)); err != nil {
				t.Errorf("Delete(...): %v", err)
			}
		})
	}
}

func TestWithoutValue(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	in := &secretsmanager.CreateSecretInput{Name: aws.String("a"), Tags: tagList(map[string]string{awsconfig.MarkKey: ours})}
	out, err := sdk(c.config).CreateSecret(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	seen := observed(t, c)
	if diff := cmp.Diff(provider.Observed{ID: *out.ARN, Mark: ours}, seen); diff != "" {
		t.Errorf("A secret without a value has its mark nonetheless.\nObserve(...): -want, +got:\n%s", diff)
	}
	between(c, func() { srv.Put("a", []byte("theirs")) })
	if _, err := c.Update(t.Context(), target, seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("Whoever writes the first value has it: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "AWSCURRENT"}, labels(t, c)); diff != "" {
		t.Errorf("Whoever writes the first value has it: -want, +got:\n%s", diff)
	}

	srv.Delete("a")
	c = client(t, srv)
	if _, err := sdk(c.config).CreateSecret(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), target, observed(t, c), []byte("ours")); err != nil {
		t.Errorf("A secret without a value gets one: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"ours": "AWSCURRENT"}, labels(t, c)); diff != "" {
		t.Errorf("A secret without a value gets one: -want, +got:\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	const arn = "arn:aws:kms:us-east-1:000000000000:"
	cases := map[string]struct {
		reason   string
		metadata string
		drift    []string
		want     awsconfig.Metadata
		calls    map[string]int
	}{
		"None":        {"What is not named is left alone.", `{}`, nil, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, nil},
		"Same":        {"What is as it should be costs no call.", `{"description":"d","kmsKeyID":"` + arn + `alias/k","tags":{"team":"shop"}}`, nil, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, nil},
		"Description": {"One setting is one setting.", `{"description":"e"}`, []string{"description"}, awsconfig.Metadata{Description: "e", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, map[string]int{"UpdateSecret": 1}},
		"Key":         {"The key changes without a new value.", `{"kmsKeyID":"alias/other"}`, []string{"kmsKeyID"}, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/other", Tags: map[string]string{"team": "shop", "stage": "live"}}, map[string]int{"UpdateSecret": 1}},
		"Tags":        {"Tags that are not named stay.", `{"tags":{"team":"pay","new":""}}`, []string{"tags.new", "tags.team"}, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "pay", "stage": "live", "new": ""}}, map[string]int{"TagResource": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			before := provider.Target{Key: "a", Metadata: []byte(`{"description":"d","kmsKeyID":"alias/k","tags":{"team":"shop","stage":"live"}}`)}
			if _, err := c.Create(t.Context(), before, []byte("v"), ours); err != nil {
				t.Fatal(err)
			}
			target := provider.Target{Key: "a", Metadata: []byte(tc.metadata)}
			o, err := c.Observe(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.drift, o.Drift); diff != "" {
				t.Errorf("%s\nDrift: -want, +got:\n%s", tc.reason, diff)
			}
			srv.Reset()
			w, err := c.Update(t.Context(), target, o, nil)
			if err != nil || w.Version != o.Version || w.ID != o.ID {
				t.Errorf("%s\nUpdate(...): %+v, %v", tc.reason, w, err)
			}
			if diff := cmp.Diff(tc.calls, srv.CallCounts(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			tc.want.Tags[awsconfig.MarkKey] = ours
			if diff := cmp.Diff(tc.want, settingsOf(described(t, c))); diff != "" {
				t.Errorf("%s\nsettings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// marksTheirs changes the mark of secret "a", and nothing else.
func marksTheirs(t *testing.T, c *Client, _ *emulator.Server) {
	in := &secretsmanager.TagResourceInput{SecretId: aws.String("a"), Tags: tagList(map[string]string{awsconfig.MarkKey: theirs})}
	if _, err := sdk(c.config).TagResource(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// another makes secret "a" anew, with the same value, mark and version.
func another(t *testing.T, c *Client, s *emulator.Server) {
	id, _ := version(observed(t, c).Version)
	s.Delete("a")
	in := &secretsmanager.CreateSecretInput{Name: aws.String("a"), SecretString: aws.String("v"), ClientRequestToken: id, Tags: tagList(map[string]string{awsconfig.MarkKey: ours})}
	if _, err := sdk(c.config).CreateSecret(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func TestDelete(t *testing.T) {
	seven := v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 7}
	force := v1alpha1.AWSSecretsManagerDeletion{ForceDeleteWithoutRecovery: true}
	cases := map[string]struct {
		reason   string
		deletion *v1alpha1.AWSSecretsManagerDeletion
		meddle   func(*testing.T, *Client, *emulator.Server)
		want     error
		days     int
	}{
		"Default":  {"AWS keeps it for thirty days.", nil, nil, nil, 30},
		"Window":   {"A store may say how long.", &seven, nil, nil, 7},
		"Force":    {"Or that it is gone at once.", &force, nil, nil, 0},
		"Gone":     {"One that is gone is no error.", nil, func(_ *testing.T, _ *Client, s *emulator.Server) { s.Delete("a") }, nil, 0},
		"Mark":     {"One whose mark was taken over stays.", nil, marksTheirs, changed("a"), -1},
		"Another":  {"Another of the same name stays.", nil, another, changed("a"), -1},
		"NewValue": {"One that somebody else wrote stays.", nil, func(_ *testing.T, _ *Client, s *emulator.Server) { s.Put("a", []byte("w")) }, changed("a"), -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			s := &v1alpha1.AWSSecretsManager{Spec: v1alpha1.AWSSecretsManagerSpec{SecretsManager: tc.deletion}}
			connected, err := awstest.Connect(t, s, Connect, srv.URL())
			if err != nil {
				t.Fatal(err)
			}
			c := connected.(*Client)
			if _, err := c.Create(t.Context(), target, []byte("v"), ours); err != nil {
				t.Fatal(err)
			}
			seen := observed(t, c)
			if tc.meddle != nil {
				tc.meddle(t, c, srv)
			}
			if diff := cmp.Diff(tc.want, c.Delete(t.Context(), target, seen)); diff != "" {
				t.Errorf("%s\nDelete(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			d, err := sdk(c.config).DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: aws.String("a")})
			switch {
			case tc.days == 0:
				if err == nil {
					t.Errorf("%s\nIt is still there", tc.reason)
				}
			case err != nil:
				t.Errorf("%s\nDescribeSecret: %v", tc.reason, err)
			case tc.days < 0:
				if d.DeletedDate != nil {
					t.Errorf("%s\nIt is scheduled for deletion", tc.reason)
				}
			case d.DeletedDate == nil || int(d.DeletedDate.Sub(*d.CreatedDate).Hours()+1)/24 != tc.days:
				t.Errorf("%s\nIt goes at %v, %d days after %v are right", tc.reason, d.DeletedDate, tc.days, d.CreatedDate)
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	cases := map[string]struct {
		reason    string
		operation string
		fault     emulator.Fault
		want      *provider.Error
	}{
		"Create":    {"The permission that is missing is named.", "CreateSecret", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `secret "new": access denied; allow secretsmanager:CreateSecret in a policy`)},
		"Tags":      {"By AWS, where it says so.", "CreateSecret", emulator.Fault{Code: "AccessDeniedException", Message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform: secretsmanager:TagResource on resource: new"}, provider.NewError(provider.Denied, `secret "new": arn:aws:iam::000000000000:user/test may not secretsmanager:TagResource; allow it in a policy`)},
		"KMS":       {"KMS is named, too.", "PutSecretValue", emulator.Fault{Code: "AccessDeniedException", Message: "Access to KMS is not allowed"}, provider.NewError(provider.Denied, `secret "a": the KMS key of the secret may not be used; allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in a policy and in the key's`)},
		"Encrypt":   {"So it is where the key is disabled.", "PutSecretValue", emulator.Fault{Code: "EncryptionFailure", Message: canary}, provider.NewError(provider.Denied, `secret "a": %s`, awsconfig.CannotEncrypt)},
		"Limit":     {"A quota is for a person to see to.", "PutSecretValue", emulator.Fault{Code: "LimitExceededException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": %s`, codes["LimitExceededException"].Text)},
		"Stage":     {"Every action has a name.", "UpdateSecretVersionStage", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `secret "a": access denied; allow secretsmanager:UpdateSecretVersionStage in a policy`)},
		"Parameter": {"What AWS refuses is no conflict where nobody wrote.", "UpdateSecretVersionStage", emulator.Fault{Code: "InvalidParameterException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request as not valid`)},
		"Throttled": {"Too many calls.", "PutSecretValue", emulator.Throttled(), provider.NewError(provider.Throttled, `secret "a": AWS asks for fewer calls`)},
		"Policy":    {"A policy of the secret.", "PutSecretValue", emulator.Fault{Code: "MalformedPolicyDocumentException"}, provider.NewError(provider.Invalid, `secret "a": %s`, awsconfig.BadPolicy)},
		"Unknown":   {"What nobody knows proves nothing.", "CreateSecret", emulator.Fault{Code: "NewException", Message: canary}, provider.NewError(provider.Unavailable, `secret "new": AWS answers with the error NewException`)},
		"Missing":   {"A name that AWS neither has nor gives is not missing.", "CreateSecret", emulator.Fault{Code: "ResourceNotFoundException"}, provider.NewError(provider.Unavailable, `secret "new": AWS does not create it, and has none of that name; it may still be deleting one, or not find metadata.kmsKeyID`)},
		"Replicas":  {"The state of a secret is for a person to see to.", "DeleteSecret", emulator.Fault{Code: "InvalidRequestException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request in the secret's present state`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			srv.Put("a", []byte("v"))
			seen := observed(t, c)
			tc.fault.Operation = tc.operation
			srv.Inject(tc.fault)
			var err error
			switch tc.operation {
			case "CreateSecret":
				_, err = c.Create(t.Context(), provider.Target{Key: "new"}, []byte(canary), ours)
			case "DeleteSecret":
				err = c.Delete(t.Context(), target, seen)
			default:
				_, err = c.Update(t.Context(), target, seen, []byte(canary))
			}
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			srv.ClearFaults()
			if got := observed(t, c); string(got.Data) != "v" {
				t.Errorf("%s\nThe value has changed: %q", tc.reason, got.Data)
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	awstest.CheckAccounts(t, "PutSecretValue", func(srv *emulator.Server) provider.Writer { return client(t, srv) })
}
