// Package charts tests the charts with Helm's own packages, against a real API server.
package charts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

var update = flag.Bool("update", false, "write the golden files again")

// These are the names of the release in the tests.
const (
	release   = "direct-secrets"
	namespace = "direct-secrets"
	umbrella  = "direct-secrets"
)

// groups are the API groups of the Kinds of each chart. modules are all modules of the umbrella chart, sorted.
var groups, modules = func() (map[string]string, []string) {
	raw, err := os.ReadFile(umbrella + "/files/modules.yaml")
	groups := map[string]string{}
	if err = errors.Join(err, yaml.Unmarshal(raw, &groups)); err != nil {
		panic(err) // `make generate` writes the file.
	}
	modules := slices.Sorted(maps.Keys(groups))
	groups["crds"] = "direct-secrets.io"
	return groups, modules
}()

var (
	plane      *controlplane.ControlPlane
	admin      client.Client
	helmClient *helm.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs each link in a chart, which would hide what failed.
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		log.SetLogger(logr.Discard())
		return use(c)
	})
}

// use makes the following tests use a control plane.
func use(c *controlplane.ControlPlane) (err error) {
	plane = c
	if admin, err = client.New(c.Config(), client.Options{}); err != nil {
		return err
	}
	helmClient, err = helm.New(c.Config())
	return err
}

// enable returns the values that enable modules, with others set like with `helm --set-json`, but for objects, which are merged.
func enable(modules []string, sets ...string) map[string]any {
	values, all := map[string]any{}, slices.Clone(sets)
	for _, m := range modules {
		all = append(all, m+".enabled=true")
	}
	for _, set := range all {
		one := map[string]any{}
		if err := helm.Set(one, set); err != nil {
			panic(err) // The test has an error.
		}
		merge(values, one)
	}
	return values
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, is := value.(map[string]any)
		if at, was := into[key].(map[string]any); is && was {
			merge(at, below)
		} else {
			into[key] = value
		}
	}
}

// noCRDs leaves out the CRDs, which take most of the time of a rendering.
const noCRDs = `global.crds.enabled=false`

// rendered holds manifests by release, chart and values, and decoded their objects: many tests look at the same ones.
var rendered, decoded sync.Map

// template renders the umbrella chart.
func template(release, namespace string, values map[string]any) (string, error) {
	return manifests(helm.Release{Name: release, Namespace: namespace, Chart: umbrella, Values: values})
}

// manifests renders a chart once.
func manifests(r helm.Release) (string, error) {
	once, _ := rendered.LoadOrStore(fmt.Sprintf("%+v", r), sync.OnceValues(func() (string, error) { return helmClient.Template(r) }))
	return once.(func() (string, error))()
}

// render returns the objects of a chart, which a test must not change.
func render(t *testing.T, chart string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	out, err := manifests(helm.Release{Name: release, Namespace: namespace, Chart: chart, Values: values})
	must(t, err)
	once, _ := decoded.LoadOrStore(out, sync.OnceValue(func() []*unstructured.Unstructured { return objectsOf(t, out) }))
	return once.(func() []*unstructured.Unstructured)()
}

// objectsOf decodes the output of Helm.
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

// names returns the sorted names and Kinds of objects.
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

// decode converts an object to a type; unknown fields are an error.
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

// background is the context of requests. The timeout of the tests limits their time.
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

// appVersion returns the appVersion of the umbrella chart.
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
