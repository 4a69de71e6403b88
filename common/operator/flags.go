package operator

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// Flags are the command line flags that every module has.
type Flags struct {
	addresses
	leases
	trust
	Modules presence.Catalog

	Concurrency     int
	ControllerClass string
	Namespaces      string
	logs

	DefaultCleanupPolicy string
	ProviderTimeout      time.Duration
	// NoRemoteChanges runs the operator without any change outside the cluster.
	NoRemoteChanges bool
	// ConfigMapTargets lets ExternalSecrets write ConfigMaps, which needs permission.
	ConfigMapTargets bool
	// WorkloadRestarts lets ExternalSecrets restart workloads, which needs permission.
	WorkloadRestarts bool
}

// logs are the flags for logging.
type logs struct {
	LogFormat string
	LogLevel  string
	AuditLog  bool
}

// addresses are the addresses at which an operator listens.
type addresses struct {
	MetricsAddress string
	// MetricsPerObject adds a series for each failing object.
	MetricsPerObject bool
	// MetricsAuth serves metrics over HTTPS, to those who are allowed to read them.
	MetricsAuth bool
	// MetricsCertDir has the certificate for MetricsAuth.
	MetricsCertDir string
	ProbeAddress   string
	PprofAddress   string
	// EventReceiverAddress is where EventReceivers receive; "0" if they do not.
	EventReceiverAddress string
	// EventReceiverCertDir has the certificate for HTTPS there.
	EventReceiverCertDir string
}

// receives reports whether EventReceivers receive.
func (a *addresses) receives() bool {
	return a.EventReceiverAddress != "" && a.EventReceiverAddress != "0"
}

