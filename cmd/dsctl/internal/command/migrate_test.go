package command

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/migrate"
)

// Manifests of External Secrets Operator.
const (
	esoStore = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata:
  name: google
  namespace: shop
spec:
  provider:
    gcpsm:
      projectID: shop-prod
      auth:
        secretRef:
          secretAccessKeySecretRef: {name: google, key: key.json}
`
	esoSecret = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: db
  namespace: shop
spec:
  secretStoreRef: {name: google}
  data:
  - secretKey: password
    remoteRef: {key: shop-db}
`
	esoPush = `apiVersion: external-secrets.io/v1alpha1
kind: PushSecret
metadata: {name: db, namespace: shop}
spec:
  secretStoreRefs: [{name: google}]
  selector: {secret: {name: db}}
  data: [{match: {secretKey: a, remoteRef: {remoteKey: a}}}]
`
	esoLogin = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: aws, namespace: shop}
spec: {provider: {aws: {service: SecretsManager, region: eu-central-1, auth: {jwt: {serviceAccountRef: {name: reader}}}}}}
`
	esoForeign = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: doppler, namespace: shop}
spec: {provider: {doppler: {auth: {secretRef: {dopplerToken: {name: token, key: token}}}}}}
`
	csiClass = `apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: web, namespace: shop}
spec: {provider: aws, parameters: {region: eu-central-1, objects: "- {objectName: a, objectType: secretsmanager}"}}
`
	gcpClass = `apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: web, namespace: shop}
spec: {provider: gcp, parameters: {secrets: "- {resourceName: projects/shop-prod/secrets/a/versions/latest, path: a}"}}
`
	ourStore = `apiVersion: gcp.direct-secrets.io/v1alpha1
kind: GCPSecretManager
metadata:
  name: google
  namespace: shop
spec:
  projectID: shop-prod
  auth:
    secretRef:
      secretAccessKeySecretRef: {name: google, key: key.json}
`
	ourSecret = `apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata:
  name: db
  namespace: shop
spec:
  storeRef: {name: google, kind: GCPSecretManager}
  data:
  - secretKey: password
    remoteRef: {key: shop-db}
`
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		stdin  string
		args   []string
		out    string
		errs   string
		code   int
	}{
		"Exact": {
			reason: "what is exact is printed, and the report goes to standard error", stdin: esoStore + "---\n" + esoSecret,
			out: ourStore + "---\n" + ourSecret, errs: "2 exact, 0 changed, 0 unsupported",
		},
		"Nothing": {reason: "other objects stay as they are", stdin: "kind:   Secret", out: "kind:   Secret\n", errs: "0 exact, 0 changed, 0 unsupported"},
		"Changed": {
			reason: "what changes is converted, and the exit code tells", stdin: esoStore + "---\n" + esoPush, out: "kind: PushSecret",
			errs: "1    PushSecret shop/db (-:14)\n", code: exitChanged,
		},
		"Wide": {
			reason: "The report can have each object.", stdin: esoStore + "---\n" + esoPush, args: []string{"-o", "wide"}, out: "kind: PushSecret",
			errs: "changed      PushSecret shop/db (-:14) -> PushSecret", code: exitChanged,
		},
		"Store": {
			reason: "The Kind of a store can be given.", stdin: esoSecret, args: []string{"--store", "SecretStore/google=GCPSecretManager"},
			out: ourSecret, errs: "1 exact",
		},
		"StoreOfVault": {
			reason: "With the path of its engine.", stdin: strings.Replace(esoSecret, "key: shop-db", "key: kv/shop-db", 1), args: []string{"--store", "SecretStore/shop/google=VaultKV:kv"},
			out: "remoteRef: {key: shop-db}", errs: "1 exact",
		},
		"StoreWrong": {reason: "It has one form.", stdin: esoSecret, args: []string{"--store", "google=VaultKV:kv"}, errs: "error: --store: \"google=VaultKV:kv\" is not", code: exitNotConverted},
		"StoreKind":  {reason: "Its Kind exists.", stdin: esoSecret, args: []string{"--store", "SecretStore/google=VaultKV"}, errs: "error: --store: \"VaultKV\" is not the Kind of a store", code: exitNotConverted},
		"Unsupported": {
			reason: "what cannot be converted stays as it is", stdin: esoSecret, out: esoSecret,
			errs: "1    SecretStore google\n", code: exitUnsupported,
		},
		"Worst": {reason: "the worst of all objects decides", stdin: esoStore + "---\n" + esoPush + "---\n" + esoForeign, out: "kind: GCPSecretManager", errs: "1 exact, 1 changed, 1 unsupported", code: exitUnsupported},
		"Role": {
			reason: "the role of a ServiceAccount can be given", stdin: esoLogin, args: []string{"--role", "shop/reader=arn:aws:iam::111122223333:role/a"},
			out: "role: arn:aws:iam::111122223333:role/a", errs: "1 exact",
		},
		"ServiceAccount": {
			reason: "The ServiceAccount of pods can be given.", stdin: csiClass, args: []string{"--service-account", "shop/web=web", "--role", "shop/web=arn:aws:iam::111122223333:role/a"},
			out: "kind: AWSSecretsManager", errs: "0 exact, 1 changed", code: exitChanged,
		},
		"ServiceAccountWrong": {reason: "It has one form.", stdin: csiClass, args: []string{"--service-account", "web=web"}, errs: `error: --service-account: "web=web" is not NAMESPACE/CLASS=NAME`, code: exitNotConverted},
		"GKECluster": {
			reason: "The GKE cluster can be given.", stdin: gcpClass, args: []string{"--service-account", "shop/web=web", "--gke-cluster", "projects/a/locations/b/clusters/c"},
			out: "projects/a/locations/b/clusters/c", errs: "0 exact, 1 changed", code: exitChanged,
		},
		"RoleWrong":     {reason: "only in one form", stdin: esoLogin, args: []string{"--role", "reader=a"}, errs: `error: --role: "reader=a" is not NAMESPACE/NAME=ARN`, code: exitNotConverted},
		"Namespace":     {reason: "objects that name no namespace are of that of the command line", stdin: strings.ReplaceAll(esoLogin, ", namespace: shop", ""), args: []string{"-n", "mail", "--role", "mail/reader=arn:aws:iam::111122223333:role/a"}, out: "role: arn", errs: "1 exact"},
		"Markdown":      {reason: "the report can be a page", stdin: esoStore, args: []string{"-o", "markdown"}, out: ourStore, errs: "| SecretStore shop/google (-:1) | exact | GCPSecretManager |"},
		"Format":        {reason: "an unknown format is an error", stdin: esoStore, args: []string{"-o", "xml"}, errs: `error: --output: "xml" is not supported; use one of wide, markdown, json`, code: exitNotConverted},
		"Flag":          {reason: "so is an unknown flag, and not a change", args: []string{"--unknown"}, errs: "error: unknown flag: --unknown", code: exitNotConverted},
		"Argument":      {reason: "and an argument", args: []string{"manifests"}, errs: "error: unknown command", code: exitNotConverted},
		"NoSuchFile":    {reason: "and a file that is not there", args: []string{"-f", "nowhere.yaml"}, errs: "error: open nowhere.yaml", code: exitNotConverted},
		"NoSuchCluster": {reason: "and a cluster that is not there", args: []string{"--cluster", "--server", "http://127.0.0.1:1", "--kubeconfig", "/dev/null"}, errs: "error: cannot list the API groups", code: exitNotConverted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"migrate"}, tc.args...)
			if tc.stdin != "" {
				args = append(args, "-f", "-")
			}
			out, errs, code := run(t, tc.stdin, args...)
			if code != tc.code {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
			if !strings.Contains(out, tc.out) || (tc.out == "" && out != "") {
				t.Errorf("%s: output:\n%s\nwant:\n%s", tc.reason, out, tc.out)
			}
			if !strings.Contains(errs, tc.errs) {
				t.Errorf("%s: errors:\n%s\nwant:\n%s", tc.reason, errs, tc.errs)
			}
		})
	}
	t.Run("NoSource", func(t *testing.T) {
		t.Parallel()
		if _, errs, code := run(t, "", "migrate"); code != exitNotConverted || !strings.Contains(errs, "error: use -f or --cluster") {
			t.Errorf("without a source: exit code %d: %s", code, errs)
		}
	})
}

