package awsconfig

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestDrift(t *testing.T) {
	const arn = "arn:aws:kms:us-east-1:000000000000:"
	cases := map[string]struct {
		reason    string
		want, has Metadata
		drift     []string
	}{
		"Empty":       {"A field that the target does not set does not drift.", Metadata{}, Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b"}}, nil},
		"Same":        {"Equal fields do not drift.", Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b"}}, Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b", "c": "d"}}, nil},
		"All":         {"Each field that differs is named.", Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b", "c": ""}}, Metadata{Tags: map[string]string{"a": "x"}}, []string{"description", "kmsKeyID", "tags.a", "tags.c"}},
		"KeyARN":      {"An ARN and a key id can name the same key.", Metadata{KMSKeyID: "1-2"}, Metadata{KMSKeyID: arn + "key/1-2"}, nil},
		"ARNKey":      {"A key id and an ARN can name the same key.", Metadata{KMSKeyID: arn + "key/1-2"}, Metadata{KMSKeyID: "1-2"}, nil},
		"Alias":       {"An alias and its ARN can name the same key.", Metadata{KMSKeyID: arn + "alias/x"}, Metadata{KMSKeyID: "alias/x"}, nil},
		"AliasNoKey":  {"An alias is not the key with the same name.", Metadata{KMSKeyID: arn + "alias/x"}, Metadata{KMSKeyID: "x"}, []string{"kmsKeyID"}},
		"Account":     {"Keys with one id in two accounts differ.", Metadata{KMSKeyID: "arn:aws:kms:us-east-1:111111111111:alias/x"}, Metadata{KMSKeyID: arn + "alias/x"}, []string{"kmsKeyID"}},
		"ARNNotWhole": {"An incomplete ARN names another key.", Metadata{KMSKeyID: "arn:x"}, Metadata{KMSKeyID: "x"}, []string{"kmsKeyID"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.want.Drift(tc.has)
			if diff := cmp.Diff(tc.drift, got); diff != "" {
				t.Errorf("%s\nDrift(...): -want, +got:\n%s", tc.reason, diff)
			}
			only := tc.want.Drifted(got)
			if diff := cmp.Diff(tc.drift, only.Drift(tc.has)); diff != "" {
				t.Errorf("%s\nDrifted(...) must return the fields that drift: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestToAllow(t *testing.T) {
	cases := map[string]struct {
		reason    string
		err, want error
	}{
		"None":   {"nil stays nil.", nil, nil},
		"Other":  {"An error of another class is unchanged.", provider.NewError(provider.Throttled, "access denied"), provider.NewError(provider.Throttled, "access denied")},
		"Bare":   {"The action is added if AWS does not name it.", provider.NewError(provider.Denied, "x: access denied"), provider.NewError(provider.Denied, "x: access denied; allow ssm:Put in a policy")},
		"Named":  {"Nothing is added if AWS names the action.", provider.NewError(provider.Denied, "x: y is not allowed to perform z; allow it in a policy"), provider.NewError(provider.Denied, "x: y is not allowed to perform z; allow it in a policy")},
		"KMS":    {"A write needs more permissions for a KMS key.", provider.NewError(provider.Denied, "x: allow kms:Decrypt in a policy"), provider.NewError(provider.Denied, "x: allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in a policy")},
		"Cannot": {"The error of a disabled key is unchanged.", provider.NewError(provider.Denied, "%s", CannotDecrypt), provider.NewError(provider.Denied, "%s", CannotDecrypt)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ToAllow(tc.err, "ssm:Put")); diff != "" {
				t.Errorf("%s\nToAllow(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLockSecret checks which writes wait for each other.
func TestLockSecret(t *testing.T) {
	c := &Config{}
	unlock, err := c.LockSecret(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		reason string
		c      *Config
		arn    string
		waits  bool
	}{
		"Same":   {"Another write of the secret waits.", c, "a", true},
		"Other":  {"A write of another secret does not.", c, "b", false},
		"Server": {"A server that answers with the ARN of another server's secret blocks no writes there.", &Config{Endpoint: new("https://example.com")}, "a", false},
	} {
		unlock, err := tc.c.LockSecret(ctx, tc.arn)
		if (err != nil) != tc.waits {
			t.Errorf("%s: %s: error %v", name, tc.reason, err)
		}
		if err == nil {
			unlock()
		}
	}
}
