package awstest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// RunCheck tests the result of Check for valid and for failing logins.
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
		"OK":        {reason: "A valid login passes."},
		"NoList":    {reason: "A denied call proves that the login works.", srv: []emulator.Option{Denying(emulator.Deny{Action: "*"})}},
		"Unknown":   {reason: "The error of an unknown key names the field.", opts: []Option{WithKey("other", "test")}, want: denied("spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong")},
		"Signature": {reason: "The error of a wrong secret key names the field.", opts: []Option{WithKey("test", "c4n4ry")}, want: denied("spec.auth.secretRef.secretAccessKeySecretRef: the secret access key does not match the access key id, or the clock of the operator is wrong")},
		"Down":      {reason: "A server error is Unavailable, not a failed login.", fault: &emulator.Fault{Status: 503}, want: provider.NewError(provider.Unavailable, "AWS returned status 503")},
		"Throttled": {reason: "Throttling is Throttled, not a failed login.", fault: &emulator.Fault{Status: 429}, want: provider.NewError(provider.Throttled, "AWS throttles the calls; retrying with back-off")},
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
			if tc.want == nil && srv.Count() != 1 {
				t.Errorf("%s\nCheck(...): %d calls, want 1", tc.reason, srv.Count())
			}
		})
	}
}

// CheckAccounts makes a write of a secret hang in one account. Meanwhile it updates and deletes a secret of the
// same name in another. operation is the one that writes.
func CheckAccounts(t *testing.T, operation string, client func(*emulator.Server) provider.Writer) {
	t.Helper()
	target := provider.Target{Key: "prod-db"}
	observed := func(w provider.Writer) provider.Observed {
		t.Helper()
		o, err := w.Observe(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	connected := func(account string) (*emulator.Server, provider.Writer) {
		t.Helper()
		srv := Start(t, emulator.WithAccount(account))
		w := client(srv)
		if _, err := w.Create(t.Context(), target, []byte("one"), "mark"); err != nil {
			t.Fatal(err)
		}
		return srv, w
	}
	hanging, stuck := connected("111111111111")
	_, healthy := connected("222222222222")
	defer hanging.Inject(emulator.Fault{Call: operation, Hang: true})()
	seen, before := observed(stuck), hanging.Count(operation)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = stuck.Update(ctx, target, seen, []byte("two"))
	}()
	defer func() { cancel(); <-done }()
	if err := hanging.Wait(t.Context(), before+1, operation); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if _, err := healthy.Update(ctx, target, observed(healthy), []byte("two")); err != nil {
		t.Errorf("Update(...) while a write hangs in another account: %v", err)
	}
	if err := healthy.Delete(ctx, target, observed(healthy)); err != nil {
		t.Errorf("Delete(...) while a write hangs in another account: %v", err)
	}
}
