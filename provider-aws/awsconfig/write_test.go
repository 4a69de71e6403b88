package awsconfig

import (
	"context"
	"runtime"
	"sync"
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
		"Empty":       {"What is not named does not drift.", Metadata{}, Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b"}}, nil},
		"Same":        {"What is equal does not.", Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b"}}, Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b", "c": "d"}}, nil},
		"All":         {"Each is named.", Metadata{Description: "d", KMSKeyID: "k", Tags: map[string]string{"a": "b", "c": ""}}, Metadata{Tags: map[string]string{"a": "x"}}, []string{"description", "kmsKeyID", "tags.a", "tags.c"}},
		"KeyARN":      {"A key may be given with its ARN.", Metadata{KMSKeyID: "1-2"}, Metadata{KMSKeyID: arn + "key/1-2"}, nil},
		"ARNKey":      {"Or be shown without.", Metadata{KMSKeyID: arn + "key/1-2"}, Metadata{KMSKeyID: "1-2"}, nil},
		"Alias":       {"So may an alias.", Metadata{KMSKeyID: arn + "alias/x"}, Metadata{KMSKeyID: "alias/x"}, nil},
		"AliasNoKey":  {"Which is no key of that name.", Metadata{KMSKeyID: arn + "alias/x"}, Metadata{KMSKeyID: "x"}, []string{"kmsKeyID"}},
		"Account":     {"Accounts tell keys apart.", Metadata{KMSKeyID: "arn:aws:kms:us-east-1:111111111111:alias/x"}, Metadata{KMSKeyID: arn + "alias/x"}, []string{"kmsKeyID"}},
		"ARNNotWhole": {"An ARN that is cut off is none.", Metadata{KMSKeyID: "arn:x"}, Metadata{KMSKeyID: "x"}, []string{"kmsKeyID"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.want.Drift(tc.has)
			if diff := cmp.Diff(tc.drift, got); diff != "" {
				t.Errorf("%s\nDrift(...): -want, +got:\n%s", tc.reason, diff)
			}
			only := tc.want.Drifted(got)
			if diff := cmp.Diff(tc.drift, only.Drift(tc.has)); diff != "" {
				t.Errorf("%s\nWhat drifts is what is brought in line: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestToAllow(t *testing.T) {
	cases := map[string]struct {
		reason    string
		err, want error
	}{
		"None":   {"No error is none.", nil, nil},
		"Other":  {"Other classes stay.", provider.NewError(provider.Throttled, "access denied"), provider.NewError(provider.Throttled, "access denied")},
		"Bare":   {"Where AWS does not say it, the action is added.", provider.NewError(provider.Denied, "x: access denied"), provider.NewError(provider.Denied, "x: access denied; allow ssm:Put in a policy")},
		"Named":  {"Where AWS says it, nothing is.", provider.NewError(provider.Denied, "x: y may not z; allow it in a policy"), provider.NewError(provider.Denied, "x: y may not z; allow it in a policy")},
		"KMS":    {"To write takes more of a key.", provider.NewError(provider.Denied, "x: allow kms:Decrypt in a policy"), provider.NewError(provider.Denied, "x: allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in a policy")},
		"Cannot": {"A key that is disabled is another matter.", provider.NewError(provider.Denied, "%s", CannotDecrypt), provider.NewError(provider.Denied, "%s", CannotDecrypt)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ToAllow(tc.err, "ssm:Put")); diff != "" {
				t.Errorf("%s\nToAllow(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTurn(t *testing.T) {
	c := &Config{}
	busy := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 64 {
		id := []string{"a", "b"}[i%2]
		all.Go(func() {
			leave, err := c.Turn(t.Context(), id)
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			mu.Lock()
			if busy[id]++; busy[id] > 1 {
				t.Errorf("%d write %q at the same time", busy[id], id)
			}
			mu.Unlock()
			for range 100 { // Others get a chance to come in.
				runtime.Gosched()
			}
			mu.Lock()
			busy[id]--
			mu.Unlock()
		})
	}
	all.Wait()

	leave, err := c.Turn(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Turn(t.Context(), "b")
	if err != nil {
		t.Fatalf("Another secret need not wait: %v", err)
	}
	elsewhere, err := (&Config{Endpoint: new("https://example.com")}).Turn(t.Context(), "a")
	if err != nil {
		t.Fatalf("A server that answers with the ARN of another's secret holds no write there: %v", err)
	}
	elsewhere()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Turn(ctx, "a"); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("Whoever waits ends with its context: %v", err)
	}
	leave()
	other()
	if len(turns.taken) != 0 {
		t.Errorf("%d turns are kept though nobody writes", len(turns.taken))
	}
}
