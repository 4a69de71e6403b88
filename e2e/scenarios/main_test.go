// Package scenarios runs complete scenarios with the real control plane, the emulator of AWS, and modules as
// processes with the permissions that they ship.
package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

var shared *stack.Stack

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the modules of this checkout, so that no old binary is tested, and starts one stack. If the tests are built
// with the race detector, so are the modules; stack.Stop reports the races.
func run(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "direct-secrets-bin-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, module := range builtModules {
		if err := build(module, filepath.Join(dir, module), raceFlags...); err != nil {
			return 1, err
		}
	}
	if err := os.Setenv(stack.BinEnv, dir); err != nil {
		return 1, err
	}
	shared, err = stack.Start(context.Background(), stack.Options{Audit: true, Bare: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if err := checkVersion(shared); err != nil {
		return 1, err
	}
	if err := install(context.Background(), shared); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// checkVersion prints the version of Kubernetes, and checks that it is the requested one.
func checkVersion(s *stack.Stack) error {
	clients, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		return err
	}
	version, err := clients.ServerVersion()
	if err != nil {
		return err
	}
	fmt.Println("Kubernetes", version.GitVersion)
	if want := os.Getenv("K8S"); want != "" && strings.TrimPrefix(version.GitVersion, "v") != strings.TrimPrefix(want, "v") {
		return fmt.Errorf("the API server is %s, and K8S is %s", version.GitVersion, want)
	}
	return nil
}

// patient are flags of leaders that renew late, because the API server may answer late while other tests run.
var patient = []string{"--leader-election-renew-deadline=1m", "--leader-election-lease-duration=90s"}

// install installs the chart for all namespaces, as a platform team would.
func install(ctx context.Context, s *stack.Stack) (err error) {
	if s.Installation, err = upgrade(ctx, s, "direct-secrets", stack.Namespace); err != nil {
		return err
	}
	return s.ServeCRDs(ctx)
}

// upgrade installs or upgrades a release of this checkout's umbrella chart with all modules.
func upgrade(ctx context.Context, s *stack.Stack, release, namespace string, values ...stack.Values) (*stack.Installation, error) {
	chart, err := stack.Chart()
	if err != nil {
		return nil, err
	}
	return upgradeTo(ctx, s, chart, release, namespace, values...)
}

// upgradeTo is upgrade with another chart, for example one of another version.
func upgradeTo(ctx context.Context, s *stack.Stack, chart, release, namespace string, values ...stack.Values) (*stack.Installation, error) {
	helmClient, err := helm.New(s.Config())
	if err != nil {
		return nil, err
	}
	if _, err := helmClient.Upgrade(ctx, helm.Release{Name: release, Namespace: namespace, Chart: chart, Values: s.Values(values...), CreateNamespace: true}); err != nil {
		return nil, err
	}
	return s.Release(release, namespace), nil
}

// scoped are the releases for selected namespaces, by their settings.
var scoped = struct {
	sync.Mutex
	releases map[string]*stack.Installation
}{releases: map[string]*stack.Installation{}}

// installFor installs the chart for selected namespaces, separated by commas. All modules get Roles, and no
// cluster-wide permissions. presence is the namespace of the modules' presence Leases; the default is their
// own.
func installFor(t *testing.T, namespaces, presence string) *stack.Installation {
	t.Helper()
	scoped.Lock()
	defer scoped.Unlock()
	key := namespaces + "/" + presence
	if scoped.releases[key] == nil {
		own := fmt.Sprintf("operators-%d", len(scoped.releases))
		i, err := upgrade(t.Context(), shared, "direct-secrets", own, stack.Values{
			"global": stack.Values{
				"scope": stack.Values{"namespaces": strings.Split(namespaces, ",")}, "presenceNamespace": presence,
				"crds": stack.Values{"enabled": false}, "leaderElection": stack.Values{"enabled": false},
			},
		})
		must(t, err)
		scoped.releases[key] = i
	}
	return scoped.releases[key]
}

// presenceOf returns the namespace of the presence Leases in flags.
func presenceOf(flags []string) string {
	for _, f := range flags {
		if ns, ok := strings.CutPrefix(f, "--presence-namespace="); ok {
			return ns
		}
	}
	return ""
}

// build builds a module, with further flags of `go build`.
func build(module, binary string, flags ...string) error {
	return buildIn(filepath.Join("..", "..", module), binary, flags...)
}

// buildIn builds the module in a folder.
func buildIn(folder, binary string, flags ...string) error {
	args, env := []string{"build", "-ldflags", "-s -w", "-o", binary}, os.Environ()
	if !slices.Contains(flags, "-race") { // The same settings as in `make build`. The race detector needs cgo, and can reuse the build results of the tests.
		args, env = append(args, "-trimpath"), append(env, "CGO_ENABLED=0")
	}
	cmd := exec.Command("go", append(append(args, flags...), ".")...) //nolint:noctx // It ends by itself.
	cmd.Dir, cmd.Env = folder, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// start runs provider-aws for selected namespaces until the test ends.
func start(t *testing.T, namespace string, flags ...string) *stack.Process {
	t.Helper()
	return startModule(t, stack.ProviderAWS, namespace, flags...)
}

// startModule runs a module for selected namespaces until the test ends.
func startModule(t *testing.T, module, namespace string, flags ...string) *stack.Process {
	t.Helper()
	binary, err := stack.Binary(module)
	must(t, err)
	return startBinary(t, binary, module, namespace, flags...)
}

func startBinary(t *testing.T, binary, module, namespace string, flags ...string) *stack.Process {
	t.Helper()
	p, err := installFor(t, namespace, presenceOf(flags)).StartBinary(t.Context(), binary, module, flags...)
	must(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.Log())
		}
	})
	return p
}

// eventually waits until f returns an empty string. Otherwise f returns what is missing.
func eventually(t *testing.T, f func() string) {
	t.Helper()
	controlplane.Eventually(t, f)
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func getSecret(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	err := shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	return s
}

// wantValue waits until a Secret has a value.
func wantValue(t *testing.T, namespace, name, key, value string) *corev1.Secret {
	t.Helper()
	var s *corev1.Secret
	eventually(t, func() string {
		if s = getSecret(t, namespace, name); s == nil || string(s.Data[key]) != value {
			return fmt.Sprintf("Secret %s does not hold the wanted value under %s", name, key)
		}
		return ""
	})
	return s
}

// wantReady waits until an ExternalSecret has a reason, and returns its condition.
func wantReady(t *testing.T, namespace, name, reason string) metav1.Condition {
	t.Helper()
	var c *metav1.Condition
	eventually(t, func() string {
		es := &v1alpha1.ExternalSecret{}
		must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, es))
		if c = meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != reason {
			return fmt.Sprintf("ExternalSecret %s is %+v, want %s", name, c, reason)
		}
		return ""
	})
	return *c
}

// refresh requests a refresh.
func refresh(t *testing.T, namespace, name, value string) {
	t.Helper()
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, value)
	must(t, shared.Admin.Patch(t.Context(), es, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// pair returns an object with two keys, each the value of a remote secret with its name.
func pair(namespace, name, a, b string) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "store"},
			Data: []v1alpha1.DataEntry{
				{SecretKey: "a", RemoteRef: v1alpha1.RemoteRef{Key: a}},
				{SecretKey: "b", RemoteRef: v1alpha1.RemoteRef{Key: b}},
			},
		},
	}
}
