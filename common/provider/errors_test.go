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
)

// secret stands for whatever an SDK may put into the text of its errors.
const secret = "hunter2"

var errBoom = errors.New("POST /v1/login?password=" + secret)

func TestClassOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   provider.Class
	}{
		"Own": {
			reason: "An Error has the class that it was made with.",
			err:    provider.NewError(provider.Denied, "no"),
			want:   provider.Denied,
		},
		"Wrapped": {
			reason: "Wrapping keeps the class.",
			err:    errors.Wrap(errors.Wrap(provider.NewError(provider.NotFound, "gone"), "a"), "b"),
			want:   provider.NotFound,
		},
		"Outermost": {
			reason: "Who wraps an error anew knows better what it means.",
			err:    wrapping{provider.NewError(provider.Invalid, "outer"), provider.NewError(provider.NotFound, "inner")},
			want:   provider.Invalid,
		},
		"Unknown": {
			reason: "An unknown error proves nothing.",
			err:    errBoom,
			want:   provider.Unavailable,
		},
		"Deadline": {
			reason: "No answer in time proves nothing.",
			err:    context.DeadlineExceeded,
			want:   provider.Unavailable,
		},
		"TextOnly": {
			reason: "The words of an error do not count.",
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
		t.Error("IsNotFound(nil): success is no NotFound")
	}
}

// wrapping is an Error that wraps another one.
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
		"Said":    {"The time that a provider asks for is passed on, through wrapping, too.", errors.Wrap(slow, "cannot read"), time.Minute},
		"Hours":   {"A provider cannot stop its store for hours.", hostile, 5 * time.Minute},
		"Past":    {"A wait that is over is none.", back, 0},
		"NotSaid": {"A provider need not say.", provider.NewError(provider.Throttled, "slow down"), 0},
		"Unknown": {"An unknown error says nothing.", errBoom, 0},
		"None":    {"Success asks for no pause.", nil, 0},
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
		"None":    {"No error is none.", nil, nil},
		"Own":     {"The field takes the place of the word.", provider.NewError(provider.Invalid, "auth: no such Secret"), provider.NewError(provider.Invalid, field+": no such Secret")},
		"Other":   {"Or stands before what does not begin so.", provider.NewError(provider.Invalid, "auth is not set"), provider.NewError(provider.Invalid, field+": auth is not set")},
		"Wrapped": {"What others wrapped around it is withheld.", errors.Wrap(&provider.Error{Class: provider.Throttled, Message: "slow down", RetryAfter: time.Second}, secret), &provider.Error{Class: provider.Throttled, Message: field + ": slow down", RetryAfter: time.Second}},
		"Unknown": {"So is the text of any other error.", errBoom, provider.NewError(provider.Unavailable, field+": cannot be read")},
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
			reason: "Success has no message.",
		},
		"Own": {
			reason: "The text of an Error is meant for users; that of what wraps it is not.",
			err:    errors.Wrap(provider.NewError(provider.Denied, "role %q may not read", "r"), secret),
			want:   provider.NewError(provider.Denied, `role "r" may not read`),
		},
		"Unknown": {
			reason: "Of an unknown error only the type is shown.",
			err:    stderrors.New(errBoom.Error()),
			want:   provider.NewError(provider.Unavailable, "the provider's answer could not be used (*errors.errorString)"),
		},
		"Deadline": {
			reason: "A deadline is told apart from a refusal.",
			err:    errors.Wrap(context.DeadlineExceeded, secret),
			want:   provider.NewError(provider.Unavailable, "the provider did not answer in time"),
		},
		"Canceled": {
			reason: "So is a call that we gave up.",
			err:    errors.Wrap(context.Canceled, secret),
			want:   provider.NewError(provider.Unavailable, "the call was cancelled"),
		},
		"Unsupported": {
			reason: "Asking again does not help.",
			err:    errors.Wrap(stderrors.ErrUnsupported, secret),
			want:   provider.NewError(provider.Invalid, "not implemented: this store cannot do that"),
		},
		"DNS": {
			reason: "A name that does not resolve is the most frequent mistake in an endpoint.",
			err:    errors.Wrap(&net.DNSError{Name: "vault.example", Err: secret}, secret),
			want:   provider.NewError(provider.Unavailable, `cannot resolve the provider's address "vault.example"`),
		},
		"Refused": {
			reason: "A connection that fails says where.",
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
