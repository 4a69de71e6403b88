// Package scenarios runs whole stories over the real control plane, the emulator of AWS, and modules as
// processes with the rights that they ship.
package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controlplane"
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

// run builds the modules as they are now, so that no old binary is tested, and starts one stack.
func run(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "direct-secrets-bin-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, module := range stack.Modules() {
		if err := build(module, filepath.Join(dir, module)); err != nil {
			return 1, err
		}
	}
	if err := os.Setenv(stack.BinEnv, dir); err != nil {
		return 1, err
	}
	shared, err = stack.Start(context.Background(), stack.Options{Audit: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	return m.Run(), nil
}

// build builds a module; more flags of `go build` may follow.
func build(module, binary string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", binary}, flags...)
	cmd := exec.Command("go", append(args, ".")...) //nolint:noctx // It ends by itself.
	cmd.Dir = filepath.Join("..", "..", module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", module, err, out)
	}
	return nil
}

// start runs provider-aws for chosen namespaces until the test ends.
func start(t *testing.T, namespace string, flags ...string) *stack.Process {
	t.Helper()
	return startModule(t, stack.ProviderAWS, namespace, flags...)
}

// startModule runs a module for chosen namespaces until the test ends.
func startModule(t *testing.T, module, namespace string, flags ...string) *stack.Process {
	t.Helper()
	binary, err := stack.Binary(module)
	must(t, err)
	return startBinary(t, binary, module, namespace, flags...)
}

func startBinary(t *testing.T, binary, module, namespace string, flags ...string) *stack.Process {
	t.Helper()
	p, err := shared.StartBinary(t.Context(), binary, module,
		append([]string{"--namespaces=" + namespace, "--leader-elect=false"}, flags...)...)
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

// eventually waits until f returns an empty string, which else says what is still missing.
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

// wantValue waits until a Secret holds a value.
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

// wantReady waits until an ExternalSecret has a reason, and a message that contains all parts.
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

// refresh asks for a refresh.
func refresh(t *testing.T, namespace, name, value string) {
	t.Helper()
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, value)
	must(t, shared.Admin.Patch(t.Context(), es, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// pair returns an object of two keys, each the whole of a remote secret of its name.
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