// write writes files below a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := writeNew(filepath.Join(dir, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns the files below a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path) // It is below dir.
		all[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMigrateFolder(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"stores/google.yaml": esoStore, "apps/shop/db.yml": esoSecret, "other.yaml": "kind:   Secret\n", "notes.md": "not read"})
	to := t.TempDir()
	out, errs, code := run(t, "", "migrate", "-f", dir, "--out", filepath.Join(to, "new"), "--values", filepath.Join(to, "values.yaml"), "--report", filepath.Join(to, "reports", "report.json"), "-o", "json")
	if code != 0 || out != "" || errs != "" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	files := read(t, to)
	var report migrate.Report
	if err := json.Unmarshal([]byte(files["reports/report.json"]), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Objects) != 2 || report.Verdict() != migrate.Exact {
		t.Errorf("report: %+v", report)
	}
	delete(files, "reports/report.json")
	want := map[string]string{
		"new/stores/google.yaml": ourStore, "new/apps/shop/db.yml": ourSecret, "new/other.yaml": "kind:   Secret\n",
		"values.yaml": "# Values of the chart direct-secrets for the converted objects.\n\nprovider-gcp:\n  enabled: true\n",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files: -want, +got:\n%s", diff)
	}
}

func TestMigrateInPlace(t *testing.T) {
	t.Parallel()
	was := map[string]string{
		"base/google.yaml": esoStore, "base/kustomization.yaml": "resources: [google.yaml]\n", "apps/db.yml": "# The database.\n" + esoSecret + "---\nkind:   Secret",
		".git/config.yaml": esoStore, ".github/workflows/test.yaml": "on: push\njobs: {a: {steps: [{run: \"echo ${{ github.ref }}\"}]}}\n",
	}
	dir := write(t, was)
	if err := os.Chmod(filepath.Join(dir, "apps/db.yml"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "", "migrate", "-f", dir, "--dry-run")
	if diff := cmp.Diff(was, read(t, dir)); code != 0 || diff != "" {
		t.Errorf("--dry-run: exit code %d: %s-want, +got:\n%s", code, errs, diff)
	}
	for _, line := range []string{"--- a/" + dir + "/apps/db.yml", "+  storeRef: {name: google, kind: GCPSecretManager}"} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("--dry-run: the diff has not the line %q:\n%s", line, out)
		}
	}
	want := maps.Clone(was)
	want["base/google.yaml"], want["apps/db.yml"] = ourStore, "# The database.\n"+ourSecret+"---\nkind:   Secret"
	for _, run2 := range []string{"once", "twice"} {
		if out, errs, code := run(t, "", "migrate", "-f", dir, "--in-place"); code != 0 || out != "" {
			t.Errorf("%s: exit code %d: %s%s", run2, code, out, errs)
		}
		if diff := cmp.Diff(want, read(t, dir)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", run2, diff)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "apps/db.yml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v: %v", info.Mode(), err)
	}
}

func TestMigrateRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		files  map[string]string
		args   func(dir string) []string
		errs   string
	}{
		"InPlaceOfNothing": {
			reason: "Files are edited.", files: map[string]string{"db.yaml": esoStore},
			args: func(string) []string { return []string{"--cluster", "--in-place"} }, errs: "--in-place and --dry-run edit files: name them with -f",
		},
		"InPlaceOfInput": {
			reason: "Standard input is no file.", files: map[string]string{"db.yaml": esoStore},
			args: func(string) []string { return []string{"-f", "-", "--dry-run"} }, errs: "standard input is none",
		},
		"InPlaceAndOut": {
			reason: "The result is at one place.", files: map[string]string{"db.yaml": esoStore},
			args: func(dir string) []string { return []string{"-f", dir, "--in-place", "--out", dir} }, errs: "use either --out or --in-place",
		},
		"SameName": {
			reason: "no converted file takes the place of another", files: map[string]string{"a/db.yaml": esoStore, "b/db.yaml": esoSecret, "out/x": ""},
			args: func(dir string) []string {
				return []string{"-f", filepath.Join(dir, "a/db.yaml"), "-f", filepath.Join(dir, "b/db.yaml"), "--out", filepath.Join(dir, "out")}
			},
			errs: "would be the same file",
		},
		"Original": {
			reason: "nor that of an original", files: map[string]string{"db.yaml": esoStore},
			args: func(dir string) []string { return []string{"-f", dir, "--out", dir} }, errs: "is an original: use another folder",
		},
		"Values": {
			reason: "Values do not replace an original.", files: map[string]string{"db.yaml": esoStore},
			args: func(dir string) []string {
				return []string{"-f", dir, "--out", filepath.Join(dir, "out"), "--values", filepath.Join(dir, "db.yaml")}
			},
			errs: "is an original: use another file",
		},
		"Report": {
			reason: "A report does not replace an original.", files: map[string]string{"db.yaml": esoStore},
			args: func(dir string) []string { return []string{"-f", dir, "--report", filepath.Join(dir, "db.yaml")} }, errs: "is an original: use another file",
		},
		"ReportOverValues": {
			reason: "A report does not replace the values.", files: map[string]string{"db.yaml": esoStore},
			args: func(dir string) []string {
				return []string{"-f", dir, "--values", filepath.Join(dir, "out.yaml"), "--report", filepath.Join(dir, "./out.yaml")}
			},
			errs: "the values and the report would be the same file",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, tc.files)
			out, errs, code := run(t, "", append([]string{"migrate"}, tc.args(dir)...)...)
			if code != exitNotConverted || out != "" || !strings.Contains(errs, tc.errs) {
				t.Errorf("%s: exit code %d: %s%s", tc.reason, code, out, errs)
			}
			if diff := cmp.Diff(tc.files, read(t, dir)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMigrateVerify builds kustomizations before and after the conversion.
func TestMigrateVerify(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"base/google.yaml": esoStore, "base/db.yaml": esoSecret, "base/kustomization.yaml": "resources: [google.yaml, db.yaml]\n",
		"same/kustomization.yaml":   "resources: [../base]\nnamePrefix: a-\n",
		"labels/kustomization.yaml": "resources: [../base]\nlabels: [{pairs: {team: shop}}]\n",
		"far/kustomization.yaml":    "resources: [https://127.0.0.1:1/a.yaml]\n",
	})
	out, errs, code := run(t, "", "migrate", "-f", dir, "--in-place", "--verify")
	if code != exitChanged || out != "" {
		t.Errorf("exit code %d: %s", code, out)
	}
	_, others, _ := strings.Cut(errs, "Other places to change by hand:\n")
	want := `labels adds labels to ExternalSecrets, which External Secrets Operator copies to their Secrets
  -> if readers of the Secrets need them, add them to spec.target.template.metadata.labels too, as with an entry of labels that has fields
     labels/kustomization.yaml:2
the kustomization cannot be built: far/kustomization.yaml names https://127.0.0.1:1/a.yaml, which is not there, and is not fetched
  -> build it before and after the conversion, and compare
     far/kustomization.yaml:1
its build differs from a conversion of the former one: ExternalSecret shop/db (direct-secrets.io): spec.target is missing
  -> change the files until it does not, or accept the difference
     labels/kustomization.yaml:1

2 exact, 0 changed, 0 unsupported
3 other places to change by hand
2 of 4 kustomizations build the same objects as before, converted
`
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.NewReplacer(dir+"/", "", resolved+"/", "").Replace(others)); diff != "" {
		t.Errorf("-want, +got:\n%s\n%s", diff, errs)
	}
}

