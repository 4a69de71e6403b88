//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	gcpemulator "github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestMigrateSync converts objects of External Secrets Operator, and compares the Secrets that they become with those
// that External Secrets Operator makes.
func TestMigrateSync(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	vault := vaulttest.Start(t)
	google, err := gcpemulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, google.Close()) })
	migrateValues(s, vault, google)
	const ns = "eso"
	must(t, s.CreateNamespace(ctx, ns))
	for name, data := range map[string]map[string]string{
		"logins": {
			"aws-id": stack.AccessKeyID, "aws-key": stack.SecretAccessKey, "vault": vault.RootToken,
			"google": string(google.Key("reader@test-project.iam.gserviceaccount.com")),
		},
		"merged": {"other": "kept"},
	} {
		secret := &corev1.Secret{StringData: data}
		secret.Namespace, secret.Name = ns, name
		must(t, s.Admin.Create(ctx, secret))
	}
	for _, module := range []string{stack.ProviderAWS, stack.ProviderVault, stack.ProviderGCP} {
		p, err := s.StartModule(ctx, module, "--leader-elect=false")
		must(t, err)
		t.Cleanup(func() { must(t, p.Stop()) })
	}

	var want []*corev1.Secret
	for _, o := range converted(t, strings.NewReplacer("VAULT", vault.URL, "PROJECT", gcpemulator.DefaultProject)) {
		o.SetNamespace(ns)
		switch o.GetKind() {
		case "Secret":
			secret := &corev1.Secret{}
			raw, err := json.Marshal(o.Object)
			must(t, err)
			must(t, json.Unmarshal(raw, secret))
			want = append(want, secret)
			continue
		case "GCPSecretManager":
			must(t, unstructured.SetNestedField(o.Object, google.URL(), "spec", "endpoint"))
		}
		must(t, s.Admin.Create(ctx, o))
	}
	if len(want) < 20 {
		t.Fatalf("only %d Secrets are expected", len(want))
	}
	for _, w := range want {
		t.Run(w.Name, func(t *testing.T) {
			eventually(t, func() string {
				got := &corev1.Secret{}
				if err := s.Admin.Get(ctx, client.ObjectKeyFromObject(w), got); err != nil {
					return err.Error()
				}
				return cmp.Diff(contentOf(w), contentOf(got))
			})
		})
	}
}

// contentOf returns what is compared of a Secret: not the labels and annotations of operators.
func contentOf(s *corev1.Secret) map[string]any {
	data := maps.Clone(s.StringData)
	if data == nil {
		data = map[string]string{}
	}
	for k, v := range s.Data {
		data[k] = string(v)
	}
	kind := s.Type
	if kind == "" {
		kind = corev1.SecretTypeOpaque
	}
	names := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(name, _ string) bool { return strings.Contains(name, "direct-secrets.io/") })
		if len(all) == 0 {
			return nil
		}
		return all
	}
	return map[string]any{
		"data": data, "type": kind, "labels": names(s.Labels), "annotations": names(s.Annotations),
		"immutable": s.Immutable != nil && *s.Immutable,
	}
}

// migrateValues puts values into the servers of all stores.
func migrateValues(s *stack.Stack, vault *vaulttest.Server, google *gcpemulator.Server) {
	const object = `{"user":"u","password":"p","nested":{"a":["x","y"]},"dotted.key":"d","number":12,"bool":true}`
	for name, value := range map[string]string{
		"app/db": object, "app/plain": "plain text", "app/base64": "ZGVjb2RlZD8=", "app/base64url": "ZGVjb2RlZD8=", "app/rotated": "old",
	} {
		s.AWS.Put(name, []byte(value))
	}
	s.AWS.Put("app/rotated", []byte("new"))
	s.AWS.Put("app/one", []byte("1"), emulator.Tags(map[string]string{"team": "blue"}))
	s.AWS.Put("app/two", []byte("2"), emulator.Tags(map[string]string{"team": "blue"}))
	s.AWS.Put("other", []byte("3"), emulator.Tags(map[string]string{"team": "red"}))
	s.AWS.PutParameter("/app/host", "db")
	s.AWS.PutParameter("/app/json", `{"port":5432}`)
	vault.Mount("kv", "2")
	for _, data := range []vaulttest.M{{"user": "first"}, {"user": "v", "count": 3, "object": vaulttest.M{"a": 1}}} {
		vault.Do(http.MethodPost, "kv/data/app/db", vaulttest.M{"data": data})
	}
	google.Put("app-db", []byte("first"))
	google.Put("app-db", []byte(`{"user":"g","count":3}`))
}

// converted returns the documents of testdata/eso as dsctl converts them.
func converted(t *testing.T, values *strings.Replacer) []*unstructured.Unstructured {
	t.Helper()
	in, dsctl := t.TempDir(), buildPlugin(t)
	for _, name := range []string{"stores.yaml", "secrets.yaml"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "eso", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(in, name), []byte(values.Replace(string(raw))), 0o600))
	}
	report := filepath.Join(in, "report")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dsctl.folder, "kubectl-direct_secrets"), "migrate", "-f", in, "--report", report)
	cmd.Env = []string{"HOME=" + dsctl.folder}
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code > 1 {
		text, _ := os.ReadFile(report)
		t.Fatalf("exit code %d: %v\n%s", code, err, text)
	}
	all, err := decode(string(out))
	must(t, err)
	for _, o := range all {
		if strings.Contains(o.GetAPIVersion(), "external-secrets.io") {
			t.Fatal(fmt.Errorf("%s %s was not converted", o.GetKind(), o.GetName()))
		}
	}
	return all
}
