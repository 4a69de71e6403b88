// Package charts tests the charts with Helm itself, against a real API server.
package charts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/direct-secrets/direct-secrets/common/controlplane"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The release of the tests.
const (
	release   = "direct-secrets"
	namespace = "direct-secrets"
	umbrella  = "direct-secrets"
)

// groups are those of the Kinds of each chart.
var groups = map[string]string{
	"crds": "direct-secrets.io", "generator-password": "generator.direct-secrets.io", "provider-aws": "aws.direct-secrets.io",
	"provider-gcp": "gcp.direct-secrets.io", "provider-vault": "vault.direct-secrets.io",
}

// modules are all that the umbrella chart has.
var modules = []string{"generator-password", "provider-aws", "provider-gcp", "provider-vault"}

var (
	plane *controlplane.ControlPlane
	admin client.Client
	// home is where Helm keeps its files, with the kubeconfig of an administrator.
	home string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("HELM") == "" {
		fmt.Fprintln(os.Stderr, "HELM is not set: run the tests with make, or set it to what hack/helm.sh prints")
		os.Exit(1)
	}
	controlplane.Main(tidy{m}, func(c *controlplane.ControlPlane) (err error) {
		log.SetLogger(logr.Discard())
		if home, err = os.MkdirTemp("", "charts-"); err != nil {
			return err
		}
		return use(c)
	})
}

// use has the tests that follow work with a control plane.
func use(c *controlplane.ControlPlane) error {
	raw, err := c.AdminKubeconfig()
	if err != nil {
		return err
	}
	plane = c
	admin, err = client.New(c.Config(), client.Options{})
	return errors.Join(err, os.WriteFile(filepath.Join(home, "kubeconfig"), raw, 0o600))
}

// ownCluster gives a test a control plane of its own, in which CRDs and policies may stay. The test must not be
// parallel.
func ownCluster(t *testing.T) {
	t.Helper()
	c, err := controlplane.Start(background)
	must(t, err)
	before := plane
	t.Cleanup(func() { must(t, errors.Join(use(before), c.Stop())) })
	must(t, use(c))
}

// tidy removes what Helm has kept after the tests.
type tidy struct{ controlplane.Runner }

func (r tidy) Run() int {
	defer func() { _ = os.RemoveAll(home) }()
	return r.Runner.Run()
}

// look looks at all files that Helm reads: Go repeats a test when files have changed that the test itself has
// looked at.
var look = sync.OnceValue(func() error {
	var errs []error
	for _, root := range []string{".", "../hack/charts.sh"} {
		errs = append(errs, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		}))
	}
	return errors.Join(errs...)
})

// helm runs Helm in the folder of the charts and returns what it prints.
func helm(args ...string) (string, error) {
	if err := look(); err != nil {
		return "", err
	}
	cmd := exec.Command(os.Getenv("HELM"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "kubeconfig")}
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, withoutLinks(failed.String()))
	}
	return out.String(), nil
}

// withoutLinks drops what Helm says of links.
func withoutLinks(s string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(s, "\n"), func(l string) bool { return strings.Contains(l, "symbolic link") })
	return strings.Join(lines, "")
}

// enable returns the arguments that enable modules, and set further values.
func enable(modules []string, sets ...string) []string {
	var out []string
	for _, m := range modules {
		out = append(out, "--set", m+".enabled=true")
	}
	for _, s := range sets {
		out = append(out, "--set-json", s)
	}
	return out
}

// render returns the objects of a chart.
func render(t *testing.T, chart string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	out, err := helm(append([]string{"template", release, chart, "--namespace", namespace}, args...)...)
	must(t, err)
	return objectsOf(t, out)
}

// objectsOf reads what Helm has rendered.
func objectsOf(t *testing.T, out string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(out)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		o := &unstructured.Unstructured{}
		if err = errors.Join(err, yaml.UnmarshalStrict(doc, &o.Object)); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// names returns what identifies the objects, sorted.
func names(objects []*unstructured.Unstructured) []string {
	set := map[string]bool{}
	for _, o := range objects {
		set[name(o)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func name(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// of returns the objects of a Kind.
func of(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// decode turns an object into a type of its own; fields that the type does not have are an error.
func decode[T any](t *testing.T, o *unstructured.Unstructured) T {
	t.Helper()
	var out T
	raw, err := o.MarshalJSON()
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", name(o), err)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// background is the context of requests; the tests bound the time.
var background = context.Background()

// topLevel returns the members of a JSON object.
func topLevel(t *testing.T, raw string) map[string]string {
	t.Helper()
	var members map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(raw), &members))
	out := map[string]string{}
	for k, v := range members {
		out[k] = string(v)
	}
	return out
}

// appVersion returns that of the umbrella chart.
func appVersion(t *testing.T) string {
	t.Helper()
	var meta struct {
		AppVersion string `json:"appVersion"`
	}
	must(t, yaml.Unmarshal([]byte(read(t, umbrella+"/Chart.yaml")), &meta))
	return meta.AppVersion
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	return string(raw)
}
