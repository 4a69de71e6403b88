package parameterstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const arnOfA = "arn:aws:ssm:us-east-1:000000000000:parameter/a"

func deny(action, parameter string) emulator.Option {
	return awstest.Denying(emulator.Deny{Action: action, Secret: parameter})
}

// ten returns ten keys. Some tests treat /t/5 differently.
func ten() (keys []string) {
	for i := range 10 {
		keys = append(keys, "/t/"+string(rune('0'+i)))
	}
	return keys
}

// except returns the outcomes of the ten keys, with a different one for key.
func except(key, outcome string) (all []string) {
	for _, k := range ten() {
		if k == key {
			all = append(all, outcome)
		} else {
			all = append(all, k+"=v")
		}
	}
	return all
}

func TestGetBatch(t *testing.T) {
	cases := map[string]struct {
		reason string
		srv    []emulator.Option
		faults []emulator.Fault
		refs   []provider.Ref
		want   []string
		calls  map[string]int
	}{
		"Together": {
			reason: "Ten parameters are read by one call, whose answer has another order.",
			refs:   awstest.Refs(reversed(ten())...),
			want:   reversed(except("", "")),
			calls:  map[string]int{"GetParameters": 1},
		},
		"Alone": {
			reason: "A single parameter is read by GetParameter, whose error is clearer.",
			refs:   awstest.Refs("/a"),
			want:   []string{"/a=2"},
			calls:  map[string]int{"GetParameter": 1},
		},
		"Versions": {
			reason: "The same call reads numbers and labels, in both spellings.",
			refs: []provider.Ref{
				{Key: "/a"}, {Key: "/a", Version: "1"}, {Key: "/a", Version: "first"}, {Key: "/a:1"}, {Key: "/a:first"}, {Key: "/a", Version: "2"},
			},
			want:  []string{"/a=2", "/a=1", "/a=1", "/a:1=1", "/a:first=1", "/a=2"},
			calls: map[string]int{"GetParameters": 1},
		},
		"Spellings": {
			reason: "A name and an ARN of the same parameter can be in one call.",
			refs:   []provider.Ref{{Key: "/a"}, {Key: arnOfA}, {Key: arnOfA, Version: "1"}, {Key: arnOfA + ":first"}, {Key: "plain"}},
			want:   []string{"/a=2", arnOfA + "=2", arnOfA + "=1", arnOfA + ":first=1", "plain=p"},
			calls:  map[string]int{"GetParameters": 1},
		},
		"Metadata": {
			reason: "Tags need one call per parameter, and are empty if there are none.",
			refs:   []provider.Ref{{Key: "/a", Metadata: true}, {Key: "/a"}, {Key: arnOfA, Metadata: true}, {Key: "plain", Metadata: true}},
			want:   []string{"/a=2", "/a=2", arnOfA + "=2", "plain=p"},
			calls:  map[string]int{"GetParameters": 1, "ListTagsForResource": 3},
		},
		"Missing": {
			reason: "An invalid parameter is read again by a separate call, because a batch does not say why it is invalid.",
			refs:   []provider.Ref{{Key: "/a"}, {Key: "/nowhere"}, {Key: "/a", Version: "9"}, {Key: "/a", Version: "nolabel"}},
			want:   []string{"/a=2", "NotFound", "NotFound", "NotFound"},
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 3},
		},
		"NotReadable": {
			reason: "A parameter that a batch calls invalid can exist.",
			faults: []emulator.Fault{{Entry: true, Key: "/t/5"}},
			refs:   awstest.Refs(ten()...),
			want:   except("", ""),
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 1},
		},
		"DeniedOne": {
			reason: "One denied parameter fails the batch, and each parameter is read by a separate call.",
			srv:    []emulator.Option{deny("ssm:GetParameter*", "/t/5")},
			refs:   awstest.Refs(ten()...),
			want:   except("/t/5", "Denied"),
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 10},
		},
		"DeniedKey": {
			reason: "A denied KMS key fails the batch, and each parameter is read by a separate call.",
			srv:    []emulator.Option{deny("kms:Decrypt", "/t/5")},
			refs:   awstest.Refs(ten()...),
			want:   except("/t/5", "Denied"),
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 10},
		},
		"DisabledKey": {
			reason: "A disabled KMS key fails the batch, and each parameter is read by a separate call.",
			faults: []emulator.Fault{{Key: "/t/5", Code: "InvalidKeyId"}},
			refs:   awstest.Refs(ten()...),
			want:   except("/t/5", "Denied"),
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 10},
		},
		"DeniedBatches": {
			reason: "Without the permission for batches, each parameter is read by a separate call.",
			srv:    []emulator.Option{deny("ssm:GetParameters", "")},
			refs:   awstest.Refs("/a", "/nowhere", "plain"),
			want:   []string{"/a=2", "NotFound", "plain=p"},
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 3},
		},
		"Spoilt": {
			reason: "Single reads find the name for which AWS rejects the whole call.",
			faults: []emulator.Fault{{Key: "/t/5", Code: "ValidationException"}},
			refs:   awstest.Refs(ten()...),
			want:   except("/t/5", "Invalid"),
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 10},
		},
		"NotFoundWhole": {
			reason: "A NotFound for the whole call does not mean that an entry is missing.",
			faults: []emulator.Fault{{Call: "GetParameters", Code: "ParameterNotFound"}},
			refs:   awstest.Refs("/a", "/nowhere"),
			want:   []string{"/a=2", "NotFound"},
			calls:  map[string]int{"GetParameters": 1, "GetParameter": 2},
		},
		"Throttled": {
			reason: "Throttling does not lead to single reads.",
			faults: []emulator.Fault{{Call: "GetParameters", Code: "ThrottlingException", RetryAfter: time.Second}},
			refs:   awstest.Refs("/a", "/nowhere"),
			want:   []string{"Throttled", "Throttled"},
			calls:  map[string]int{"GetParameters": 1},
		},
		"BadKeys": {
			reason: "An invalid name is not requested, and does not fail the others.",
			refs:   []provider.Ref{{Key: "/a"}, {Key: "/a b"}, {Key: "/a:1", Version: "2"}, {Key: "plain"}},
			want:   []string{"/a=2", "Invalid", "Invalid", "plain=p"},
			calls:  map[string]int{"GetParameters": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t, tc.srv...)
			for _, k := range ten() {
				srv.PutParameter(k, "v", emulator.Secure())
			}
			srv.PutParameter("/a", "1", emulator.ParameterTags(map[string]string{"team": "shop"}))
			srv.LabelParameter("/a", "first")
			srv.PutParameter("/a", "2")
			srv.PutParameter("plain", "p")
			for _, f := range tc.faults {
				srv.Inject(f)
			}
			asked := slices.Clone(tc.refs)
			got := client(t, srv).GetBatch(t.Context(), tc.refs)
			if diff := cmp.Diff(tc.want, awstest.Outcomes(got)); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			for _, call := range srv.Calls() {
				if names := slices.Sorted(slices.Values(call.SecretIDs)); len(slices.Compact(names)) < len(call.SecretIDs) {
					t.Errorf("%s\n%s names one more than once: %s", tc.reason, call.Operation, call.SecretIDs)
				}
			}
			if diff := cmp.Diff(asked, tc.refs); diff != "" {
				t.Errorf("the refs must not be changed: %s", diff)
			}
			for i, r := range got {
				if tc.refs[i].Metadata && (r.Value.Metadata == nil || len(r.Value.Metadata) > 0 != strings.HasSuffix(r.Value.Key, "/a")) {
					t.Errorf("Metadata of %s: %v", r.Value.Key, r.Value.Metadata)
				}
			}
		})
	}
}

