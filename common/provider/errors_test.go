package provider_test

import (
	"context"
	stderrors "errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// secret is a value that an SDK might put into the text of its errors.
const secret = "hunter2"

var errBoom = errors.New("POST /v1/login?password=" + secret)

func TestClassOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   provider.Class
	}{
		"Own": {
			reason: "An Error has its own class.",
			err:    provider.NewError(provider.Denied, "no"),
			want:   provider.Denied,
		},
		"Wrapped": {
			reason: "Wrapping keeps the class.",
			err:    errors.Wrap(errors.Wrap(provider.NewError(provider.NotFound, "gone"), "a"), "b"),
			want:   provider.NotFound,
		},
		"Outermost": {
			reason: "The outer of two Errors counts.",
			err:    wrapping{provider.NewError(provider.Invalid, "outer"), provider.NewError(provider.NotFound, "inner")},
			want:   provider.Invalid,
		},
		"Unknown": {
			reason: "An unknown error is Unavailable.",
			err:    errBoom,
			want:   provider.Unavailable,
		},
		"Deadline": {
			reason: "A timeout is Unavailable.",
			err:    context.DeadlineExceeded,
			want:   provider.Unavailable,
		},
		"TextOnly": {
			reason: "The text of an error does not count.",
			err:    errors.New("NotFound: secret does not exist"),
			want:   provider.Unavailable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.ClassOf(tc.err)); diff != "" {
				t.Errorf("%s\nClassOf(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want == provider.NotFound, provider.IsNotFound(tc.err)); diff != "" {
				t.Errorf("%s\nIsNotFound(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if provider.IsNotFound(nil) {
		t.Error("IsNotFound(nil): true, want false")
	}
}

// wrapping is an Error that wraps another error.
type wrapping struct {
	outer *provider.Error
	inner error
}

func (w wrapping) As(target any) bool {
	e, ok := target.(**provider.Error)
	if ok {
		*e = w.outer
	}
	return ok
}

func (w wrapping) Error() string { return w.outer.Error() }
func (w wrapping) Unwrap() error { return w.inner }

func TestRetryAfter(t *testing.T) {
	slow := provider.NewError(provider.Throttled, "slow down")
	slow.RetryAfter = time.Minute
	hostile := &provider.Error{Class: provider.Throttled, RetryAfter: 719 * time.Hour}
	back := &provider.Error{Class: provider.Throttled, RetryAfter: -time.Hour}
	cases := map[string]struct {
		reason string
		err    error
		want   time.Duration
	}{
		"Said":    {"The provider's time to wait is returned, also of a wrapped error.", errors.Wrap(slow, "cannot read"), time.Minute},
		"Hours":   {"A time to wait of hours is cut.", hostile, 5 * time.Minute},
		"Past":    {"A negative time to wait is zero.", back, 0},
		"NotSaid": {"Without a time to wait it is zero.", provider.NewError(provider.Throttled, "slow down"), 0},
		"Unknown": {"For an unknown error it is zero.", errBoom, 0},
		"None":    {"Without an error it is zero.", nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.RetryAfter(tc.err)); diff != "" {
				t.Errorf("%s\nRetryAfter(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestField(t *testing.T) {
	const field = "spec.auth.secretRef"
	cases := map[string]struct {
		reason string
		err    error
		want   error
	}{
		"None":    {"Without an error there is none.", nil, nil},
		"Own":     {"The field replaces the word auth.", provider.NewError(provider.Invalid, "auth: no such Secret"), provider.NewError(provider.Invalid, field+": no such Secret")},
		"Other":   {"The field precedes a message that does not start with auth.", provider.NewError(provider.Invalid, "auth is not set"), provider.NewError(provider.Invalid, field+": auth is not set")},
		"Wrapped": {"The text of a wrapping error is not shown.", errors.Wrap(&provider.Error{Class: provider.Throttled, Message: "slow down", RetryAfter: time.Second}, secret), &provider.Error{Class: provider.Throttled, Message: field + ": slow down", RetryAfter: time.Second}},
		"Unknown": {"The text of an unknown error is not shown.", errBoom, provider.NewError(provider.Unavailable, field+": cannot be read")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.Field(field, tc.err)); diff != "" {
				t.Errorf("%s\nField(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSafe(t *testing.T) {
	op := &net.OpError{Op: "dial", Net: "tcp", Err: errBoom}
	cases := map[string]struct {
		reason string
		err    error
		want   *provider.Error
	}{
		"Nil": {
			reason: "Without an error there is no message.",
		},
		"Own": {
			reason: "The text of an Error is shown, that of a wrapping error is not.",
			err:    errors.Wrap(provider.NewError(provider.Denied, "role %q cannot read", "r"), secret),
			want:   provider.NewError(provider.Denied, `role "r" cannot read`),
		},
		"Unknown": {
			reason: "Of an unknown error only the type is shown.",
			err:    stderrors.New(errBoom.Error()),
			want:   provider.NewError(provider.Unavailable, "the provider's response could not be used (*errors.errorString)"),
		},
		"Deadline": {
			reason: "A timeout has its own message.",
			err:    errors.Wrap(context.DeadlineExceeded, secret),
			want:   provider.NewError(provider.Unavailable, "the provider did not answer in time"),
		},
		"Canceled": {
			reason: "A cancelled call has its own message.",
			err:    errors.Wrap(context.Canceled, secret),
			want:   provider.NewError(provider.Unavailable, "the call was cancelled"),
		},
		"Unsupported": {
			reason: "An unsupported call is Invalid: a retry does not help.",
			err:    errors.Wrap(stderrors.ErrUnsupported, secret),
			want:   provider.NewError(provider.Invalid, "the Kind of this store does not support the operation; use a store of another Kind"),
		},
		"DNS": {
			reason: "The message names an address that cannot be resolved.",
			err:    errors.Wrap(&net.DNSError{Name: "vault.example", Err: secret}, secret),
			want:   provider.NewError(provider.Unavailable, `cannot resolve the provider's address "vault.example"`),
		},
		"Refused": {
			reason: "The message names the failed network operation.",
			err:    errors.Wrap(op, secret),
			want:   provider.NewError(provider.Unavailable, "cannot reach the provider: dial tcp failed"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := provider.Safe(tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nSafe(...): -want, +got:\n%s", tc.reason, diff)
			}
			if got != nil && strings.Contains(got.Error(), secret) {
				t.Errorf("%s\nSafe(...) shows the text of the error: %s", tc.reason, got)
			}
		})
	}
}

// TestSafeLacking calls what a store does not have. The message says what the store is, and the fix.
func TestSafeLacking(t *testing.T) {
	l := fake.Link("Test", getter(echo))
	_, write := l.Features()
	var find error
	for _, err := range l.Find(t.Context(), provider.Query{}) {
		find = err
	}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Write": {"A store without a Writer is read-only.", write, "the store is read-only, because its Kind cannot write secrets; push to a store of another Kind"},
		"Find":  {"A store without a Finder needs the names.", find, "the Kind of this store cannot list secrets, as find needs; name each secret in data or dataFrom.extract, or use a store of another Kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(provider.NewError(provider.Invalid, "%s", tc.want), provider.Safe(tc.err)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
