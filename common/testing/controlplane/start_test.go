package controlplane

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestFindAssets(t *testing.T) {
	folder := func(names ...string) string {
		dir := t.TempDir()
		for _, n := range names {
			if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	complete, partial := folder("etcd", "kube-apiserver", "kube-controller-manager"), folder("etcd", "kube-apiserver")
	all := []string{"etcd", "kube-apiserver", "kube-controller-manager"}

	cases := map[string]struct {
		reason   string
		env      string
		cached   []string
		optional string
		want     []string // They are the names of those in the environment's folder.
		wantErr  string
	}{
		"Environment": {reason: "the folder in the environment variable comes first", env: complete, cached: all, want: all},
		"Both":        {reason: "binaries that the user's folder does not have come from the cache", env: partial, cached: all, want: all[:2]},
		"Cache":       {reason: "a build in the cache is found", cached: all},
		"Incomplete":  {reason: "the error names the missing binary", env: partial, wantErr: "no kube-controller-manager in " + partial + " or "},
		"Optional":    {reason: "the demo works without a garbage collector", env: partial, optional: "kube-controller-manager", want: all[:2]},
		"NotBuilt":    {reason: "the error names the fix", wantErr: filepath.Join("direct-secrets", "controlplane", Version) + ": run `make controlplane`"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			t.Setenv("KUBEBUILDER_ASSETS", tc.env)
			t.Setenv("XDG_CACHE_HOME", cache)
			cached := filepath.Join(cache, "direct-secrets", "controlplane", Version)
			want := map[string]string{}
			if err := os.MkdirAll(cached, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, n := range tc.cached {
				want[n] = filepath.Join(cached, n)
				if err := os.WriteFile(want[n], nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range tc.want {
				want[n] = filepath.Join(tc.env, n)
			}
			if tc.wantErr != "" {
				want = nil
			}
			got, err := findAssets(tc.optional)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: findAssets: -want, +got:\n%s", tc.reason, diff)
			}
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: findAssets: got error %v, want one with %q", tc.reason, err, tc.wantErr)
			}
		})
	}
}

// TestStartFails checks that a wrong flag fails long before the timeout, and that the error shows the cause.
func TestStartFails(t *testing.T) {
	var output bytes.Buffer
	_, err := Start(t.Context(), WithAPIServerArg("no-such-flag", "1"), WithOutput(&output))
	if want := "unknown flag: --no-such-flag"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Start: got %v, want an error with %q", err, want)
	}
	if want := "unknown flag: --no-such-flag"; !strings.Contains(output.String(), want) {
		t.Errorf("WithOutput: got %q, want %q in it", output.String(), want)
	}
}

func TestStartStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx); err == nil {
		t.Error("Start with a cancelled context: got no error")
	}
}

// TestSecond starts a second control plane with the data of the first, and changes it. It must have the same objects, and the first
// must keep them and go on.
func TestSecond(t *testing.T) {
	newNamespace(t, "copied")
	original := clientFor(t, cluster.Config()).CoreV1().ConfigMaps("copied")
	want, err := original.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "object"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var second *ControlPlane
	code := run(runnerFunc(func() int {
		copied := clientFor(t, second.Config()).CoreV1().ConfigMaps("copied")
		if got, err := copied.Get(t.Context(), "object", metav1.GetOptions{}); err != nil || got.UID != want.UID {
			t.Errorf("the copy has uid %q, %v; want %q", got.UID, err, want.UID)
		}
		if err := copied.Delete(t.Context(), "object", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		client, err := dynamic.NewForConfig(second.Config())
		if err != nil {
			t.Error(err)
			return 1
		}
		figs := schema.GroupVersionResource{Group: "test.direct-secrets.io", Version: "v1", Resource: "figs"}
		if _, err := client.Resource(figs).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if got := second.AuditLog(); got != "" {
			t.Errorf("AuditLog without WithAuditLog: got %q", got)
		}
		if _, err := second.ReadAuditLog(time.Time{}); err == nil {
			t.Error("ReadAuditLog without WithAuditLog: got no error")
		}
		return 3
	}), func(c *ControlPlane) error { second = c; return nil }, WithCRDs(crd("figs")), WithDataOf(cluster))
	if code != 3 {
		t.Errorf("run: got %d, want the 3 of tests that fail", code)
	}

	for _, p := range []*process{second.etcd, second.apiServer, second.controllerManager} {
		select {
		case <-p.done:
		default:
			t.Errorf("%s still runs", p.name)
		}
	}
	if _, err := os.Stat(second.dir); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
	if err := second.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
	for _, p := range []*process{cluster.etcd, cluster.apiServer, cluster.controllerManager} {
		select {
		case <-p.done:
			t.Errorf("%s of the other control plane ended", p.name)
		default:
		}
	}
	if got, err := original.Get(t.Context(), "object", metav1.GetOptions{}); err != nil || got.UID != want.UID {
		t.Errorf("after the deletion in the copy, the original has uid %q, %v; want %q", got.UID, err, want.UID)
	}
}

type runnerFunc func() int

func (f runnerFunc) Run() int { return f() }

func TestMainReportsFailedSetup(t *testing.T) {
	tests := runnerFunc(func() int { t.Error("the tests run"); return 0 })
	if got := run(tests, func(*ControlPlane) error { return exec.ErrNotFound }); got != 1 {
		t.Errorf("run: got %d, want 1", got)
	}
}
