package secretsmanager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestGetBatch(t *testing.T) {
	deny := func(action, secret string) emulator.Option {
		return awstest.Denying(emulator.Deny{Action: "secretsmanager:" + action, Secret: secret})
	}
	cases := map[string]struct {
		reason string
		srv    []emulator.Option
		faults []emulator.Fault
		refs   []provider.Ref
		want   []string
		calls  map[string]int
	}{
		"Together": {
			reason: "One call reads all current versions, whatever their order.",
			refs:   awstest.Refs("c", "a", "b"),
			want:   []string{"c=C", "a=A", "b=B"},
			calls:  map[string]int{"BatchGetSecretValue": 1},
		},
		"Alone": {
			reason: "A single secret needs no permission for batches.",
			refs:   awstest.Refs("a"),
			want:   []string{"a=A"},
			calls:  map[string]int{"GetSecretValue": 1},
		},
		"Mixed": {
			reason: "Versions and metadata are read by separate calls.",
			refs:   []provider.Ref{{Key: "a"}, {Key: "a", Version: "AWSCURRENT"}, {Key: "b"}, {Key: "c", Metadata: true}, {Key: "a", Version: "AWSPREVIOUS"}},
			want:   []string{"a=A", "a=A", "b=B", "c=C", "NotFound"},
			calls:  map[string]int{"BatchGetSecretValue": 1, "GetSecretValue": 3, "DescribeSecret": 1},
		},
		"DeniedBatch": {
			reason: "Without the permission for batches, each secret is read by a separate call.",
			srv:    []emulator.Option{deny("BatchGetSecretValue", "")},
			refs:   awstest.Refs("a", "nowhere", "c"),
			want:   []string{"a=A", "NotFound", "c=C"},
			calls:  map[string]int{"BatchGetSecretValue": 1, "GetSecretValue": 3},
		},
		"Spoilt": {
			reason: "Single reads find the name for which AWS rejects the whole batch.",
			faults: []emulator.Fault{{Key: "b", Code: "ValidationException", Message: "1 validation error detected"}},
			refs:   awstest.Refs("a", "b", "c"),
			want:   []string{"a=A", "Invalid", "c=C"},
			calls:  map[string]int{"BatchGetSecretValue": 1, "GetSecretValue": 3},
		},
		"NotFoundWhole": {
			reason: "A NotFound for the whole batch does not mean that an entry is missing.",
			faults: []emulator.Fault{{Call: "BatchGetSecretValue", Code: "ResourceNotFoundException"}},
			refs:   awstest.Refs("a", "nowhere", "c"),
			want:   []string{"a=A", "NotFound", "c=C"},
			calls:  map[string]int{"BatchGetSecretValue": 1, "GetSecretValue": 3},
		},
		"Throttled": {
			reason: "Throttling does not lead to single reads.",
			faults: []emulator.Fault{{Call: "BatchGetSecretValue", Code: "ThrottlingException", RetryAfter: time.Second}},
			refs:   awstest.Refs("a", "nowhere"),
			want:   []string{"Throttled", "Throttled"},
			calls:  map[string]int{"BatchGetSecretValue": 1},
		},
		"Pages": {
			reason: "An answer can have several pages.",
			faults: []emulator.Fault{{Page: emulator.PageSplit, KeepEntries: 1}},
			refs:   awstest.Refs("a", "b", "nowhere", "c"),
			want:   []string{"a=A", "b=B", "NotFound", "c=C"},
			calls:  map[string]int{"BatchGetSecretValue": 3},
		},
		"SmallPages": {
			reason: "Each large secret can fill a page.",
			srv:    []emulator.Option{emulator.WithMaxBatchBytes(1)},
			refs:   awstest.Refs("a", "b", "c"),
			want:   []string{"a=A", "b=B", "c=C"},
			calls:  map[string]int{"BatchGetSecretValue": 3},
		},
		"SecondPageFails": {
			reason: "The results before a failure are kept.",
			faults: []emulator.Fault{{Times: 1, Page: emulator.PageSplit, KeepEntries: 1}, {Code: "InternalServiceError"}},
			refs:   awstest.Refs("a", "b"),
			want:   []string{"a=A", "Unavailable"},
			calls:  map[string]int{"BatchGetSecretValue": 3},
		},
		"SecondPageDenied": {
			reason: "If the permission is removed between two pages, the other secrets are read by separate calls.",
			faults: []emulator.Fault{{Times: 1, Page: emulator.PageSplit, KeepEntries: 1}, {Call: "BatchGetSecretValue", Code: "AccessDeniedException"}},
			refs:   awstest.Refs("a", "b"),
			want:   []string{"a=A", "b=B"},
			calls:  map[string]int{"BatchGetSecretValue": 2, "GetSecretValue": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t, tc.srv...)
			for _, k := range []string{"a", "b", "c"} {
				srv.Put(k, []byte{k[0] - 'a' + 'A'})
			}
			for _, f := range tc.faults {
				srv.Inject(f)
			}
			asked := slices.Clone(tc.refs)
			got := client(t, srv).GetBatch(t.Context(), tc.refs)
			if diff := cmp.Diff(tc.want, awstest.Outcomes(got)); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.calls != nil {
				if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
					t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(asked, tc.refs); diff != "" {
				t.Errorf("the refs must not be changed: %s", diff)
			}
		})
	}
}

