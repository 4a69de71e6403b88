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
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/commands"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A finding is one result of `dsctl doctor --output json`.
type finding struct {
	Severity, Reason, Message, Fix string
	Object                         struct{ Kind, Namespace, Name string }
	Affects                        []struct{ Kind, Namespace, Name string }
}

func (f finding) object() string {
	return strings.TrimSpace(f.Object.Kind + " " + strings.Trim(f.Object.Namespace+"/"+f.Object.Name, "/"))
}

// broken are the states of testdata/broken.yaml, with the expected finding and a part of its fix.
var broken = map[string]struct {
	object, reason, fix string
	// affects is an ExternalSecret that waits for the fix.
	affects string
}{
	"StoreDenied":          {"AWSSecretsManager broken/denied", "AuthFailed", "login", "store-denied"},
	"StoreInvalid":         {"AWSSecretsManager broken/invalid", "InvalidSpec", "create it", "store-invalid"},
	"StoreAbsent":          {"AWSSecretsManager broken/absent", "StoreNotFound", "there are AWSSecretsManager", "store-absent"},
	"ModuleAbsent":         {"VaultKV", "ProviderNotRunning", "chart", "module-absent"},
	"ClassWithoutOperator": {"AWSSecretsManager broken/classed", "ProviderNotRunning", "--controller-class=nightly", ""},
	"NotAdmitted":          {"ExternalSecret broken/not-admitted", "Forbidden", "have the namespace added", ""},
	"SecretAbsent":         {"ExternalSecret broken/secret-absent", "SecretSyncedError", "correct", ""},
	"PropertyAbsent":       {"ExternalSecret broken/property-absent", "SecretSyncedError", "property", ""},
	"TargetOwned":          {"ExternalSecret broken/owned", "Conflict", "owner", ""},
	"KeyTaken":             {"ExternalSecret broken/key-taken", "Conflict", "other keys", ""},
	"Template":             {"ExternalSecret broken/template", "SecretSyncedError", "template", ""},
	"Immutable":            {"ExternalSecret broken/immutable", "SecretSyncedError", "delete the Secret", ""},
	"ReadOnlyStore":        {"PushSecret broken/push", "Forbidden", "use another store", ""},
	"Suspended":            {"ExternalSecret broken/suspended", "Suspended", "kubectl direct-secrets resume externalsecret/suspended -n broken", ""},
	"DryRun":               {"PushSecret broken/planned", "DryRun", "kubectl direct-secrets diff pushsecret/planned -n broken", ""},
	"Generator":            {"STSSessionToken broken/token", "AuthFailed", "login", "generator"},
	"MergeWaits":           {"ExternalSecret broken/waiting", "SecretMissing", "create Secret broken/waiting", ""},
	"Gone":                 {"ExternalSecret broken/gone", "SecretDeleted", "remoteRef.key", ""},
	"Quota":                {"ExternalSecret full/quota", "Forbidden", "raise the quota", ""},
	"FanOutConflict":       {"ClusterExternalSecret fanout", "PartlyProvisioned", "choose another name", ""},
}

// A plugin runs dsctl as a plugin of kubectl, as `kubectl direct-secrets`.
type plugin struct{ folder string }

// buildPlugin builds the present dsctl as a plugin of kubectl.
func buildPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{folder: t.TempDir()}
	must(t, buildIn("../../cmd/dsctl", filepath.Join(p.folder, "kubectl-direct_secrets"), raceFlags...))
	return p
}

// run runs a command with a kubeconfig. It returns the output and the exit code, and fails the test if a value
// is printed.
func (p *plugin) run(t *testing.T, kubeconfig []byte, args ...string) (string, int) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(config, kubeconfig, 0o600))
	path := os.Getenv("TEST_COMMANDS")
	if path == "" {
		t.Fatal("set TEST_COMMANDS to the folder that hack/commands.sh prints")
	}
	c := exec.CommandContext(t.Context(), filepath.Join(path, commands.Kubectl), append([]string{"direct-secrets"}, args...)...)
	c.Env = []string{"HOME=" + p.folder, "KUBECONFIG=" + config, "PATH=" + p.folder}
	c.Dir = p.folder
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if strings.Contains(string(out), planted) {
		t.Errorf("dsctl %s prints a value", strings.Join(args, " "))
	}
	return string(out), c.ProcessState.ExitCode()
}

// planted is the start of each value.
const planted = "the value of"

// breakThings creates the broken states in a stack.
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

// makeMutable makes the immutable Secret mutable again, once it exists.
func makeMutable(ctx context.Context, t *testing.T, s *stack.Stack) {
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

// TestDsctl runs dsctl on objects in broken states, on its own stack. Each must be reported with its fix, and
// no other object as an error.
func TestDsctl(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{Modules: []string{stack.ProviderAWS, stack.ProviderVault}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	breakThings(t, s)
	p, err := s.StartModule(t.Context(), stack.ProviderAWS, "--presence-namespace="+stack.Namespace)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	makeMutable(t.Context(), t, s)
	admin, err := s.AdminKubeconfig()
	must(t, err)
	dsctl := buildPlugin(t)
	eventually(t, func() string {
		out, code := dsctl.run(t, admin, "doctor", "-A", "--output", "json")
		var r struct{ Findings []finding }
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%s: %s", err, out)
		}
		if code != 2 {
			return fmt.Sprintf("the exit code is %d, want 2", code)
		}
		return compare(r.Findings)
	})
	text, _ := dsctl.run(t, admin, "doctor", "-A")
	t.Log(text)
	t.Run("Commands", func(t *testing.T) { dsctl.commands(t, admin) })
	t.Run("Refused", func(t *testing.T) { dsctl.refused(t, s) })
}

// compare returns which broken state is not reported, or what else is reported as an error.
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
			return fmt.Sprintf("%+v is reported without an error", f)
		}
	}
	return ""
}

