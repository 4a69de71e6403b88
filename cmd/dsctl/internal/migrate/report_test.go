package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/output"
)

// largeTree returns the manifests of an organization: 400 ExternalSecrets of 40 teams, in stores of several providers.
func largeTree() []Source {
	files := map[string]string{
		"platform/google.yaml": "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: google}\nspec: {provider: {gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: platform}}}}}}\n",
		"platform/azure.yaml":  "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: azure}\nspec: {provider: {azurekv: {vaultUrl: \"https://shop.vault.azure.net\"}}}\n",
		"platform/vault.yaml":  "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: vault}\nspec: {provider: {vault: {server: \"http://vault.vault:8200\", path: secret, auth: {tokenSecretRef: {name: vault, key: token, namespace: vault}}}}}\n",
		"platform/fake.yaml":   "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: fake}\nspec: {provider: {fake: {data: []}}}\n",
	}
	for team := range 40 {
		for i := range 10 {
			store, target, key := []string{"google", "google", "google", "google", "google", "vault", "vault", "azure", "azure", "missing"}[i], "", "db"
			switch {
			case i == 0 && team%4 == 0:
				target = "  target: {template: {data: {a: \"{{ .a | fromJson }}\"}}}\n"
			case i == 1 && team%5 == 0:
				target = "  target: {manifest: {kind: ConfigMap}}\n"
			case i == 2 && team%8 == 0:
				target = "  refreshInterval: 100ms\n"
			}
			files[fmt.Sprintf("teams/%02d/s%d.yaml", team, i)] = fmt.Sprintf("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s%d, namespace: team-%02d}\nspec:\n  secretStoreRef: {name: %s, kind: ClusterSecretStore}\n%s  data: [{secretKey: a, remoteRef: {key: %s}}]\n", i, team, store, target, key)
		}
		files[fmt.Sprintf("teams/%02d/kustomization.yaml", team)] = "resources: [s0.yaml, s1.yaml, s2.yaml, s3.yaml, s4.yaml, s5.yaml, s6.yaml, s7.yaml, s8.yaml, s9.yaml]\n"
		if team%10 == 0 {
			files[fmt.Sprintf("teams/%02d/push.yaml", team)] = fmt.Sprintf("apiVersion: external-secrets.io/v1alpha1\nkind: PushSecret\nmetadata: {name: push, namespace: team-%02d}\nspec:\n  secretStoreRefs: [{name: google, kind: ClusterSecretStore}]\n  selector: {secret: {name: db}}\n  data: [{match: {secretKey: a, remoteRef: {remoteKey: a}}}]\n", team)
			files[fmt.Sprintf("teams/%02d/kustomization.yaml", team)] += "commonLabels: {team: shop}\n"
		}
	}
	return sourcesOf(files)
}

// TestReport holds the report of a large tree to a golden file. It fits on two screens.
func TestReport(t *testing.T) {
	t.Parallel()
	r, err := Convert(largeTree(), Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := output.New(&b).Lines(r.Report.Text()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines > 80 {
		t.Errorf("the report has %d lines", lines)
	}
	golden(t, "testdata/large.report.txt", []byte(b.String()))
}
