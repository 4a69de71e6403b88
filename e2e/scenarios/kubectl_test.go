package scenarios

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestCommandsNameTheGroup holds every kubectl command of the pages, messages and charts to `externalsecrets.direct-secrets.io`.
// External Secrets Operator has the same plurals, so that a bare one may mean its objects.
func TestCommandsNameTheGroup(t *testing.T) {
	t.Parallel()
	bare := bareNames(t)
	commands := 0
	for _, path := range sources(t) {
		raw, err := os.ReadFile(filepath.Join(repository, path))
		must(t, err)
		for i, line := range strings.Split(string(raw), "\n") {
			if strings.Contains(line, "kubectl ") {
				commands++
			}
			if found := bare(line); len(found) > 0 {
				t.Errorf("%s:%d: %q needs its group, as in externalsecrets.direct-secrets.io", path, i+1, found)
			}
		}
	}
	if commands < 40 {
		t.Errorf("only %d lines with kubectl were found", commands)
	}
}

func TestBareNames(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		line   string
		want   []string
	}{
		"Plural":    {reason: "ESO has this plural, too", line: "kubectl get externalsecrets -A", want: []string{"externalsecrets"}},
		"Singular":  {reason: "flags may stand between", line: "    kubectl annotate --overwrite pushsecret -n shop db a=b", want: []string{"pushsecret"}},
		"Slash":     {reason: "type and name may be one argument", line: "`kubectl describe es/db`", want: []string{"es"}},
		"List":      {reason: "each of a list counts", line: "kubectl get secrets,externalsecrets.direct-secrets.io,ps", want: []string{"ps"}},
		"Inner":     {reason: "a command may hold another", line: `kubectl wait x "$(kubectl get es db)"`, want: []string{"es"}},
		"Qualified": {reason: "this is unambiguous", line: "kubectl get externalsecrets.direct-secrets.io,passwords.generator.direct-secrets.io"},
		"Category":  {reason: "ESO has none of this name", line: "kubectl get direct-secrets -A"},
		"Prose":     {reason: "not a command", line: "an externalsecret or es"},
	}
	bare := bareNames(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, bare(tc.line)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// bareNames returns a function that finds what kubectl commands of a line call our Kinds, or those of External Secrets
// Operator with the same plural, without a group.
func bareNames(t *testing.T) func(line string) []string {
	t.Helper()
	// Short names of External Secrets Operator, which ours were once.
	names := []string{"es", "ces", "ps"}
	files, err := filepath.Glob(filepath.Join(repository, "*/manifests/crds/*.yaml"))
	must(t, err)
	if len(files) < 20 {
		t.Fatalf("only %d CRDs were found", len(files))
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		must(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, yaml.Unmarshal(raw, crd))
		names = append(names, crd.Spec.Names.Plural, crd.Spec.Names.Singular)
		names = append(names, crd.Spec.Names.ShortNames...)
	}
	name := regexp.MustCompile(`[\s,](` + strings.Join(names, "|") + `)(?:[\s,/` + "`" + `]|$)`)
	return func(line string) []string {
		var found []string
		_, rest, _ := strings.Cut(line, "kubectl ")
		for _, m := range name.FindAllStringSubmatch(" "+rest, -1) {
			found = append(found, m[1])
		}
		return found
	}
}

// sources returns the paths of the pages, of the code that is not a test, and of the charts, from the root of the checkout.
func sources(t *testing.T) []string {
	t.Helper()
	all := pages(t)
	must(t, filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(repository, path)
		switch {
		case err != nil:
			return err
		case relErr != nil:
			return relErr
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go"):
		case strings.HasSuffix(path, ".go"), strings.HasPrefix(rel, "charts/"):
			all = append(all, rel)
		}
		return nil
	}))
	return all
}
