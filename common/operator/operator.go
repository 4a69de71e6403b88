// Package operator is what the main function of a module calls: flags, manager, metrics, probes,
// and the loops, for the Kinds that the module brings.
package operator

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/fanout"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// An Operator is a module that can run.
type Operator struct {
	name   string
	group  string
	scheme []func(*runtime.Scheme) error
	kinds  []provider.Kind
	flags  Flags
	config *rest.Config
	random func() float64
	now    func() time.Time

	presence presence.Timing
	version  string
}

// An Option sets up an Operator.
type Option func(*Operator)

// New returns the operator of a module. name is that of its binary, for example provider-aws; group
// is its API group, which marks what it writes.
func New(name, group string, opts ...Option) *Operator {
	o := &Operator{name: name, group: group, random: rand.Float64, now: time.Now}
	o.flags.Bind(flag.NewFlagSet(name, flag.ContinueOnError)) // The defaults.
	for _, f := range opts {
		f(o)
	}
	return o
}

// WithScheme registers the module's types.
func WithScheme(add func(*runtime.Scheme) error) Option {
	return func(o *Operator) { o.scheme = append(o.scheme, add) }
}

// WithStore adds a store Kind.
func WithStore(k provider.Kind) Option {
	return func(o *Operator) { o.kinds = append(o.kinds, k) }
}

// WithConfig connects to a cluster other than the one that the environment names; for tests.
func WithConfig(c *rest.Config) Option { return func(o *Operator) { o.config = c } }

// WithFlags replaces the command line; for tests.
func WithFlags(set func(*Flags)) Option { return func(o *Operator) { set(&o.flags) } }

// WithRandom replaces the source of jitter; for tests.
func WithRandom(f func() float64) Option { return func(o *Operator) { o.random = f } }

// WithClock replaces the clock by which refreshes are due; for tests.
func WithClock(now func() time.Time) Option { return func(o *Operator) { o.now = now } }

// WithPresence replaces the timing by which modules know of each other; for tests.
func WithPresence(t presence.Timing) Option { return func(o *Operator) { o.presence = t } }

// WithVersion replaces the version of common that this operator tells of; for tests.
func WithVersion(v string) Option { return func(o *Operator) { o.version = v } }

// watchListGate is the environment variable of a feature gate of client-go; see
// k8s.io/client-go/features. With it caches fill from a stream of events rather than from a list,
// which took 1.2 s instead of 0.7 s for 3,000 objects, and new objects wait for that after a restart.
const watchListGate = "KUBE_FEATURE_WatchListClient"

// gcPercent is how much the heap grows between two collections, in percent; see runtime/debug. Go's default of
// 100 costs memory that an operator which mostly waits does not need. GOGC overrides it.
const gcPercent = 40

// Main parses the command line, runs until a signal comes, and returns the exit code.
func (o *Operator) Main() int {
	if _, set := os.LookupEnv(watchListGate); !set {
		if err := os.Setenv(watchListGate, "false"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	o.flags.Bind(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(o.logger())
	klog.SetLogger(o.logger())
	if err := o.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", o.name, err)
		return 1
	}
	return 0
}

// Run runs the module until ctx ends.
func (o *Operator) Run(ctx context.Context) error {
	if err := o.flags.Check(); err != nil {
		return err
	}
	log := o.logger()
	mgr, err := o.manager()
	if err != nil {
		return err
	}
	if err := o.setup(&readiness{Manager: mgr}); err != nil {
		return err
	}
	log.Info("starting", "module", o.name, "group", o.group)
	return errors.Wrap(mgr.Start(ctx), "stopped")
}

func (o *Operator) logger() logr.Logger {
	if o.flags.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
}

// Loops tell by events what has happened. One that repeats is patched.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func (o *Operator) manager() (manager.Manager, error) {
	cfg := o.config
	if cfg == nil {
		var err error
		if cfg, err = ctrl.GetConfig(); err != nil {
			return nil, errors.Wrap(err, "cannot find a cluster")
		}
	}
	cfg = rest.CopyConfig(cfg)
	// The API server's priority and fairness limits us; a second limit in the client only makes
	// bursts slow.
	cfg.QPS = -1
	cfg.UserAgent = "direct-secrets/" + o.name

	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme}, o.scheme...) {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "cannot register types")
		}
	}
	transform, err := referrers.Transform(scheme, o.kinds, o.group, o.flags.ControllerClass, fanout.Reduce)
	if err != nil {
		return nil, err
	}
	yes := true
	lock, err := o.lock(cfg)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Logger:                 o.logger(),
		Scheme:                 scheme,
		Cache:                  o.cache(transform),
		Metrics:                metricsserver.Options{BindAddress: o.flags.MetricsAddress},
		HealthProbeBindAddress: o.flags.ProbeAddress,
		PprofBindAddress:       o.flags.PprofAddress,

		LeaderElection:                      o.flags.LeaderElect,
		LeaderElectionID:                    o.leaseName(), // It is what metrics call the lock.
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       new(leaseDuration),
		RenewDeadline:                       new(renewDeadline),
		RetryPeriod:                         new(retryPeriod),

		// Caches fill while another replica still leads. (Tests run several operators in one
		// process, so names of controllers are not unique.)
		Controller: config.Controller{EnableWarmup: &yes, SkipNameValidation: &yes},
	})
	return mgr, errors.Wrap(err, "cannot make the manager")
}

// cache holds ExternalSecrets, and of Secrets only the metadata of those that this module writes.
// Objects are read without a copy, so no loop may change what it got from the cache.
func (o *Operator) cache(transform toolscache.TransformFunc) cache.Options {
	yes := true
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	opts := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ExternalSecret{}: {
				Transform:             transform,
				UnsafeDisableDeepCopy: &yes,
			},
			secrets: {
				Label: labels.SelectorFromSet(labels.Set{target.ManagedLabel(o.group): "true"}),
				Transform: func(obj any) (any, error) {
					if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
						target.Reduce(m)
					}
					return obj, nil
				},
				UnsafeDisableDeepCopy: &yes,
			},
		},
	}
	for _, n := range o.flags.namespaces() {
		if opts.DefaultNamespaces == nil {
			opts.DefaultNamespaces = map[string]cache.Config{}
		}
		opts.DefaultNamespaces[n] = cache.Config{}
	}
	return opts
}