// commands runs the other commands on the broken states, and checks their output and exit codes.
func (p *plugin) commands(t *testing.T, kubeconfig []byte) {
	manifest, values := filepath.Join(p.folder, "fine.yaml"), filepath.Join(p.folder, "values.yaml")
	must(t, os.WriteFile(manifest, []byte(`apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata: {name: fine, namespace: broken}
spec: {storeRef: {kind: AWSSecretsManager, name: good}, data: [{secretKey: a, remoteRef: {key: text}}, {secretKey: b, remoteRef: {key: text}}]}
`), 0o600))
	must(t, os.WriteFile(values, []byte(`remote: {text: the value of text}`), 0o600))
	broken := filepath.Join(p.folder, "broken.yaml")
	must(t, os.WriteFile(broken, []byte(`apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata: {name: fine, namespace: broken}
spec: {storeRef: {kind: AWSSecretsManager, name: good}, data: [{secretKey: a, remoteRef: {key: text}}], target: {template: {data: {a: "{{ .a"}}}}
`), 0o600))
	in := []string{"-n", "broken"}
	for _, step := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"get"}, "SecretSynced", 0},
		{[]string{"get", "--not-ready", "-o", "wide"}, `there is no key "absent"`, 0},
		{[]string{"get", "awssecretsmanager"}, "AuthFailed", 0},
		{[]string{"get", "nothing"}, `the cluster has no Kind "nothing"`, 1},
		{[]string{"tree", "fine"}, "└── Secret broken/fine", 0},
		{[]string{"tree", "store-absent"}, "AWSSecretsManager broken/absent  (does not exist)", 0},
		{[]string{"tree", "nosuch"}, "nosuch: no such object", 1},
		{[]string{"refresh", "fine", "--wait"}, "refresh requested: Ready is True: SecretSynced", 0},
		{[]string{"refresh", "suspended"}, "it is suspended", 1},
		{[]string{"refresh", "absent"}, "not found", 1},
		{[]string{"refresh", "secret-absent", "--wait"}, `Ready is False: SecretSyncedError: NotFound: "absent" in AWSSecretsManager`, 2},
		{[]string{"refresh", "--store", "awssecretsmanager/denied"}, "ExternalSecret broken/store-denied: refresh requested", 0},
		{[]string{"suspend", "fine"}, "ExternalSecret broken/fine: suspended", 0},
		{[]string{"suspend", "fine"}, "unchanged", 0},
		{[]string{"resume", "fine"}, "ExternalSecret broken/fine: resumed", 0},
		{[]string{"suspend", "clusterexternalsecret/fanout"}, "suspended", 0},
		{[]string{"resume", "clusterexternalsecret/fanout"}, "resumed", 0},
		{[]string{"diff", "fine"}, "Unchanged", 0},
		{[]string{"diff", "-f", manifest}, "+ data b", 2},
		{[]string{"diff", "-f", broken}, "spec.target.template.data[a]: line 1", 1},
		{[]string{"diff", "fine", "--values", values}, "Unchanged", 0},
		{[]string{"diff", "owned"}, `controlled by ConfigMap "owner"`, 2},
		{[]string{"diff", "key-taken", "--values", values}, `key "a" is written by ExternalSecret "fine"`, 2},
		{[]string{"diff", "pushsecret/planned"}, "PushSecret broken/planned, AWSSecretsManager good: Update\n  + planned\n", 2},
		{[]string{"diff", "pushsecret/push"}, "spec.dryRun is not true", 1},
		{[]string{"render", "-f", manifest, "--values", values}, "a: 17 bytes", 0},
		{[]string{"__complete", "refresh", "fi"}, "fine\n", 0},
		{[]string{"__complete", "resume", "pushsecret/"}, "pushsecret/push\n", 0},
		{[]string{"help"}, "kubectl direct-secrets [command]", 0},
		{[]string{"help", "doctor"}, "kubectl direct-secrets doctor -n shop", 0},
	} {
		args := step.args
		if !strings.HasPrefix(args[0], "_") {
			args = append(args, in...)
		} else {
			args = append([]string{args[0], args[1], in[0], in[1]}, args[2:]...)
		}
		if out, code := p.run(t, kubeconfig, args...); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("dsctl %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), code, step.code, step.want, out)
		}
	}
}

// refused runs doctor as a user who can read one namespace, and only a part of it.
func (p *plugin) refused(t *testing.T, s *stack.Stack) {
	ctx := t.Context()
	must(t, s.Admin.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "broken", Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.Group}, Resources: []string{"externalsecrets"}, Verbs: []string{"get", "list"}}},
	}))
	must(t, s.Admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "broken", Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "broken", Name: "reader"}},
	}))
	kubeconfig, err := s.ServiceAccountKubeconfig(ctx, "broken", "reader")
	must(t, err)
	var out string
	eventually(t, func() string { // The API server caches RBAC.
		var code int
		if out, code = p.run(t, kubeconfig, "doctor", "-n", "broken"); code != 2 {
			return fmt.Sprintf("exit code %d: %s", code, out)
		}
		return ""
	})
	for _, want := range []string{
		"ExternalSecret broken/secret-absent",
		"awssecretsmanagers.aws.direct-secrets.io",
		"you are not allowed to list leases.coordination.k8s.io in namespace direct-secrets",
		"you are not allowed to patch externalsecrets.direct-secrets.io, pushsecrets.direct-secrets.io in namespace broken",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing from:\n%s", want, out)
		}
	}
}
