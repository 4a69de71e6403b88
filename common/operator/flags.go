package operator

import (
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// Flags are the settings that every module takes on its command line.
type Flags struct {
	addresses
	leases
	trust
	Modules presence.Catalog

	Concurrency     int
	ControllerClass string
	Namespaces      string
	LogFormat       string

	DefaultCleanupPolicy string
	ProviderTimeout      time.Duration
}

// addresses are those at which an operator listens.
type addresses struct {
	MetricsAddress string
	ProbeAddress   string
	PprofAddress   string
}

// leases say where replicas, and the operators of other modules, find each other.
type leases struct {
	LeaderElect          bool
	LeaderElectNamespace string
	PresenceNamespace    string
}

// trust is what stores may do with credentials.
type trust struct {
	Ambient        string
	AllowPlainHTTP bool
}

// Bind declares the flags.
func (f *Flags) Bind(fs *flag.FlagSet) {
	f.addresses.bind(fs)
	f.leases.bind(fs)
	f.trust.bind(fs)
	fs.Var(&f.Modules, "module",
		"A module that can be installed and the Kinds that it serves, as MODULE=KIND.GROUP,KIND.GROUP; may be repeated. Conditions name the module of a Kind that no running module serves.")
	fs.IntVar(&f.Concurrency, "concurrency", 64, "ExternalSecrets that are worked on at once.")
	fs.StringVar(&f.ControllerClass, "controller-class", "", "Serve only the stores whose spec.controller is this class.")
	fs.StringVar(&f.Namespaces, "namespaces", "", "Namespaces to serve, separated by commas; default: all.")
	fs.StringVar(&f.LogFormat, "log-format", "json", "json or text.")
	fs.StringVar(&f.DefaultCleanupPolicy, "default-secret-cleanup-policy", string(v1alpha1.CleanupOnDelete),
		"cleanupPolicy of ExternalSecrets that leave it unset: OnDelete or Never.")
	fs.DurationVar(&f.ProviderTimeout, "provider-timeout", 30*time.Second, "Deadline of one call to a provider, its retries included.")
}

func (a *addresses) bind(fs *flag.FlagSet) {
	fs.StringVar(&a.MetricsAddress, "metrics-bind-address", ":8080", "Address of the metrics; 0 turns them off.")
	fs.StringVar(&a.ProbeAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 turns them off.")
	fs.StringVar(&a.PprofAddress, "pprof-bind-address", "0", "Address of the Go profiler; 0 turns it off.")
}

func (l *leases) bind(fs *flag.FlagSet) {
	fs.BoolVar(&l.LeaderElect, "leader-elect", true, "Let one replica work at a time.")
	fs.StringVar(&l.LeaderElectNamespace, "leader-election-namespace", "", "Namespace of the lease; default: the operator's own.")
	fs.StringVar(&l.PresenceNamespace, "presence-namespace", "",
		"Namespace of the leases by which modules know of each other; default: that of --leader-election-namespace. All modules need the same.")
}

func (t *trust) bind(fs *flag.FlagSet) {
	fs.StringVar(&t.Ambient, "ambient-credentials", string(credentials.AmbientCluster),
		"Stores without auth that may use the operator's own cloud identity: cluster, all or none.")
	fs.BoolVar(&t.AllowPlainHTTP, "allow-plain-http", false,
		"Let stores talk to providers without TLS. Credentials and secrets can then be read on the way.")
}

func (t *trust) rules() credentials.Rules {
	return credentials.Rules{Ambient: credentials.Ambient(t.Ambient), PlainHTTP: t.AllowPlainHTTP}
}

// Check returns an error that names the first flag that cannot be used.
func (f *Flags) Check() error {
	for _, v := range []struct {
		flag, value string
		allowed     []string
	}{
		{"default-secret-cleanup-policy", f.DefaultCleanupPolicy, []string{string(v1alpha1.CleanupOnDelete), string(v1alpha1.CleanupNever)}},
		{"ambient-credentials", f.Ambient, []string{string(credentials.AmbientCluster), string(credentials.AmbientAll), string(credentials.AmbientNone)}},
		{"log-format", f.LogFormat, []string{"json", "text"}},
	} {
		if !slices.Contains(v.allowed, v.value) {
			return errors.Errorf("--%s is %q; it must be one of %s", v.flag, v.value, strings.Join(v.allowed, ", "))
		}
	}
	if f.Concurrency < 1 {
		return errors.Errorf("--concurrency is %d; it must be at least 1", f.Concurrency)
	}
	if f.ProviderTimeout <= 0 {
		return errors.Errorf("--provider-timeout is %s; it must be more than 0", f.ProviderTimeout)
	}
	return nil
}

func (f *Flags) namespaces() []string {
	var out []string
	for n := range strings.SplitSeq(f.Namespaces, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// namespaced reports whether the operator serves chosen namespaces only.
func (f *Flags) namespaced() bool { return len(f.namespaces()) > 0 }
