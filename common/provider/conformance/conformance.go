// Package conformance is the conformance suite of the provider contract. A provider fills a Harness and
// calls Run; what its clients can do is read from the interfaces that they implement:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{Connect: …, ConnectTo: …, Put: …, Delete: …, Inject: …})
//	}
//
// The harness brings the provider's server, real or emulated. Others the suite starts itself, on
// loopback: those with bad certificates, which hang, cut answers, send elsewhere or talk nonsense, and a
// proxy that makes answers of a newer version. A provider without a network says so in Without; one that
// merely leaves ConnectTo out fails.
//
// The checks are functions that return an error, so that the suite itself is tested against broken
// clients, in package fake.
package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Harness joins the suite to a provider. Its functions must be safe for concurrent use.
type Harness struct {
	// Connect returns a client with good credentials, and with few and short retries: the suite
	// injects errors that a client would retry.
	Connect func(ctx context.Context) (provider.Client, error)

	// ConnectDenied does the same with credentials that the provider rejects. It may fail where
	// connecting already logs in.
	ConnectDenied func(ctx context.Context) (provider.Client, error)

	// ConnectElsewhere returns a client that works, of another place: another account, project or mount. It is needed for an
	// Identifier.
	ConnectElsewhere func(ctx context.Context) (provider.Client, error)

	// Put stores data as the current version of key; older versions stay. No tags leaves those
	// that the secret has. It goes to the provider directly, not through a client.
	Put func(ctx context.Context, key string, data []byte, tags map[string]string) error

	// Delete removes a secret and all its versions in a way that reads see at once.
	Delete func(ctx context.Context, key string) error

	// Inject makes the provider fail from now on, until the function that it returns is called.
	Inject func(f Fault) (remove func(), err error)

	// Key spells a name such as "read-text/a" as the provider does. Names consist of a to z, 0 to 9,
	// "-" and "/"; what follows the last "/" must stay as it is. Default: the name.
	Key func(name string) string

	// Path spells a directory such as "find-path/in" so that, as a provider.Query's Path, it selects
	// the keys below it. Default: Key(dir + "/").
	Path func(dir string) string

	// NoVersion is spelled like a version, but no secret has it. Default: "999999".
	NoVersion string

	// JSONOnly says that the provider holds JSON objects only. Other values are then not tried, and
	// what is read need only be the same JSON.
	JSONOnly bool

	// MaxSize is the largest value in bytes that the provider takes, if that is less than 60 KB.
	MaxSize int

	// MaxWrite is the largest value in bytes that a Writer takes.
	MaxWrite int

	// Metadata are two JSON objects of settings for a secret that differ in every field, in the terms of
	// the Writer.
	Metadata []string

	// Patience is how long a call may go on after its context ended. Default: 5s.
	Patience time.Duration

	// ConnectTo is Connect for a server at another URL, as the spec of a store would name it: plain
	// http on loopback, or https. Where logins go to another server than reads, they go to the good
	// one. A provider without a network names "transport" in Without.
	ConnectTo func(ctx context.Context, url string) (provider.Client, error)

	// Server is the URL of the provider's server, without TLS. With ConnectTo the suite puts servers
	// of its own before it.
	Server string

	// Without holds names of checks that cannot be made, or of groups of them, such as "transport";
	// and why: because the provider has no such thing, or the harness cannot inject it. Run logs them.
	Without map[string]string
}

// A Failure is a way in which a provider fails.
type Failure string

// The ways to fail, each in the form in which the provider would do it.
const (
	// Denied: the identity is known but may not read.
	Denied Failure = "denied"
	// Throttled: too many calls.
	Throttled Failure = "throttled"
	// Unavailable: an internal error of the provider, such as a 500.
	Unavailable Failure = "unavailable"
	// Hang: no answer, for as long as the fault is there.
	Hang Failure = "hang"
	// Dropped: the answer lacks a secret that was asked for. Always with a Key, and not for Get.
	Dropped Failure = "dropped"
)

// A Fault is a Failure of every call, or where Key is set, of what concerns that one secret: Get of
// it, its entry of a batch, its value in a list. The other entries must be answered then.
type Fault struct {
	Failure Failure
	// Key as the provider spells it.
	Key string
}

// A Check is one fact that clients must satisfy.
type Check struct {
	Name string
	// Reason says why it matters.
	Reason string
	// Run returns what is wrong, or nil.
	Run func(ctx context.Context) error
}

// Run checks a provider; each Check is a subtest. There are none for interfaces that its clients do
// not implement.
func Run(t *testing.T, h Harness) {
	t.Helper()
	checks, err := Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range h.Without {
		t.Logf("without %s: %s", name, why)
	}
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("%s:\n%v", c.Reason, err)
			}
		})
	}
}

// Checks returns the checks that apply to the clients of a harness.
func Checks(ctx context.Context, h Harness) ([]Check, error) {
	h = h.complete()
	c, err := h.Connect(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "cannot connect")
	}
	caps := provider.Capabilities(c)
	if _, ok := c.(provider.Identifier); ok {
		caps = append(caps, identifies)
	}
	if err := provider.Close(c); err != nil {
		return nil, errors.Wrap(err, "cannot close a client")
	}

	all := slices.Concat(readChecks(h), nameChecks, batchChecks, findChecks, checkChecks, sharedChecks, writeChecks, transportChecks)
	for name := range h.Without {
		if !slices.ContainsFunc(all, func(c check) bool { return c.is(name) }) {
			return nil, errors.Errorf("Harness.Without names %q, which is no check", name)
		}
	}
	var checks []Check
	for _, c := range all {
		if h.without(c) || !slices.Contains(caps, c.needs) {
			continue
		}
		checks = append(checks, Check{Name: c.name, Reason: c.reason, Run: func(ctx context.Context) error {
			return c.in(ctx, h)
		}})
	}
	return checks, nil
}

func (h Harness) without(c check) bool {
	for name := range h.Without {
		if c.is(name) {
			return true
		}
	}
	return false
}

func (h Harness) complete() Harness {
	if h.Key == nil {
		h.Key = func(name string) string { return name }
	}
	if h.Path == nil {
		key := h.Key
		h.Path = func(dir string) string { return key(dir + "/") }
	}
	if h.NoVersion == "" {
		h.NoVersion = "999999"
	}
	if h.Patience == 0 {
		h.Patience = 5 * time.Second
	}
	return h
}

// check is a Check before it is tied to a harness.
type check struct {
	name   string
	needs  string // a capability, or identifies
	reason string
	run    func(ctx context.Context, e *env) error
}

// is reports whether name is that of the check, or of its group: what stands before the slash.
func (c check) is(name string) bool {
	group, _, _ := strings.Cut(c.name, "/")
	return name == c.name || name == group
}

// in runs the check with a client of its own, and removes the secrets that it put.
func (c check) in(ctx context.Context, h Harness) (err error) {
	client, err := h.Connect(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot connect")
	}
	e := &env{h: h, name: c.name, client: client}
	defer func() { err = errors.Join(err, e.cleanUp(context.WithoutCancel(ctx)), provider.Close(client)) }()
	return c.run(ctx, e)
}
