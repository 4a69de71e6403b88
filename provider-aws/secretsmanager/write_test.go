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
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
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

// observed returns the result of Observe for secret "a", which must exist.
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

// labels returns the labels of the versions of secret "a" by value, without versions that have no label.
func labels(t *testing.T, c *Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for id, stages := range described(t, c).VersionIdsToStages {
		v, err := c.Get(t.Context(), provider.Ref{Key: "a", Version: VersionName(id)})
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
		"Empty":     {"An empty value is rejected.", "a", nil, "{}", `secret "a": the value is empty, which AWS does not allow`},
		"Large":     {"A value that is too large is rejected.", "a", make([]byte, maxValue+1), "{}", `secret "a": the value has 65537 bytes, and AWS allows at most 65536`},
		"ARN":       {"An ARN cannot be created.", "arn:aws:secretsmanager:us-east-1:000000000000:secret:a-abcdef", []byte("v"), "{}", `secret "arn:aws:secretsmanager:us-east-1:000000000000:secret:a-abcdef": does not exist, and the ARN of a new secret cannot be chosen; push to a name`},
		"Key":       {"An invalid key is rejected.", "", []byte("v"), "{}", "a key of 0 characters is not valid in AWS"},
		"Unknown":   {"An unknown field is rejected.", "a", []byte("v"), `{"kmsKeyId":"x"}`, `metadata: unknown field "kmsKeyId"; allowed are description, kmsKeyID, tags, replicaRegions and resourcePolicy`},
		"Twice":     {"A duplicate field is rejected.", "a", []byte("v"), `{"description":"x","description":"y"}`, `metadata: duplicate field "description"; allowed are description, kmsKeyID, tags, replicaRegions and resourcePolicy`},
		"Type":      {"A value of another type is rejected.", "a", []byte("v"), `{"description":1}`, `metadata.description: is a number, and must be a text; allowed are description, kmsKeyID, tags, replicaRegions and resourcePolicy`},
		"TagAWS":    {"A tag with AWS's prefix is rejected.", "a", []byte("v"), `{"tags":{"AWS:x":"y"}}`, `metadata.tags: "AWS:x" is reserved by AWS; use another name`},
		"TagMark":   {"A tag with the prefix of the marks is rejected.", "a", []byte("v"), `{"tags":{"direct-secrets.io/created-by":"me"}}`, `metadata.tags: "direct-secrets.io/created-by" is reserved for the operator; choose another name`},
		"TagEmpty":  {"A tag without a key is rejected.", "a", []byte("v"), `{"tags":{"":"y"}}`, `metadata.tags: "" is not the name of a tag; name the tag`},
		"TagsMany":  {"Too many tags are rejected.", "a", []byte("v"), many + `}}`, `metadata.tags: has 49 tags, at most 48 are allowed; remove some`},
		"NotObject": {"Metadata that are not an object are rejected.", "a", []byte("v"), `[]`, `metadata: is a list, which is not allowed here; allowed are description, kmsKeyID, tags, replicaRegions and resourcePolicy`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(tc.key, tc.data, tc.metadata)
			if diff := cmp.Diff(error(provider.NewError(provider.Invalid, "%s", tc.want)), err); diff != "" {
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
	c := client(t, srv, awstest.WithPrefix("shop/"))
	if _, err := c.Create(t.Context(), target, []byte("v"), ours); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), target, observed(t, c), []byte("w")); err != nil {
		t.Fatal(err)
	}
	if got, _ := srv.Get("shop/a"); string(got) != "w" {
		t.Errorf("the prefix must be added to keys that are written: %q", got)
	}
	if err := c.Delete(t.Context(), target, observed(t, c)); err != nil {
		t.Fatal(err)
	}
	if _, ok := srv.Get("shop/a"); ok {
		t.Error("the prefix must be added to keys that are deleted")
	}
}

func TestCreateScheduled(t *testing.T) {
	cases := map[string]struct {
		reason string
		mark   string
		want   error
		labels map[string]string
	}{
		"Ours":   {"A secret that this object created and deleted is restored.", ours, nil, map[string]string{"new": "AWSCURRENT", "old": "AWSPREVIOUS"}},
		"Theirs": {"A secret with the mark of another object is not restored.", theirs, provider.NewError(provider.Invalid, `secret "a": is scheduled for deletion and was not created by this object; restore it, delete it permanently, or push to another key`), nil},
		"NoMark": {"A secret without a mark is not restored.", "", provider.NewError(provider.Invalid, `secret "a": is scheduled for deletion and was not created by this object; restore it, delete it permanently, or push to another key`), nil},
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
					t.Errorf("%s\nThe secret was restored", tc.reason)
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

// between runs f right before the client writes a value, after it has described the secret.
func between(c *Client, f func()) {
	c.api = putting{api: c.api, before: f}
}

// putting is an api that runs a function before it writes a value.
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
		"Alone":   {"AWS moves AWSPREVIOUS, and the operator's label is removed.", func(*emulator.Server) {}, "", map[string]string{"b": "AWSCURRENT", "a": "AWSPREVIOUS"}},
		"Moved":   {"A value that another writer stores meanwhile stays current.", func(s *emulator.Server) { s.Put("a", []byte("theirs")) }, provider.Conflict, map[string]string{"theirs": "AWSCURRENT", "a": "AWSPREVIOUS"}},
		"Deleted": {"A secret that is deleted meanwhile is not restored.", func(s *emulator.Server) { s.Delete("a") }, provider.Conflict, nil},
		"Another": {"A new secret of the same name is not written.", func(s *emulator.Server) { s.Delete("a"); s.Put("a", []byte("theirs")) }, provider.Conflict, map[string]string{"theirs": "AWSCURRENT"}},
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
			_, err := fake.Writer(c).Update(t.Context(), target, seen, []byte("b"))
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

// TestConflictsMakeNoVersions counts the versions after updates of a secret that has changed since it was read.
// AWS keeps each version for a day, and has a limit.
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

// TestLostAnswers makes AWS carry out calls without an answer, so that the SDK repeats them.
func TestLostAnswers(t *testing.T) {
	for _, operation := range []string{"CreateSecret", "PutSecretValue", "UpdateSecretVersionStage", "DeleteSecret"} {
		t.Run(operation, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			srv.Inject(emulator.Fault{Call: operation, Times: 1, Body: emulator.BodyNone})
			if _, err := c.Create(t.Context(), target, []byte("a"), ours); err != nil {
				t.Fatalf("Create(...): %v", err)
			}
			w, err := c.Update(t.Context(), target, observed(t, c), []byte("b"))
			if err != nil || w.Version != observed(t, c).Version {
				t.Fatalf("Update(...): %+v, %v", w, err)
			}
			if diff := cmp.Diff(map[string]string{"b": "AWSCURRENT", "a": "AWSPREVIOUS"}, labels(t, c)); diff != "" {
				t.Errorf("A repeated call must create one version.\nlabels: -want, +got:\n%s", diff)
			}
			if err := fake.Writer(c).Delete(t.Context(), target, observed(t, c)); err != nil {
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
		t.Errorf("A secret without a value must have its mark.\nObserve(...): -want, +got:\n%s", diff)
	}
	between(c, func() { srv.Put("a", []byte("theirs")) })
	if _, err := c.Update(t.Context(), target, seen, []byte("ours")); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("the first value of another writer must stay: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "AWSCURRENT"}, labels(t, c)); diff != "" {
		t.Errorf("The first value of another writer must stay: -want, +got:\n%s", diff)
	}

	srv.Delete("a")
	c = client(t, srv)
	if _, err := sdk(c.config).CreateSecret(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), target, observed(t, c), []byte("ours")); err != nil {
		t.Errorf("a secret without a value must get one: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"ours": "AWSCURRENT"}, labels(t, c)); diff != "" {
		t.Errorf("A secret without a value must get one: -want, +got:\n%s", diff)
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
		"None":        {"Settings that the target does not set stay unchanged.", `{}`, nil, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, nil},
		"Same":        {"Settings without drift cause no call.", `{"description":"d","kmsKeyID":"` + arn + `alias/k","tags":{"team":"shop"}}`, nil, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, nil},
		"Description": {"A change of one setting leaves the others unchanged.", `{"description":"e"}`, []string{"description"}, awsconfig.Metadata{Description: "e", KMSKeyID: "alias/k", Tags: map[string]string{"team": "shop", "stage": "live"}}, map[string]int{"UpdateSecret": 1}},
		"Key":         {"The KMS key changes without a new version.", `{"kmsKeyID":"alias/other"}`, []string{"kmsKeyID"}, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/other", Tags: map[string]string{"team": "shop", "stage": "live"}}, map[string]int{"UpdateSecret": 1}},
		"Tags":        {"Tags that the target does not set stay unchanged.", `{"tags":{"team":"pay","new":""}}`, []string{"tags.new", "tags.team"}, awsconfig.Metadata{Description: "d", KMSKeyID: "alias/k", Tags: map[string]string{"team": "pay", "stage": "live", "new": ""}}, map[string]int{"TagResource": 1}},
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
			if diff := cmp.Diff(tc.calls, srv.Counts(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			tc.want.Tags[awsconfig.MarkKey] = ours
			if diff := cmp.Diff(tc.want, settingsOf(described(t, c))); diff != "" {
				t.Errorf("%s\nsettings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// marksTheirs replaces the mark of secret "a".
func marksTheirs(t *testing.T, c *Client, _ *emulator.Server) {
	in := &secretsmanager.TagResourceInput{SecretId: aws.String("a"), Tags: tagList(map[string]string{awsconfig.MarkKey: theirs})}
	if _, err := sdk(c.config).TagResource(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// another deletes secret "a" and creates a new one with the same value, mark and version.
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
		reason             string
		deletion           *v1alpha1.AWSSecretsManagerDeletion
		changeConcurrently func(*testing.T, *Client, *emulator.Server)
		want               error
		days               int
	}{
		"Default": {"By default, AWS keeps the secret for thirty days.", nil, nil, nil, 30},
		"Window":  {"The store can set the recovery window.", &seven, nil, nil, 7},
		"Force":   {"The store can delete without a recovery window.", &force, nil, nil, 0},
		"Gone":    {"A secret that is already deleted does not exist.", nil, func(_ *testing.T, _ *Client, s *emulator.Server) { s.Delete("a") }, provider.NewError(provider.NotFound, `secret "a": does not exist in region us-east-1`), 0},
		"Mark":    {"A secret with a new mark is kept.", nil, marksTheirs, provider.ErrChanged, -1},
		"Another": {"A new secret of the same name is kept.", nil, another, provider.ErrChanged, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			s := &v1alpha1.AWSSecretsManager{Spec: v1alpha1.AWSSecretsManagerSpec{Deletion: tc.deletion}}
			connected, err := awstest.Connect(t, s, Connect, srv.URL())
			if err != nil {
				t.Fatal(err)
			}
			c := connected.(*Client)
			if _, err := c.Create(t.Context(), target, []byte("v"), ours); err != nil {
				t.Fatal(err)
			}
			seen := observed(t, c)
			if tc.changeConcurrently != nil {
				tc.changeConcurrently(t, c, srv)
			}
			if diff := cmp.Diff(tc.want, c.Delete(t.Context(), target, seen)); diff != "" {
				t.Errorf("%s\nDelete(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			d, err := sdk(c.config).DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: aws.String("a")})
			switch {
			case tc.days == 0:
				if err == nil {
					t.Errorf("%s\nThe secret still exists", tc.reason)
				}
			case err != nil:
				t.Errorf("%s\nDescribeSecret: %v", tc.reason, err)
			case tc.days < 0:
				if d.DeletedDate != nil {
					t.Errorf("%s\nThe secret is scheduled for deletion", tc.reason)
				}
			case d.DeletedDate == nil || int(d.DeletedDate.Sub(*d.CreatedDate).Hours()+1)/24 != tc.days:
				t.Errorf("%s\nThe secret is deleted at %v, want %d days after %v", tc.reason, d.DeletedDate, tc.days, d.CreatedDate)
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
		"Create":    {"The error names the missing permission.", "CreateSecret", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `secret "new": access denied; allow secretsmanager:CreateSecret in a policy`)},
		"Tags":      {"The error names the action that AWS names.", "CreateSecret", emulator.Fault{Code: "AccessDeniedException", Message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform: secretsmanager:TagResource on resource: new"}, provider.NewError(provider.Denied, `secret "new": arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:TagResource; allow it in a policy`)},
		"KMS":       {"The error names the KMS permissions.", "PutSecretValue", emulator.Fault{Code: "AccessDeniedException", Message: "Access to KMS is not allowed"}, provider.NewError(provider.Denied, `secret "a": the caller is not allowed to use the KMS key of the secret; allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in a policy and in the key policy`)},
		"Encrypt":   {"The error of a disabled KMS key names KMS.", "PutSecretValue", emulator.Fault{Code: "EncryptionFailure", Message: canary}, provider.NewError(provider.Denied, `secret "a": %s`, awsconfig.CannotEncrypt)},
		"Limit":     {"An exhausted quota has its own message.", "PutSecretValue", emulator.Fault{Code: "LimitExceededException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": %s`, codes["LimitExceededException"].Text)},
		"Stage":     {"The error names the permission to move labels.", "UpdateSecretVersionStage", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `secret "a": access denied; allow secretsmanager:UpdateSecretVersionStage in a policy`)},
		"Parameter": {"A rejected call is not a Conflict if no other writer has changed the secret.", "UpdateSecretVersionStage", emulator.Fault{Code: "InvalidParameterException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request as invalid; check the spec`)},
		"Throttled": {"Too many calls are Throttled.", "PutSecretValue", emulator.Throttled(), provider.NewError(provider.Throttled, `secret "a": AWS throttles the calls; retrying with back-off`)},
		"Policy":    {"A rejected policy has its own message.", "PutSecretValue", emulator.Fault{Code: "MalformedPolicyDocumentException"}, provider.NewError(provider.Invalid, `secret "a": AWS does not accept metadata.resourcePolicy as a policy; correct it`)},
		"Unknown":   {"An unknown error code is Unavailable.", "CreateSecret", emulator.Fault{Code: "NewException", Message: canary}, provider.NewError(provider.Unavailable, `secret "new": AWS returned the error NewException`)},
		"Missing":   {"A NotFound for a new secret is Unavailable if AWS has no secret of that name.", "CreateSecret", emulator.Fault{Code: "ResourceNotFoundException"}, provider.NewError(provider.Unavailable, `secret "new": AWS refuses to create it, although no secret has this name; AWS may still be deleting one, or cannot find metadata.kmsKeyID`)},
		"Replicas":  {"Another invalid state of a secret has its own message.", "DeleteSecret", emulator.Fault{Code: "InvalidRequestException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request in the current state of the secret`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			c := client(t, srv)
			srv.Put("a", []byte("v"))
			seen := observed(t, c)
			tc.fault.Call = tc.operation
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