func TestGetBatchSpellings(t *testing.T) {
	srv := awstest.Start(t)
	// The name of the second secret ends like an ARN.
	srv.Put("app/db", []byte("1"))
	srv.Put("app/db-abcdef", []byte("2"))
	c := client(t, srv, awstest.WithPrefix("app/"))
	arn, like := arnOf(t, c, "app/db"), arnOf(t, c, "app/db-abcdef")
	cut, likeCut := arn[:len(arn)-7], like[:len(like)-7]
	srv.Reset()

	got := c.GetBatch(t.Context(), awstest.Refs("db", arn, cut, "db-abcdef", like, likeCut))
	want := []string{"db=1", arn + "=1", cut + "=1", "db-abcdef=2", like + "=2", likeCut + "=2"}
	if diff := cmp.Diff(want, awstest.Outcomes(got)); diff != "" {
		t.Errorf("A secret can be requested by its name, its ARN, and its ARN without the suffix.\nGetBatch(...): -want, +got:\n%s", diff)
	}
	for i, r := range got {
		alone, err := c.Get(t.Context(), provider.Ref{Key: r.Value.Key})
		if diff := cmp.Diff(provider.Result{Value: alone, Err: err}, got[i], cmpopts.EquateErrors()); diff != "" {
			t.Errorf("A batch must have the same result as a single read.\n-single, +batch:\n%s", diff)
		}
	}
	if n := srv.Count("BatchGetSecretValue"); n != 1 {
		t.Errorf("one call must be enough: %d", n)
	}
}

func TestGetBatchSize(t *testing.T) {
	srv := awstest.Start(t)
	var refs []provider.Ref
	for i := range batchSize {
		refs = append(refs, provider.Ref{Key: fmt.Sprintf("s%d", i)})
		srv.Put(refs[i].Key, []byte{0xff, byte(i)})
	}
	for i, r := range client(t, srv).GetBatch(t.Context(), refs) {
		if diff := cmp.Diff(awstest.Outcome(provider.Result{Value: provider.Value{Key: refs[i].Key, Data: []byte{0xff, byte(i)}}}), awstest.Outcome(r)); diff != "" {
			t.Errorf("Binary secrets are returned as bytes.\n-want, +got:\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"BatchGetSecretValue": 1}, srv.Counts()); diff != "" {
		t.Errorf("Twenty secrets need one call: -want, +got:\n%s", diff)
	}
}

func TestDeniedBatchIsRemembered(t *testing.T) {
	srv := awstest.Start(t)
	srv.Put("a", []byte("A"))
	srv.Put("b", []byte("B"))
	c := client(t, srv)
	now := time.Unix(1_000_000, 0)
	c.denied.Now = func() time.Time { return now }
	allow := srv.Inject(emulator.Fault{Call: "BatchGetSecretValue", Code: "AccessDeniedException"})

	read := func(after time.Duration, batches int, reason string) {
		t.Helper()
		now = now.Add(after)
		if diff := cmp.Diff([]string{"a=A", "b=B"}, awstest.Outcomes(c.GetBatch(t.Context(), awstest.Refs("a", "b")))); diff != "" {
			t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", reason, diff)
		}
		if got := srv.Count("BatchGetSecretValue"); got != batches {
			t.Errorf("%s\n%d batches in all, want %d", reason, got, batches)
		}
	}
	read(0, 1, "The first read tries a batch.")
	read(time.Second, 1, "The next read does not repeat the denied call.")
	read(awsconfig.DeniedPause-2*time.Second, 1, "No batch is tried before the pause has passed.")
	read(2*time.Second, 2, "The next batch is tried after the pause.")
	allow()
	read(awsconfig.DeniedPause, 3, "The batch after the pause succeeds once the permission is granted.")
	read(0, 4, "Further reads use batches, too.")
}
