package awstest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// RunCheck tests what Check says of logins that work and of others.
func RunCheck(t *testing.T, connect func(testing.TB, *emulator.Server, ...Option) provider.Checker) {
	t.Helper()
	denied := func(message string) error { return provider.NewError(provider.Denied, "%s", message) }
	cases := map[string]struct {
		reason string
		srv    []emulator.Option
		opts   []Option
		fault  *emulator.Fault
		want   error
	}{
		"OK":        {reason: "A login that works is said to."},
		"NoList":    {reason: "A missing permission proves the login.", srv: []emulator.Option{Denying(emulator.Deny{Action: "*"})}},
		"Unknown":   {reason: "An unknown key is the field's fault.", opts: []Option{WithKey("other", "test")}, want: denied("spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong")},
		"Signature": {reason: "So is a wrong secret key.", opts: []Option{WithKey("test", "c4n4ry")}, want: denied("spec.auth.secretRef.secretAccessKeySecretRef: the secret access key does not belong to the access key id, or the operator's clock is wrong")},
		"Down":      {reason: "A service that is down is no failed login.", fault: &emulator.Fault{Status: 503}, want: provider.NewError(provider.Unavailable, "AWS answers with status 503")},
		"Throttled": {reason: "Nor is one that has enough.", fault: &emulator.Fault{Status: 429}, want: provider.NewError(provider.Throttled, "AWS asks for fewer calls")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := Start(t, tc.srv...)
			if tc.fault != nil {
				srv.Inject(*tc.fault)
			}
			err := connect(t, srv, tc.opts...).Check(t.Context())
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want == nil && srv.Calls("") != 1 {
				t.Errorf("%s\nCheck(...): %d calls, want 1", tc.reason, srv.Calls(""))
			}
		})
	}
}