func reversed(all []string) []string {
	slices.Reverse(all)
	return all
}

func TestDenialsAreRemembered(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		// The calls of the first read, of the next one, and of one after the pause.
		first, next map[string]int
	}{
		"One": {
			"A denied parameter is left out of batches for a while. The others are read together.",
			emulator.Fault{Key: "/t/5", Code: "AccessDeniedException"},
			map[string]int{"GetParameters": 1, "GetParameter": 10}, map[string]int{"GetParameters": 1, "GetParameter": 1},
		},
		"Batches": {
			"Without the permission for batches, none is tried for a while.",
			emulator.Fault{Call: "GetParameters", Code: "AccessDeniedException"},
			map[string]int{"GetParameters": 1, "GetParameter": 10}, map[string]int{"GetParameter": 10},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			for _, k := range ten() {
				srv.PutParameter(k, "v")
			}
			c := client(t, srv)
			now := time.Unix(1_000_000, 0)
			c.denied.Now = func() time.Time { return now }
			allow := srv.Inject(tc.fault)
			read := func(after time.Duration, want map[string]int) {
				t.Helper()
				now = now.Add(after)
				srv.Reset()
				c.GetBatch(t.Context(), awstest.Refs(ten()...))
				if diff := cmp.Diff(want, srv.Counts()); diff != "" {
					t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
				}
			}
			read(0, tc.first)
			read(awsconfig.DeniedPause-time.Second, tc.next)
			read(time.Second, tc.first)
			allow()
			read(awsconfig.DeniedPause, map[string]int{"GetParameters": 1})
		})
	}
}
