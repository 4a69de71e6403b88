package demo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) (err error) {
		cluster = c
		admin, err = client.New(c.Config(), client.Options{Scheme: stack.Scheme()})
		return err
	})
}

// present returns the objects of the demo that exist in the cluster.
func present(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			all = append(all, gvk.Kind+" "+o.Name)
		}
	}
	slices.Sort(all)
	return all
}

// run runs the demo in the cluster, without a terminal, and returns its output.
func run(t *testing.T, rotation bool) (string, error) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	var out strings.Builder
	err = Run(t.Context(), Options{Cluster: cluster.Config(), Rotation: rotation}, null, &out)
	return out.String(), err
}

// buildProvider builds provider-aws, and makes the demo use it.
func buildProvider(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, stack.ProviderAWS), ".")
	build.Dir = filepath.Join("..", "..", stack.ProviderAWS)
	// Go caches test results. It only sees files that the test itself opens, not those that it builds.
	for _, source := range []string{build.Dir, filepath.Join("..", "..", "common")} {
		err := filepath.WalkDir(source, func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv(stack.BinEnv, dir)
}

// TestCluster runs the demo in an existing cluster.
func TestCluster(t *testing.T) {
	buildProvider(t)
	deleting := "Deleting all that the demo has created"
	cases := map[string]struct {
		reason   string
		rotation bool
		want     []string
	}{
		"Refresh":  {reason: "the Secret is created, refreshed and restored", want: []string{"reason: SecretSynced", "The Secret has the new password.", "It is back after", deleting}},
		"Rotation": {reason: "an event gets the change to the Secret, and to the pods", rotation: true, want: []string{"0.00  the password of shop/db changes", "the Secret db has the new password", "the pod template of the Deployment shop changes", "restart.direct-secrets.io/db: ", deleting}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := present(t)
			out, err := run(t, tc.rotation)
			if err != nil {
				t.Fatalf("%s: %v\n%s", tc.reason, err, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: the demo does not print %q:\n%s", tc.reason, want, out)
				}
			}
			if diff := cmp.Diff(before, present(t)); diff != "" {
				t.Errorf("what the demo leaves in the cluster: -before, +after:\n%s", diff)
			}
		})
	}

	t.Run("Occupied", func(t *testing.T) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: example.Namespace}}
		if err := admin.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		before := present(t)
		if out, err := run(t, false); err == nil || !strings.Contains(err.Error(), "Namespace shop") {
			t.Errorf("the namespace is somebody else's: got %v, want an error that names it\n%s", err, out)
		}
		if diff := cmp.Diff(before, present(t)); diff != "" {
			t.Errorf("what is refused changes nothing: -before, +after:\n%s", diff)
		}
		remove(t, ns)
	})

	t.Run("Shared", func(t *testing.T) {
		foreign := &v1alpha1.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign"},
			Spec: v1alpha1.ExternalSecretSpec{
				StoreRef: &v1alpha1.StoreRef{Kind: "VaultKV", Name: "theirs"},
				Data:     []v1alpha1.DataEntry{{SecretKey: "a", RemoteRef: v1alpha1.RemoteRef{Key: "a"}}},
			},
		}
		created := make(chan error, 1)
		go func() {
			created <- wait.PollUntilContextCancel(t.Context(), 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				err := admin.Create(ctx, foreign)
				if meta.IsNoMatchError(err) {
					return false, nil
				}
				return err == nil, client.IgnoreNotFound(err)
			})
		}()
		out, err := run(t, false)
		if err := <-created; err != nil {
			t.Fatal(err)
		}
		if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition externalsecrets.direct-secrets.io is left") {
			t.Errorf("somebody has made an object meanwhile: got %v, want an error that says that its CRD is left\n%s", err, out)
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
			t.Errorf("the object of another owner is lost: %v", err)
		}
	})
}

// remove deletes an object and waits until it does not exist.
func remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string {
		if err := admin.Get(context.Background(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			return o.GetName() + " is still there"
		}
		return ""
	})
}
