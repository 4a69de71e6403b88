package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/diagnosis"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/offline"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// run runs dsctl without a cluster. It returns its output, its errors, and its exit code.
func run(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &o, ErrOut: &e}
	code = Run(t.Context(), args, streams, "v0.1.1", func(_ context.Context, _ *rest.Config, rotation bool, s genericiooptions.IOStreams) error {
		_, err := fmt.Fprintf(s.Out, "rotation %t", rotation)
		return err
	})
	return o.String(), e.String(), code
}

const (
	externalSecret = `
apiVersion: v1
kind: ConfigMap
metadata: {name: ignored}
---
apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata: {name: db, namespace: shop}
spec:
  storeRef: {kind: VaultKV, name: kv}
  target: {template: {mergePolicy: Merge, metadata: {labels: {team: "{{ .user }}"}}, data: {dsn: "{{ .user }}:{{ .password }}"}}}
  dataFrom: [{extract: {key: shop/db}}]
`
	values    = `remote: {shop/db: {user: shop, password: hunter2}}`
	configMap = `
apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata: {name: app, namespace: shop}
spec:
  storeRef: {kind: VaultKV, name: kv}
  target: {kind: ConfigMap, name: env, template: {metadata: {labels: {team: shop}}}}
  data: [{secretKey: user, remoteRef: {key: shop/db, property: user}}]
`
)

