//go:build long

package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A finding is what `dsctl doctor --output json` reports.
type finding struct {
	Severity, Reason, Message, Fix string
	Object                         struct{ Kind, Namespace, Name string }
	Affects                        []struct{ Kind, Namespace, Name string }
}

func (f finding) object() string {
	return strings.TrimSpace(f.Object.Kind + " " + strings.Trim(f.Object.Namespace+"/"+f.Object.Name, "/"))
}

// broken are the states of testdata/broken.yaml: what doctor has to report of each, and a part of the fix.
var broken = map[string]struct {
	object, reason, fix string
	// affects is an ExternalSecret that waits for the fix.
	affects string
}{
	"StoreDenied":    {"AWSSecretsManager broken/denied", "AuthFailed", "login", "store-denied"},
	"StoreInvalid":   {"AWSSecretsManager broken/invalid", "InvalidSpec", "create it", "store-invalid"},
	"StoreAbsent":    {"AWSSecretsManager broken/absent", "StoreNotFound", "there are AWSSecretsManager", "store-absent"},
	"ModuleAbsent":   {"VaultKV", "ProviderNotRunning", "chart", "module-absent"},
	"ClassUnserved":  {"AWSSecretsManager broken/classed", "ProviderNotRunning", "--controller-class=nightly", ""},
	"NotAdmitted":    {"ExternalSecret broken/not-admitted", "Forbidden", "have the namespace added", ""},
	"SecretAbsent":   {"ExternalSecret broken/secret-absent", "SecretSyncedError", "correct", ""},
	"PropertyAbsent": {"ExternalSecret broken/property-absent", "SecretSyncedError", "property", ""},
	"TargetOwned":    {"ExternalSecret broken/owned", "Conflict", "owner", ""},
	"KeyTaken":       {"ExternalSecret broken/key-taken", "Conflict", "other keys", ""},
	"Template":       {"ExternalSecret broken/template", "SecretSyncedError", "template", ""},
	"Immutable":      {"ExternalSecret broken/immutable", "SecretSyncedError", "delete the Secret", ""},
	"ReadOnlyStore":  {"PushSecret broken/push", "SecretSyncedError", "use another store", ""},
	"Suspended":      {"ExternalSecret broken/suspended", "Suspended", "dsctl resume externalsecret/suspended -n broken", ""},
	"Generator":      {"STSSessionToken broken/token", "AuthFailed", "login", "generator"},
	"MergeWaits":     {"ExternalSecret broken/waiting", "SecretMissing", "create Secret broken/waiting", ""},
	"Gone":           {"ExternalSecret broken/gone", "SecretDeleted", "remoteRef.key", ""},
	"Quota":          {"ExternalSecret full/quota", "Forbidden", "raise it", ""},
	"FanOutConflict": {"ClusterExternalSecret fanout", "PartlyProvisioned", "choose another name", ""},
}

// buildDsctl builds dsctl as it is now, and returns a function that runs it for a cluster. The function returns what it
// printed and its exit code.
func buildDsctl(t *testing.T, kubeconfig []byte) func(args ...string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	binary, config := filepath.Join(dir, "kubectl-direct_secrets"), filepath.Join(dir, "kubeconfig")
	must(t, buildIn("../../cmd/dsctl", binary, raceFlags...))
	must(t, os.WriteFile(config, kubeconfig, 0o600))
	return func(args ...string) (string, int) {
		c := exec.CommandContext(t.Context(), binary, args...)
		c.Env = []string{"HOME=" + dir, "KUBECONFIG=" + config}
		out, err := c.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return string(out), c.ProcessState.ExitCode()
	}
}

// breakThings brings a stack into the broken states.
func breakThings(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx := t.Context()
	s.AWS.Put("text", []byte("the value of text"))
	s.AWS.Put("json", []byte(`{"password":"the value of json"}`))
	for _, ns := range []string{"broken", "full"} {
		must(t, s.CreateNamespace(ctx, ns))
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "broken", Name: "owner"}}
	must(t, s.Admin.Create(ctx, owner))
	isController := true
	must(t, s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "broken", Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &isController}},
	}}))
	none := corev1.ResourceList{"count/secrets": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "names"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	must(t, s.Admin.Create(ctx, quota))
	eventually(t, func() string {
		must(t, s.Admin.Get(ctx, client.ObjectKeyFromObject(quota), quota))
		if len(quota.Status.Hard) == 0 {
			return "the quota is not enforced yet"
		}
		return ""
	})
	manifest, err := os.ReadFile("testdata/broken.yaml")
	must(t, err)
	must(t, s.Apply(ctx, manifest))
}

// thaw makes the spec of the immutable Secret mutable again, once it is there.
func thaw(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	name := types.NamespacedName{Namespace: "broken", Name: "immutable"}
	eventually(t, func() string {
		if err := s.Admin.Get(ctx, name, &corev1.Secret{}); err != nil {
			return err.Error()
		}
		return ""
	})
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	must(t, s.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"target":{"immutable":false}}}`))))
}

// TestDsctl has dsctl report on objects in broken states, on a stack of its own: each is named with its fix, and nothing
// else is an error.
func TestDsctl(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{Modules: []string{stack.ProviderAWS, stack.ProviderVault}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	breakThings(t, s)
	p, err := s.StartModule(t.Context(), stack.ProviderAWS, "--presence-namespace="+stack.Namespace)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	thaw(t.Context(), t, s)
	admin, err := s.AdminKubeconfig()
	must(t, err)
	dsctl := buildDsctl(t, admin)

	var text string
	eventually(t, func() string {
		out, code := dsctl("doctor", "-A", "--output", "json")
		var r struct{ Findings []finding }
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%s: %s", err, out)
		}
		text = out
		if code != 2 {
			return fmt.Sprintf("the exit code is %d, want 2", code)
		}
		return compare(r.Findings)
	})
	t.Log(text)
	if strings.Contains(text, "the value of") {
		t.Error("dsctl doctor prints a value")
	}
}

// compare says which broken state is not reported, or what else is reported as an error.
func compare(found []finding) string {
	wanted := map[string]bool{}
	for state, want := range broken {
		wanted[want.object] = true
		ok := false
		for _, f := range found {
			if f.object() != want.object || f.Reason != want.reason || !strings.Contains(f.Fix, want.fix) {
				continue
			}
			ok = want.affects == ""
			for _, a := range f.Affects {
				ok = ok || a.Name == want.affects
			}
		}
		if !ok {
			return fmt.Sprintf("%s: want %+v among %+v", state, want, found)
		}
	}
	for _, f := range found {
		if f.Severity == "Error" && !wanted[f.object()] {
			return fmt.Sprintf("%+v is reported, and nothing is wrong with it", f)
		}
	}
	return ""
}
