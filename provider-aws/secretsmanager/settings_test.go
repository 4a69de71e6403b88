package secretsmanager

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	denyDelete = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"secretsmanager:DeleteSecret","Resource":"*"}]}`
	public     = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"secretsmanager:GetSecretValue","Resource":"*"}]}`
)

// replicasOf returns the replicas of secret "a", as region=key.
func replicasOf(t *testing.T, c *Client) (all []string) {
	t.Helper()
	for _, s := range described(t, c).ReplicationStatus {
		all = append(all, aws.ToString(s.Region)+"="+aws.ToString(s.KmsKeyId))
	}
	return all
}

// TestReplicasAndPolicy pushes to secret "a" with settings, first to create it, or after the preparation to update it.
func TestReplicasAndPolicy(t *testing.T) {
	type want struct {
		Err      string
		Value    string
		Replicas []string
		Policy   string
	}
	existing := func(srv *emulator.Server) { srv.Put("a", []byte("old")) }
	cases := map[string]struct {
		reason   string
		prepare  func(*emulator.Server)
		deny     string
		metadata string
		want     want
	}{
		"CreateReplicas": {"A new secret has its replicas.", nil, "", `{"replicaRegions":[{"region":"eu-west-1"},{"region":"eu-west-2","kmsKeyID":"alias/k"}]}`,
			want{Value: "new", Replicas: []string{"eu-west-1=", "eu-west-2=alias/k"}}},
		"CreatePolicy": {"A new secret has its policy.", nil, "", `{"resourcePolicy":` + denyDelete + `}`, want{Value: "new", Policy: denyDelete}},
		"CreateNoValue": {"A new secret gets no value without its policy.", nil, "secretsmanager:PutResourcePolicy", `{"resourcePolicy":` + denyDelete + `}`,
			want{Err: "Denied: arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:PutResourcePolicy; allow it in a policy"}},
		"UpdateNoValue": {"An existing secret gets no value without the policy.", existing, "secretsmanager:PutResourcePolicy", `{"resourcePolicy":` + denyDelete + `}`,
			want{Value: "old", Err: "Denied: arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:PutResourcePolicy; allow it in a policy"}},
		"NoRead": {"The permission to compare the policy is named.", existing, "secretsmanager:GetResourcePolicy", `{"resourcePolicy":` + denyDelete + `}`,
			want{Value: "old", Err: "Denied: arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:GetResourcePolicy; allow it in a policy"}},
		"NoReplicate": {"The permission to replicate is named.", existing, "secretsmanager:ReplicateSecretToRegions", `{"replicaRegions":[{"region":"eu-west-1"}]}`,
			want{Value: "new", Err: "Denied: arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:ReplicateSecretToRegions; allow it in a policy"}},
		"Unset": {"Unset settings stay as they are.", func(srv *emulator.Server) { existing(srv); srv.Replicate("a", "eu-west-3", "") }, "", `{}`,
			want{Value: "new", Replicas: []string{"eu-west-3="}}},
		"Others": {"A replica that is not named stays.", func(srv *emulator.Server) { existing(srv); srv.Replicate("a", "eu-west-3", "") }, "", `{"replicaRegions":[{"region":"eu-west-1"}]}`,
			want{Value: "new", Replicas: []string{"eu-west-3=", "eu-west-1="}}},
		"OtherKey": {"AWS cannot change the key of a replica, so it stays.", func(srv *emulator.Server) { existing(srv); srv.Replicate("a", "eu-west-1", "alias/x") }, "", `{"replicaRegions":[{"region":"eu-west-1","kmsKeyID":"alias/k"}]}`,
			want{Value: "new", Replicas: []string{"eu-west-1=alias/x"}, Err: "Invalid: the replica in eu-west-1 has another KMS key than metadata.replicaRegions, and AWS cannot change it; correct kmsKeyID, or remove the replica at AWS"}},
		"Occupied": {"A secret of the same name in another region is not overwritten.", func(srv *emulator.Server) { existing(srv); srv.OccupyRegion("eu-west-1") }, "", `{"replicaRegions":[{"region":"eu-west-1"}]}`,
			want{Value: "new", Replicas: []string{"eu-west-1="}, Err: "Invalid: AWS cannot create the replica in eu-west-1 of metadata.replicaRegions; check that the region has no secret of this name and that its KMS key can be used, and remove the failed replica at AWS"}},
		"Public": {"A policy that gives access to everyone is refused.", existing, "", `{"resourcePolicy":` + public + `}`,
			want{Value: "old", Err: "Invalid: metadata.resourcePolicy gives access to everyone; name the principals"}},
		"OwnRegion":   {"The region of the store is refused.", existing, "", `{"replicaRegions":[{"region":"us-east-1"}]}`, want{Value: "old", Err: "Invalid: metadata.replicaRegions[0].region: us-east-1 is the region of the store, which has the secret itself; remove it"}},
		"NoRegion":    {"A text that is no region is refused.", existing, "", `{"replicaRegions":[{"region":"a b"}]}`, want{Value: "old", Err: `Invalid: metadata.replicaRegions[0].region: "a b" is not a region; write it as eu-central-1`}},
		"Twice":       {"A region is named once.", existing, "", `{"replicaRegions":[{"region":"eu-west-1"},{"region":"eu-west-1","kmsKeyID":"x"}]}`, want{Value: "old", Err: "Invalid: metadata.replicaRegions[1].region: eu-west-1 is named twice; remove one"}},
		"NoPolicy":    {"A text that is no JSON is refused and not shown.", existing, "", `{"resourcePolicy":"s3cret"}`, want{Value: "old", Err: "Invalid: metadata.resourcePolicy: is not a policy; write it as a JSON object, or as a text with one"}},
		"NoStatement": {"A policy without statements is refused.", existing, "", `{"resourcePolicy":{}}`, want{Value: "old", Err: "Invalid: metadata.resourcePolicy: has no Statement; add one, or remove the field to leave the policy of the secret unchanged"}},
		"Long":        {"A policy that is too long is refused.", existing, "", `{"resourcePolicy":{"Statement":"` + strings.Repeat("x", maxPolicy) + `"}}`, want{Value: "old", Err: "Invalid: metadata.resourcePolicy: has 20496 bytes, and AWS allows at most 20480; shorten it"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t, awstest.Denying(emulator.Deny{Action: tc.deny}))
			if tc.prepare != nil {
				tc.prepare(srv)
			}
			c := client(t, srv)
			set := provider.Target{Key: "a", Metadata: []byte(tc.metadata)}
			seen, err := c.Observe(t.Context(), set)
			if provider.IsNotFound(err) {
				_, err = c.Create(t.Context(), set, []byte("new"), ours)
			} else if err == nil {
				_, err = c.Update(t.Context(), set, seen, []byte("new"))
			}
			value, _ := srv.Get("a")
			got := want{Value: string(value), Replicas: replicasOf(t, c), Policy: srv.ResourcePolicy("a")}
			if err != nil {
				got.Err = string(provider.ClassOf(err)) + ": " + strings.TrimPrefix(err.Error(), `secret "a": `)
			} else if seen, err := c.Observe(t.Context(), set); err != nil || len(seen.Drift) > 0 {
				t.Errorf("%s\nafter the push: drift %q, error %v", tc.reason, seen.Drift, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeleteReplicated checks that only replicas of the operator are removed with a secret.
func TestDeleteReplicated(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	set := provider.Target{Key: "a", Metadata: []byte(`{"replicaRegions":[{"region":"eu-west-1"}]}`)}
	if _, err := c.Create(t.Context(), set, []byte("v"), ours); err != nil {
		t.Fatal(err)
	}
	srv.Replicate("a", "eu-west-3", "")
	err := c.Delete(t.Context(), target, observed(t, c))
	if want := `secret "a": has a replica in "eu-west-3" that the operator has not created, and AWS deletes no secret with replicas; remove the replica at AWS`; err == nil || err.Error() != want {
		t.Errorf("a secret with the replica of another client: got %v, want %s", err, want)
	}
	if diff := cmp.Diff([]string{"eu-west-1=", "eu-west-3="}, replicasOf(t, c)); diff != "" {
		t.Errorf("no replica is removed: -want, +got:\n%s", diff)
	}

	srv.Delete("a")
	srv.OccupyRegion("eu-west-2")
	failing := provider.Target{Key: "a", Metadata: []byte(`{"replicaRegions":[{"region":"eu-west-2"}]}`)}
	if _, err := c.Create(t.Context(), failing, []byte("v"), ours); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), target, observed(t, c)); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("a failed replica, whose region can have a secret of another client: got %v, want Invalid", err)
	}

	srv.Delete("a")
	if _, err := c.Create(t.Context(), set, []byte("v"), ours); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), target, observed(t, c)); err != nil {
		t.Errorf("a secret with replicas of the operator: %v", err)
	}
	if d := described(t, c); d.DeletedDate == nil || len(d.ReplicationStatus) > 0 {
		t.Errorf("the secret must be deleted without replicas: %v, %v", d.DeletedDate, d.ReplicationStatus)
	}
}

