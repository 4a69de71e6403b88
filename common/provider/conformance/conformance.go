// Package conformance is the conformance suite of the provider contract. A provider fills a Harness and calls Run.
// The capabilities of its clients follow from the interfaces that they implement:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{Connect: …, ConnectTo: …, Put: …, Delete: …, Inject: …})
//	}
//
// The harness provides the provider's server, real or emulated. The suite starts further servers on loopback: servers
// with invalid certificates, servers that hang, cut off answers, redirect or send garbage, and a proxy that adds
// fields of a newer version to answers. A provider without a network must name that in Without; a harness that only
// omits ConnectTo fails.
//
// The checks are functions that return an error, so that package fake can test the suite itself with broken clients.
package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Harness connects the suite to a provider. Its functions must be safe for concurrent use.
type Harness struct {
	// Kind is the Kind of the store, and Service the name and version of the provider's server, for the published table. Unset:
	// nothing is published.
	Kind, Service string

	// Connect returns a client with valid credentials, and with few and short retries: the suite injects errors that
	// a client would retry.
	Connect func(ctx context.Context) (provider.Client, error)

	// ConnectDenied is Connect with credentials that the provider rejects. It can return an error if connecting
	// includes a login.
	ConnectDenied func(ctx context.Context) (provider.Client, error)

	// ConnectElsewhere returns a working client of another place: another account, project or mount. An Identifier
	// needs it.
	ConnectElsewhere func(ctx context.Context) (provider.Client, error)

	// Spell returns another key of an existing secret. A Namer needs it.
	Spell func(ctx context.Context, key string) (string, error)

	// Put stores data as the current version of key, and keeps older versions. Nil tags keep the secret's tags. It
	// writes to the provider directly, not through a client.
	Put func(ctx context.Context, key string, data []byte, tags map[string]string) error

	// Delete deletes a secret with all its versions. Later reads must not find it.
	Delete func(ctx context.Context, key string) error

	// Inject makes the provider fail until the returned function is called.
	Inject func(f Fault) (remove func(), err error)

	// Key converts a name such as "read-text/a" to a key of the provider. Names consist of a to z, 0 to 9, "-" and
	// "/". The part after the last "/" must not change. Default: the name.
	Key func(name string) string

	// Path converts a directory such as "find-path/in" to a provider.Query's Path for the keys below it. Default:
	// Key(dir + "/").
	Path func(dir string) string

	// NoVersion has the format of a version, but no secret has it. Default: "999999".
	NoVersion string

	// JSONOnly is true for a provider that stores only JSON objects. The suite then writes no other values, and
	// accepts the same JSON in another format.
	JSONOnly bool

	// MaxSize limits the values that the provider accepts, in bytes, if that is less than 60 KB.
	MaxSize int

	// MaxWrite is the maximum size of a value for a Writer, in bytes.
	MaxWrite int

	// Metadata are two JSON objects with settings of a secret, in the terms of the Writer. They differ in every
	// field.
	Metadata []string

	// EndTimeout is how long a call can continue after its context has ended. Default: 5s.
	EndTimeout time.Duration

	// ConnectTo is Connect for a server at another URL, as in the spec of a store: plain http on loopback, or https.
	// If logins use another server than reads, they must use the provider's own. A provider without a network names
	// "transport" in Without.
	ConnectTo func(ctx context.Context, url string) (provider.Client, error)

	// Server is the URL of the provider's server, without TLS. With ConnectTo, the suite starts its own servers in
	// front of it.
	Server string

	// Without holds the names of checks, or of groups such as "transport", that cannot be made, with the reason: the
	// provider does not have the feature, or the harness cannot inject the fault. Run logs them.
	Without map[string]string
}

// A Failure is a way in which a provider fails.
type Failure string

// The ways to fail. The harness makes the provider fail as it really would.
const (
	// Denied: the identity is known, but does not have the permission.
	Denied Failure = "denied"
	// Throttled: too many calls.
	Throttled Failure = "throttled"
	// Unavailable: an internal error of the provider, such as a 500.
	Unavailable Failure = "unavailable"
	// Hang: no answer while the fault is active.
	Hang Failure = "hang"
	// Dropped: the answer does not contain a requested secret. It always has a Key, and is not used for Get.
	Dropped Failure = "dropped"
)

// A Fault is a Failure of every call or, if Key is set, only of that secret: of Get, of its entry in a batch, and of
// its value in a list. Other entries must then be answered.
type Fault struct {
	Failure Failure
	// Key is the provider's key.
	Key string
}

// A Check is one requirement for clients.
type Check struct {
	Name string
	// Reason is why it matters.
	Reason string
	// Capability is the one that the Check is about.
	Capability string
	// Run returns the error of the check, or nil.
	Run func(ctx context.Context) error
}

// Run makes all checks of a provider, each as a subtest. It makes none for interfaces that the clients do not
// implement.
func Run(t *testing.T, h Harness) {
	t.Helper()
	checks, err := Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range h.Without {
		t.Logf("without %s: %s", name, why)
	}
	all := map[string]*Result{}
	for _, c := range checks {
		passed := t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("%s:\n%v", c.Reason, err)
			}
		})
		if all[c.Capability] == nil {
			all[c.Capability] = &Result{Kind: h.Kind, Service: h.Service, Capability: c.Capability}
		}
		if passed {
			all[c.Capability].Passed++
		} else {
			all[c.Capability].Failed++
		}
	}
	if read := all[provider.CapabilityRead]; read != nil {
		read.Without = h.Without
	}
	for _, capability := range slices.Sorted(maps.Keys(all)) {
		all[capability].Log(t)
	}
}

// Checks returns the checks for the clients of a harness.
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
	if _, ok := c.(provider.Namer); ok {
		caps = append(caps, spells)
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
		capability := c.needs
		if capability == spells {
			capability = identifies // Both are about the identity of secrets.
		}
		checks = append(checks, Check{Name: c.name, Reason: c.reason, Capability: capability, Run: func(ctx context.Context) error {
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

// hasMetadata reports whether the provider has metadata to read. Without it, a request for metadata is Invalid.
func (h Harness) hasMetadata() bool {
	_, without := h.Without["read/metadata"]
	return !without
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
	if h.EndTimeout == 0 {
		h.EndTimeout = 5 * time.Second
	}
	return h
}

// check is a Check without a harness.
type check struct {
	name   string
	needs  string // a capability, identifies or spells
	reason string
	run    func(ctx context.Context, e *env) error
}

// is reports whether name is the name of the check, or of its group, which is the part before the slash.
func (c check) is(name string) bool {
	group, _, _ := strings.Cut(c.name, "/")
	return name == c.name || name == group
}

// in runs the check with its own client, and deletes the secrets that it has created.
func (c check) in(ctx context.Context, h Harness) (err error) {
	client, err := h.Connect(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot connect")
	}
	e := newEnv(h, c.name, client)
	defer func() { err = errors.Join(err, e.cleanUp(context.WithoutCancel(ctx)), provider.Close(client)) }()
	return c.run(ctx, e)
}