func TestRender(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, manifest, values string
		args                     []string
		out, errs                string
		code                     int
	}{
		"Names": {
			reason: "without --show-values only names and sizes are printed", manifest: externalSecret, values: values,
			out: "Secret shop/db of type Opaque\n  dsn: 12 bytes\n  password: 7 bytes\n  user: 4 bytes\n  labels: team\n",
		},
		"JSON": {
			reason: "JSON has only names and sizes, too", manifest: externalSecret, values: `{remote: {shop/db: {user: shop, password: ""}}}`, args: []string{"--output", "json"},
			out: `[
  {
    "externalSecret": "db",
    "namespace": "shop",
    "secret": "db",
    "type": "Opaque",
    "data": [
      {
        "key": "dsn",
        "bytes": 5
      },
      {
        "key": "password",
        "bytes": 0
      },
      {
        "key": "user",
        "bytes": 4
      }
    ],
    "labels": [
      "team"
    ]
  }
]
`,
		},
		"Values": {
			reason: "with --show-values the Secret is printed", manifest: externalSecret, values: values, args: []string{"--show-values"},
			out: `apiVersion: v1
data:
  dsn: c2hvcDpodW50ZXIy
  password: aHVudGVyMg==
  user: c2hvcA==
kind: Secret
metadata:
  labels:
    team: shop
  name: db
  namespace: shop
type: Opaque
`,
		},
		"ConfigMap": {
			reason: "a ConfigMap has its own Kind and no type", manifest: configMap, values: values,
			out: "ConfigMap shop/env\n  user: 4 bytes\n  labels: team\n",
		},
		"ConfigMapJSON": {
			reason: "a program does not take a ConfigMap for a Secret", manifest: strings.Replace(configMap, ", template: {metadata: {labels: {team: shop}}}", "", 1), values: values, args: []string{"-o", "yaml"},
			out: "configMap: env\ndata:\n- bytes: 4\n  key: user\nexternalSecret: app\nnamespace: shop\n",
		},
		"ConfigMapValues": {
			reason: "with --show-values a ConfigMap is printed that kubectl can apply", manifest: configMap, values: values, args: []string{"--show-values"},
			out: "apiVersion: v1\ndata:\n  user: shop\nkind: ConfigMap\nmetadata:\n  labels:\n    team: shop\n  name: env\n  namespace: shop\n",
		},
		"ConfigMapAbsent": {
			reason: "deletionPolicy Delete removes a ConfigMap, too", manifest: strings.Replace(configMap, "name: env,", "name: env, deletionPolicy: Delete,", 1), values: "remote: {}",
			out: "ConfigMap shop/env: none, because of spec.target.deletionPolicy\n",
		},
		"ConfigMapNotText": {
			reason: "a value that is not text is an error, as in the operator", values: "remote: {shop/db: {user: /w==}}",
			manifest: strings.Replace(configMap, "property: user", "property: user, decodingStrategy: Base64", 1),
			errs:     "error: ExternalSecret app: the value of key \"user\" is not text, as a ConfigMap needs; write it to a Secret\n", code: ExitFailed,
		},
		"ConfigMapType": {
			reason: "the API server refuses the type of a ConfigMap", manifest: strings.Replace(configMap, "template: {", "template: {type: Opaque, ", 1), values: values,
			errs: "error: ExternalSecret app: spec.target.template.type: a ConfigMap has no type; remove it\n", code: ExitFailed,
		},
		"ConfigMapGenerated": {
			reason: "the API server refuses generated values in a ConfigMap", manifest: configMap + "  dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: pw}}}]\n", values: values,
			errs: "error: ExternalSecret app: spec.dataFrom[0].sourceRef.generatorRef: generated values are secret; write them to a Secret\n", code: ExitFailed,
		},
		"TemplateError": {
			reason: "an error of a template names the line and shows no value", manifest: strings.Replace(externalSecret, "{{ .password }}", "{{ .pasword }}", 1), values: values,
			errs: "error: ExternalSecret db: spec.target.template.data[dsn]: line 1, column 16: there is no key \"pasword\"\n", code: ExitFailed,
		},
		"OneFails": {
			reason: "after an error, the others are rendered", values: values,
			manifest: strings.Replace(externalSecret, "{{ .password }}", "{{ .pasword }}", 1) + "---\n" + strings.Replace(externalSecret, "name: db,", "name: other,", 1),
			out:      "Secret shop/other of type Opaque\n  dsn: 12 bytes\n  password: 7 bytes\n  user: 4 bytes\n  labels: team\n",
			errs:     "error: ExternalSecret db: spec.target.template.data[dsn]: line 1", code: ExitFailed,
		},
		"Misspelt": {
			reason: "an unknown field is an error", manifest: strings.Replace(externalSecret, "storeRef", "storRef", 1), values: values,
			errs: `unknown field "spec.storRef"`, code: ExitFailed,
		},
		"MisspeltInside": {
			reason: "the error has the path of the field", manifest: strings.Replace(externalSecret, "{key: shop/db}", "{kye: shop/db}", 1), values: values,
			errs: `unknown field "spec.dataFrom[0].extract.kye"`, code: ExitFailed,
		},
		"Word": {
			reason: "a name that YAML takes for a boolean is refused", manifest: strings.Replace(externalSecret, "namespace: shop", "namespace: n", 1), values: values,
			errs: `metadata.namespace: YAML 1.1 reads n without quotes as true or false; write "n" for the text`, code: ExitFailed,
		},
		"Nothing": {
			reason: "a manifest without an ExternalSecret is an error", manifest: "kind: Secret", values: values,
			errs: "holds no ExternalSecret", code: ExitFailed,
		},
		"Format": {
			reason: "an unknown format is an error", manifest: externalSecret, values: values, args: []string{"-o", "xml"},
			errs: "error: --output: \"xml\" is not supported; use one of json, yaml\n", code: ExitFailed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(tc.values), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := run(t, tc.manifest, append([]string{"render", "-f", "-", "--values", file}, tc.args...)...)
			if diff := cmp.Diff(tc.out, out); diff != "" || code != tc.code {
				t.Errorf("%s: exit code %d, -want, +got:\n%s", tc.reason, code, diff)
			}
			if !strings.Contains(errs, tc.errs) || (tc.errs == "" && errs != "") {
				t.Errorf("%s: errors:\n%s\nwant:\n%s", tc.reason, errs, tc.errs)
			}
			if strings.Contains(errs, "hunter2") || (tc.code != 0 && strings.Contains(out, "hunter2")) {
				t.Errorf("%s: a value is printed: %s%s", tc.reason, out, errs)
			}
		})
	}
}