// TestDeleteReplicatedDenied checks that a login that cannot delete a secret removes no replica of it.
func TestDeleteReplicatedDenied(t *testing.T) {
	set := provider.Target{Key: "a", Metadata: []byte(`{"replicaRegions":[{"region":"eu-west-1"},{"region":"eu-west-2"}]}`)}
	cases := map[string]struct {
		reason string
		deny   string
		fault  emulator.Fault
		class  provider.Class
	}{
		"Delete":    {"The permission to delete is missing.", "secretsmanager:DeleteSecret", emulator.Fault{Call: "none"}, provider.Denied},
		"Remove":    {"The permission to remove replicas is missing.", "secretsmanager:RemoveRegionsFromReplication", emulator.Fault{Call: "none"}, provider.Denied},
		"Throttled": {"AWS does not say whether the login can delete.", "", emulator.Fault{Call: "DeleteSecret", Code: "ThrottlingException", RetryAfter: time.Minute}, provider.Throttled},
		"State":     {"AWS refuses for another reason.", "", emulator.Fault{Call: "DeleteSecret", Code: "InvalidRequestException", Message: "other"}, provider.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var opts []emulator.Option
			if tc.deny != "" {
				opts = append(opts, awstest.Denying(emulator.Deny{Action: tc.deny}))
			}
			srv := awstest.Start(t, opts...)
			c := client(t, srv)
			if _, err := c.Create(t.Context(), set, []byte("v"), ours); err != nil {
				t.Fatal(err)
			}
			srv.Inject(tc.fault)
			if err := c.Delete(t.Context(), target, observed(t, c)); provider.ClassOf(err) != tc.class {
				t.Errorf("%s\nDelete(...): got %v, want %s", tc.reason, err, tc.class)
			}
			if diff := cmp.Diff([]string{"eu-west-1", "eu-west-2"}, srv.Replicas("a")); diff != "" {
				t.Errorf("%s\nreplicas: -want, +got:\n%s", tc.reason, diff)
			}
			if _, ok := srv.Get("a"); !ok {
				t.Errorf("%s\nthe secret is deleted", tc.reason)
			}
		})
	}
}

func TestPolicyEquals(t *testing.T) {
	cases := map[string]struct {
		reason     string
		own, other string
		want       bool
	}{
		"Same":    {"Spaces and the order of fields mean nothing.", `{"a":"b","c":"d"}`, `{ "c":"d", "a":"b" }`, true},
		"Text":    {"A policy can be given as text.", `"{\"a\":\"b\"}"`, `{"a":"b"}`, true},
		"Single":  {"A list of one item is that item.", `{"a":["b"]}`, `{"a":"b"}`, true},
		"Order":   {"The order of a list of texts means nothing.", `{"a":["b","c"]}`, `{"a":["c","b"]}`, true},
		"Account": {"An account is its root user.", `{"AWS":"111122223333"}`, `{"AWS":"arn:aws:iam::111122223333:root"}`, true},
		"Other":   {"Another value is another policy.", `{"a":"b"}`, `{"a":"c"}`, false},
		"More":    {"A further item is another policy.", `{"a":["b"]}`, `{"a":["b","c"]}`, false},
		"None":    {"A secret without a policy differs.", `{"a":"b"}`, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resourcePolicy(tc.own).equals(tc.other); got != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
