package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// run runs dsctl without a cluster, and returns what it prints, its errors, and its exit code.
func run(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &o, ErrOut: &e}
	code = Run(t.Context(), args, streams, "v0.1.1", func(context.Context, *rest.Config, genericiooptions.IOStreams) error { return nil })
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
	values = `remote: {shop/db: {user: shop, password: hunter2}}`
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
			reason: "without --show-values there are names and sizes", manifest: externalSecret, values: values,
			out: "Secret shop/db of type Opaque\n  dsn: 12 bytes\n  password: 7 bytes\n  user: 4 bytes\n  labels: team\n",
		},
		"JSON": {
			reason: "also as JSON", manifest: externalSecret, values: `{remote: {shop/db: {user: shop, password: ""}}}`, args: []string{"--output", "json"},
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
			reason: "with it there is the Secret", manifest: externalSecret, values: values, args: []string{"--show-values"},
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
		"TemplateError": {
			reason: "an error of a template names the line and shows no value", manifest: strings.Replace(externalSecret, "{{ .password }}", "{{ .pasword }}", 1), values: values,
			errs: "error: ExternalSecret db: spec.target.template.data[dsn]: line 1, column 16: there is no key \"pasword\"\n", code: ExitFailed,
		},
		"Misspelt": {
			reason: "a field that no ExternalSecret has is an error", manifest: strings.Replace(externalSecret, "storeRef", "storRef", 1), values: values,
			errs: `unknown field "storRef"`, code: ExitFailed,
		},
		"Nothing": {
			reason: "a manifest without an ExternalSecret is an error", manifest: "kind: Secret", values: values,
			errs: "holds no ExternalSecret", code: ExitFailed,
		},
		"Format": {
			reason: "an unknown format is an error", manifest: externalSecret, values: values, args: []string{"-o", "xml"},
			errs: "error: --output: \"xml\" is none of json, yaml\n", code: ExitFailed,
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

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		errs   string
	}{
		"Unknown":      {reason: "an unknown command is an error", args: []string{"docter"}, errs: `unknown command "docter"`},
		"NoSelection":  {reason: "what is to be changed must be named", args: []string{"suspend"}, errs: "name objects, or use either --all or --store"},
		"TwoWays":      {reason: "in one way", args: []string{"refresh", "db", "--all"}, errs: "name objects, or use either --all or --store"},
		"DiffNothing":  {reason: "a difference needs an object", args: []string{"diff"}, errs: "name ExternalSecrets, or use -f"},
		"NoKubeconfig": {reason: "the demo uses no cluster of the environment", args: []string{"demo", "--context", "kind"}, errs: "--context needs --kubeconfig"},
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

func TestLine(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("a b  c[31m", line("a\nb\r\x1bc[31m")); diff != "" {
		t.Errorf("a message of the cluster cannot forge lines or colours: -want, +got:\n%s", diff)
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