// TestRenderPlaceholders renders without a file of values.
func TestRenderPlaceholders(t *testing.T) {
	t.Parallel()
	const note = "note: all values are placeholders, so a template that decodes or checks a value can fail: use --values\n"
	const more = "note: ExternalSecret db: dataFrom and templateFrom can add keys that depend on values: use --values\n"
	spec := func(spec string) string {
		return "apiVersion: direct-secrets.io/v1alpha1\nkind: ExternalSecret\nmetadata: {name: db, namespace: shop}\nspec: " + spec
	}
	const data = `storeRef: {kind: VaultKV, name: kv}, data: [{secretKey: user, remoteRef: {key: shop/db, property: user, decodingStrategy: Base64}}]`
	cases := map[string]struct {
		reason, manifest string
		args             []string
		out, errs        string
		code             int
	}{
		"Keys":     {"a placeholder names the remote key and property", spec("{" + data + "}"), nil, "Secret shop/db of type Opaque\n  user: <shop/db property user>\n", note, 0},
		"Template": {"keys of dataFrom that a template reads have placeholders, in labels too", externalSecret, nil, "Secret shop/db of type Opaque\n  dsn: <dataFrom key user>:<dataFrom key password>\n  password: <dataFrom key password>\n  user: <dataFrom key user>\n  labels: team\n", note + more, 0},
		"JSON":     {"a program does not take the size of a placeholder for that of a value", spec("{" + data + "}"), []string{"-o", "yaml"}, "data:\n- key: user\n  placeholder: <shop/db property user>\nexternalSecret: db\nnamespace: shop\nsecret: db\ntype: Opaque\n", note, 0},
		"Show":     {"the ConfigMap has the placeholders", configMap, []string{"--show-values"}, "apiVersion: v1\ndata:\n  user: <shop/db property user>\nkind: ConfigMap\nmetadata:\n  labels:\n    team: shop\n  name: env\n  namespace: shop\n", note, 0},
		"Type":     {"the type is not checked, because placeholders do not fit it", spec("{target: {template: {type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: '{{ .user }}'}}}, " + data + "}"), nil, "Secret shop/db of type kubernetes.io/dockerconfigjson\n  .dockerconfigjson: <shop/db property user>\n", note, 0},
		"From": {
			"templates of other objects are not known", spec("{target: {template: {templateFrom: [{configMap: {name: app, items: [{key: app.ini}, {key: more, templateAs: KeysAndValues}]}}]}}, " + data + "}"), nil,
			"Secret shop/db of type Opaque\n  app.ini: <ConfigMap app key app.ini>\n", note + more, 0,
		},
		"Misspelt": {"a key that neither data nor dataFrom fills is an error", spec("{target: {template: {data: {dsn: '{{ .usr }}'}}}, " + data + "}"), nil, "", note + "error: ExternalSecret db: spec.target.template.data[dsn]: line 1, column 4: there is no key \"usr\"\n", ExitFailed},
		"Decodes":  {"a template that decodes a placeholder fails, after the note", spec("{target: {template: {data: {dsn: '{{ (fromJson .user).a }}'}}}, " + data + "}"), nil, "", note + "error: ExternalSecret db: spec.target.template.data[dsn]: line 1, column 5: function \"fromJson\": the value is not JSON\n", ExitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errs, code := run(t, tc.manifest, append([]string{"render", "-f", "-"}, tc.args...)...)
			if diff := cmp.Diff([]any{tc.out, tc.errs, tc.code}, []any{out, errs, code}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVersion prints the version as a command and as a flag.
func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "--version"} {
		if out, errs, code := run(t, "", arg); out != "dsctl version v0.1.1\n" || errs != "" || code != 0 {
			t.Errorf("dsctl %s: exit code %d: %q%s", arg, code, out, errs)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		errs   string
	}{
		"Unknown":      {reason: "an unknown command is an error", args: []string{"docter"}, errs: `unknown command "docter"`},
		"NoSelection":  {reason: "a command without a selection is an error", args: []string{"suspend"}, errs: "name objects, or use either --all or --store"},
		"TwoWays":      {reason: "two kinds of selection are an error", args: []string{"refresh", "db", "--all"}, errs: "name objects, or use either --all or --store"},
		"DiffNothing":  {reason: "diff without an object is an error", args: []string{"diff"}, errs: "name ExternalSecrets or PushSecrets, or use -f"},
		"NoKubeconfig": {reason: "the demo does not use a cluster of the environment", args: []string{"demo", "--context", "kind"}, errs: "--context needs --kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, errs, code := run(t, "", tc.args...); code != ExitFailed || !strings.Contains(errs, tc.errs) {
				t.Errorf("%s: exit code %d: %s", tc.reason, code, errs)
			}
		})
	}
}

// TestDemo checks that the demo gets its flag.
func TestDemo(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{"rotation false": {"demo"}, "rotation true": {"demo", "--rotation"}} {
		if out, errs, code := run(t, "", args...); code != 0 || out != want {
			t.Errorf("%v: exit code %d: %s, output %q, want %q", args, code, errs, out, want)
		}
	}
}

// TestFormatPush checks the lines of diff for a PushSecret. A name of a remote secret cannot forge a line.
func TestFormatPush(t *testing.T) {
	t.Parallel()
	d := offline.PushDifference{Namespace: "shop", PushSecret: "db", StoreKind: "VaultKV", StoreName: "prod", Action: inspect.Refuse, Problems: []string{"no"}, Notes: []string{"long"}}
	for _, a := range []v1alpha1.PushAction{v1alpha1.PushCreate, v1alpha1.PushUpdate, v1alpha1.PushUpdateMetadata, v1alpha1.PushDelete, v1alpha1.PushKeep, v1alpha1.PushFail, "Paint"} {
		d.Entries = append(d.Entries, v1alpha1.PushDifferenceEntry{RemoteKey: "k\n", Action: a})
	}
	d.Entries[0].Property = "a.b"
	want := `PushSecret shop/db, VaultKV prod: Refuse
  + k  property a.b
  ~ k 
  ~ metadata of k 
  - k 
  = kept: k 
  ! fails: k 
  Paint k 
  problem: no
  note: long
`
	if diff := cmp.Diff(want, strings.Join(formatPush(d), "\n")+"\n"); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	one := 1
	object := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: "ExternalSecret", Namespace: "shop", Name: name}
	}
	var findings []diagnosis.Finding
	for i := range 12 {
		findings = append(findings, diagnosis.Finding{Severity: diagnosis.Error, Object: object(fmt.Sprint(i)), Reason: "Conflict", Message: "no", Fix: "yes"})
	}
	store := diagnosis.Finding{Severity: diagnosis.Warning, Object: snapshot.Ref{Kind: "AWSSecretsManager", Namespace: "shop", Name: "prod"}, Reason: "AuthFailed", Message: "refused\nError: forged; allow it", Fix: "allow it"}
	for i := range 7 {
		store.Affects = append(store.Affects, object(fmt.Sprint(i)))
	}
	cases := map[string]struct {
		reason string
		report report
		want   string
	}{
		"Affects": {
			reason: "the fix is printed once, a line break cannot forge a finding, and only some affected objects are named",
			report: report{Namespace: "shop", Objects: 8, Operators: &one, Warnings: 1, Findings: []diagnosis.Finding{store}},
			want: `Warning: AWSSecretsManager shop/prod: AuthFailed
  why: refused Error: forged
  fix: allow it
  affects: ExternalSecret shop/0, ExternalSecret shop/1, ExternalSecret shop/2, ExternalSecret shop/3, ExternalSecret shop/4 and 2 more

0 errors, 1 warning in namespace shop (8 objects checked, 1 operator running)
`,
		},
		"Alike": {
			reason: "ten of many similar findings are printed, and the others are counted",
			report: report{Objects: 12, Errors: 12, Findings: findings},
			want: strings.Repeat("x", 10) + `Error: 2 more of Kind ExternalSecret: Conflict
  fix: yes
  all: doctor --output json

12 errors, 0 warnings in all namespaces (12 objects checked, operators unknown)
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Join(tc.report.lines(), "\n") + "\n"
			got := regexp.MustCompile(`Error: ExternalSecret shop/\d+: Conflict\n  why: no\n  fix: yes\n\n`).ReplaceAllString(text, "x")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	out, _, code := run(t, "", "__complete", "doctor", "--output", "")
	if code != 0 || !strings.HasPrefix(out, "json\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, errs, code := run(t, "", "completion", shell); code != 0 || !strings.Contains(out, "dsctl") {
			t.Errorf("%s: exit code %d: %s", shell, code, errs)
		}
	}
}
