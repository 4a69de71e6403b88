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

// TestCommandsNameTheGroup checks that every kubectl command in pages, messages and charts uses full names such
// as `externalsecrets.direct-secrets.io`. External Secrets Operator has the same plurals, so a bare name can
// mean its objects.
func TestCommandsNameTheGroup(t *testing.T) {
	t.Parallel()
	bare := bareNames(t)
	commands := 0
	for _, path := range sources(t) {
		raw, err := os.ReadFile(filepath.Join(repository, path))
		must(t, err)
		lines := strings.Split(string(raw), "\n")
		for i, line := range lines {
			if strings.Contains(line, "kubectl ") {
				commands++
			}
			for at := i; strings.HasSuffix(line, `\`) && at+1 < len(lines); at++ {
				line = strings.TrimSuffix(line, `\`) + lines[at+1]
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
		"Plural":    {reason: "External Secrets Operator has this plural, too", line: "kubectl get externalsecrets -A", want: []string{"externalsecrets"}},
		"Singular":  {reason: "flags can be in between", line: "    kubectl annotate --overwrite pushsecret -n shop db a=b", want: []string{"pushsecret"}},
		"Slash":     {reason: "type and name can be one argument", line: "`kubectl describe es/db`", want: []string{"es"}},
		"List":      {reason: "each name in a list is checked", line: "kubectl get secrets,externalsecrets.direct-secrets.io,ps", want: []string{"ps"}},
		"Second":    {reason: "a line can contain two commands", line: "kubectl get pods && kubectl get es", want: []string{"es"}},
		"Quoted":    {reason: "a message can quote a command", line: `"see it: kubectl get 'externalsecret'; or describe"`, want: []string{"externalsecret"}},
		"Inner":     {reason: "a command can contain another", line: `kubectl wait x "$(kubectl get es db)"`, want: []string{"es"}},
		"Qualified": {reason: "full names are unambiguous", line: "kubectl get externalsecrets.direct-secrets.io,passwords.generator.direct-secrets.io"},
		"Category":  {reason: "External Secrets Operator has no such name", line: "kubectl get direct-secrets -A"},
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

// bareNames returns a function that finds names without a group in kubectl commands of a line: names of our
// Kinds, and of Kinds of External Secrets Operator with the same plural.
func bareNames(t *testing.T) func(line string) []string {
	t.Helper()
	// These are short names of External Secrets Operator, which direct-secrets had earlier.
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
	name := regexp.MustCompile(`[\s,"'](` + strings.Join(names, "|") + `)(?:[\s,/;)"'` + "`" + `]|$)`)
	return func(line string) []string {
		var found []string
		_, rest, _ := strings.Cut(line, "kubectl ")
		for _, m := range name.FindAllStringSubmatch(" "+rest, -1) {
			found = append(found, m[1])
		}
		return found
	}
}

// sources returns the paths of the pages, of the code without tests, and of the charts, from the root of the
// checkout.
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