// TestMigrateAccept accepts what a report has. A new finding counts.
func TestMigrateAccept(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.yaml": esoStore + "---\n" + esoPush, "b.yaml": esoForeign})
	report := filepath.Join(t.TempDir(), "report.json")
	if _, errs, code := run(t, "", "migrate", "-f", dir, "--dry-run", "-o", "json", "--report", report); code != exitUnsupported {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if _, errs, code := run(t, "", "migrate", "-f", dir, "--dry-run", "--accept", report); code != 0 || !strings.HasSuffix(errs, "1 exact, 1 changed, 1 unsupported\n2 findings are accepted\n") {
		t.Errorf("the same: exit code %d: %s", code, errs)
	}
	if err := writeNew(filepath.Join(dir, "c.yaml"), []byte(strings.Replace(esoPush, "name: db", "name: more", 1))); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, "", "migrate", "-f", dir, "--dry-run", "--accept", report); code != exitChanged || !strings.Contains(errs, "PushSecret shop/more") || strings.Contains(errs, "PushSecret shop/db") {
		t.Errorf("a new one: exit code %d: %s", code, errs)
	}
	if _, errs, code := run(t, "", "migrate", "-f", dir, "--accept", filepath.Join(dir, "c.yaml")); code != exitNotConverted || !strings.Contains(errs, "c.yaml is not a report of dsctl migrate -o json") {
		t.Errorf("no report: exit code %d: %s", code, errs)
	}
}
