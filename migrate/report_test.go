package migrate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// largeTree returns the manifests of an organization: 400 ExternalSecrets of 40 teams, in stores of several providers.
func largeTree() []Source {
	files := map[string]string{
		"platform/google.yaml":  "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: google}\nspec: {provider: {gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: platform}}}}}}\n",
		"platform/doppler.yaml": "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: doppler}\nspec: {provider: {doppler: {project: shop, config: prod}}}\n",
		"platform/vault.yaml":   "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: vault}\nspec: {provider: {vault: {server: \"http://vault.vault:8200\", path: secret, auth: {tokenSecretRef: {name: vault, key: token, namespace: vault}}}}}\n",
		"platform/fake.yaml":    "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: fake}\nspec: {provider: {fake: {data: []}}}\n",
	}
	for team := range 40 {
		for i := range 10 {
			store, target, key := []string{"google", "google", "google", "google", "google", "vault", "vault", "doppler", "doppler", "missing"}[i], "", "db"
			switch {
			case i == 0 && team%4 == 0:
				target = "  target: {template: {data: {a: \"{{ .a | fromJson }}\"}}}\n"
			case i == 1 && team%5 == 0:
				target = "  target: {manifest: {apiVersion: apps/v1, kind: Deployment}}\n"
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

// TestFewLines holds how many lines change for each object: those of the corpus of ExternalSecrets, and those of a large tree.
func TestFewLines(t *testing.T) {
	t.Parallel()
	sources := largeTree()
	files, err := filepath.Glob("testdata/corpus/externalsecret/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".out.yaml") {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range splitText(Source{Name: f, Content: raw}, nil) {
			sources = append(sources, Source{Name: fmt.Sprintf("%s/%d.yaml", strings.TrimSuffix(f, ".yaml"), i), Content: d.raw})
		}
	}
	r, err := Convert(sources, corpusOptions())
	if err != nil {
		t.Fatal(err)
	}
	var changed []int
	for i, f := range r.Files {
		if bytes.Equal(sources[i].Content, f.Content) {
			continue
		}
		removed, added := 0, 0
		for _, line := range strings.Split(string(diff.Diff("a", sources[i].Content, "b", f.Content)), "\n")[3:] {
			switch {
			case strings.HasPrefix(line, "-"):
				removed++
			case strings.HasPrefix(line, "+"):
				added++
			}
		}
		changed = append(changed, max(removed, added))
	}
	slices.Sort(changed)
	if median := changed[len(changed)/2]; median > 4 || len(changed) < 250 {
		t.Errorf("of %d objects, the median of the lines that change is %d", len(changed), median)
	}
	t.Logf("%d objects: median %d, 90 %% %d, most %d", len(changed), changed[len(changed)/2], changed[len(changed)*9/10], changed[len(changed)-1])
}