// leases are the flags for the Leases by which replicas, and the operators of other modules, find each other.
type leases struct {
	LeaderElect          bool
	LeaderElectNamespace string
	LeaderElectID        string
	PresenceNamespace    string

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// trust are the flags for what stores can do with credentials.
type trust struct {
	Ambient        string
	AllowPlainHTTP bool
}

// Bind declares the flags.
func (f *Flags) Bind(fs *flag.FlagSet) {
	f.addresses.bind(fs)
	f.leases.bind(fs)
	f.trust.bind(fs)
	f.logs.bind(fs)
	fs.Var(&f.Modules, "module",
		"Installable module and its Kinds, as MODULE=KIND.GROUP,KIND.GROUP; can be repeated. Conditions use it to name the module of a Kind that no running module serves.")
	fs.IntVar(&f.Concurrency, "concurrency", 64, "Maximum number of objects reconciled concurrently. Objects that wait for a provider do not count.")
	fs.StringVar(&f.ControllerClass, "controller-class", "", "Controller class: serve only the stores and generators with this spec.controller. Default: those without a class.")
	fs.StringVar(&f.Namespaces, "namespaces", "", "Comma-separated namespaces to serve. Default: all.")
	fs.StringVar(&f.DefaultCleanupPolicy, "default-secret-cleanup-policy", string(v1alpha1.CleanupOnDelete),
		"cleanupPolicy of ExternalSecrets that do not set it: OnDelete or Never.")
	fs.DurationVar(&f.ProviderTimeout, "provider-timeout", 30*time.Second, "Timeout of one call to a provider, including its retries.")
	fs.BoolVar(&f.ConfigMapTargets, "configmap-targets", false,
		"serve ExternalSecrets whose target.kind is ConfigMap; it needs the permission to write ConfigMaps")
	fs.BoolVar(&f.WorkloadRestarts, "workload-restarts", false,
		"Serve ExternalSecrets with target.restart. It needs the permission to list and patch workloads.")
	fs.BoolVar(&f.NoRemoteChanges, "no-remote-changes", false,
		"Read stores and write Secrets, but change nothing outside the cluster: no push, removal, revocation, renewal or new dynamic credential. For a restored backup, a cloned cluster and a drill.")
}

func (l *logs) bind(fs *flag.FlagSet) {
	fs.StringVar(&l.LogFormat, "log-format", "json", "Log format: json or text.")
	fs.StringVar(&l.LogLevel, "log-level", "info",
		"Minimum log level: debug, info, warn or error. Messages of libraries have level debug, except warnings and errors.")
	fs.BoolVar(&l.AuditLog, "audit-log", false,
		"Log a line for each key of a Secret that is added, changed or removed, with its name and no value, whatever the log level is.")
}

func (a *addresses) bind(fs *flag.FlagSet) {
	fs.StringVar(&a.MetricsAddress, "metrics-bind-address", ":8080", "Address of the metrics endpoint; 0 disables it.")
	fs.BoolVar(&a.MetricsPerObject, "metrics-per-object", false,
		"Add a series with namespace and name for each failing object, at most 1,000, and one for each tenant that has used up a share. Anyone who can read metrics can then read these names.")
	fs.BoolVar(&a.MetricsAuth, "metrics-auth", false,
		"Serve metrics over HTTPS, and only to bearer tokens that the API server allows to get /metrics.")
	fs.StringVar(&a.MetricsCertDir, "metrics-cert-dir", "",
		"Folder with tls.crt and tls.key for --metrics-auth. They are read again when they change. Default: a self-signed certificate, which no client can verify.")
	fs.StringVar(&a.ProbeAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 disables them.")
	fs.StringVar(&a.PprofAddress, "pprof-bind-address", "0", "Address of the Go profiler (pprof); 0 disables it.")
	fs.StringVar(&a.EventReceiverAddress, "event-receiver-bind-address", "0",
		"Address at which EventReceivers and ClusterEventReceivers receive requests; 0 disables it. It needs the permission to list and watch them. A standby replica forwards requests to the leader, at the IP address in its environment variable POD_IP.")
	fs.StringVar(&a.EventReceiverCertDir, "event-receiver-cert-dir", "",
		"Folder with tls.crt and tls.key for --event-receiver-bind-address. They are read again when they change. Default: plain HTTP, for an Ingress with TLS.")
}

func (l *leases) bind(fs *flag.FlagSet) {
	fs.BoolVar(&l.LeaderElect, "leader-elect", true, "Elect a leader, so that one replica is active and the others are standby replicas.")
	fs.StringVar(&l.LeaderElectNamespace, "leader-election-namespace", "", "Namespace of the leader election Lease. Default: the namespace of the operator.")
	fs.StringVar(&l.LeaderElectID, "leader-election-id", "",
		"Name of the leader election Lease. Default: MODULE.direct-secrets.io, or MODULE.CLASS.direct-secrets.io with --controller-class. Operators with the same Lease are replicas of each other.")
	fs.DurationVar(&l.LeaseDuration, "leader-election-lease-duration", leaseDuration, "How long the Lease of a leader that was killed stays valid.")
	fs.DurationVar(&l.RenewDeadline, "leader-election-renew-deadline", renewDeadline, "How long a leader that cannot renew its Lease tries before it stops.")
	fs.DurationVar(&l.RetryPeriod, "leader-election-retry-period", retryPeriod, "Time between two attempts to renew or to get the Lease.")
	fs.StringVar(&l.PresenceNamespace, "presence-namespace", "",
		"Namespace of the presence Leases, by which modules find each other. Default: --leader-election-namespace. All modules need the same namespace.")
}

func (t *trust) bind(fs *flag.FlagSet) {
	fs.StringVar(&t.Ambient, "ambient-credentials", string(credentials.AmbientCluster),
		"Stores without auth that can use the operator's own cloud identity: cluster (cluster stores), all or none.")
	fs.BoolVar(&t.AllowPlainHTTP, "allow-plain-http", false,
		"Allow stores to connect to providers without TLS. Anyone on the network can then read credentials and secrets.")
}

func (t *trust) rules() credentials.Rules {
	return credentials.Rules{Ambient: credentials.Ambient(t.Ambient), PlainHTTP: t.AllowPlainHTTP}
}

// Check returns an error for the first invalid flag.
func (f *Flags) Check() error {
	for _, v := range []struct {
		flag, value string
		allowed     []string
	}{
		{"default-secret-cleanup-policy", f.DefaultCleanupPolicy, []string{string(v1alpha1.CleanupOnDelete), string(v1alpha1.CleanupNever)}},
		{"ambient-credentials", f.Ambient, []string{string(credentials.AmbientCluster), string(credentials.AmbientAll), string(credentials.AmbientNone)}},
		{"log-format", f.LogFormat, []string{"json", "text"}},
		{"log-level", f.LogLevel, slices.Sorted(maps.Keys(levels))},
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
	if f.MetricsCertDir != "" && !f.MetricsAuth {
		return errors.Errorf("--metrics-cert-dir is %s, but metrics are served without TLS; set --metrics-auth too", f.MetricsCertDir)
	}
	if f.EventReceiverCertDir != "" && !f.receives() {
		return errors.Errorf("--event-receiver-cert-dir is %s, but nothing is received; set --event-receiver-bind-address too", f.EventReceiverCertDir)
	}
	if err := f.checkTiming(); err != nil {
		return err
	}
	if why := validation.IsDNS1123Subdomain(f.LeaderElectID); f.LeaderElectID != "" && len(why) > 0 {
		return errors.Errorf("--leader-election-id is %q, which cannot be the name of a Lease: %s", f.LeaderElectID, strings.Join(why, "; "))
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

// namespaced reports whether the operator is limited to some namespaces.
func (f *Flags) namespaced() bool { return len(f.namespaces()) > 0 }
