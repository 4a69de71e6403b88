package scenarios

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// repository is the root of the checkout.
const repository = "../.."

// pages returns the paths of all pages, from the root of the checkout.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		must(t, err)
		for _, f := range found {
			path, err := filepath.Rel(repository, f)
			must(t, err)
			all = append(all, path)
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

// A page is a parsed page in Markdown.
type page struct {
	path     string
	blocks   []block
	headings []string
	links    []string
	// strays are the lines of manifests outside of a block.
	strays []int
}

// A block is the text between two fences.
type block struct {
	line int
	// info is the text after the opening fence: the language, then marks.
	info []string
	text string
	// comment is the HTML comment directly before the block.
	comment string
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// readPage parses a page.
func readPage(t *testing.T, path string) page {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, path))
	must(t, err)
	p := page{path: path}
	var open *block
	var text []string
	indent, comment := 0, ""
	for i, line := range strings.Split(string(raw), "\n") {
		trimmed := strings.TrimSpace(line)
		info, isFence := strings.CutPrefix(trimmed, "```")
		switch {
		case isFence && open == nil:
			open, text, indent = &block{line: i + 1, info: strings.Fields(info), comment: comment}, nil, strings.Index(line, "`")
		case isFence:
			open.text = strings.Join(text, "\n") + "\n"
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			text = append(text, line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):])
		case strings.HasPrefix(trimmed, "<!--") && strings.HasSuffix(trimmed, "-->"):
			comment = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(trimmed, "<!--"), "-->"))
			continue
		case strings.HasPrefix(line, "#"):
			p.headings = append(p.headings, strings.TrimSpace(strings.TrimLeft(line, "#")))
		default:
			if strings.HasPrefix(trimmed, "apiVersion:") || strings.HasPrefix(trimmed, "- apiVersion:") {
				p.strays = append(p.strays, i+1)
			}
			for _, l := range link.FindAllStringSubmatch(line, -1) {
				p.links = append(p.links, l[1])
			}
		}
		comment = ""
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", path, open.line)
	}
	return p
}

// languages are those of blocks without YAML.
var languages = []string{"console", "hcl", "json", "mermaid", "promql", "sh", "text"}

// TestExamples checks that the real API server accepts every YAML block of every page, with strict validation.
// It stores nothing, so that no operator acts on an example. A block that is not a complete manifest has a
// mark:
//
//	yaml                complete manifests
//	yaml spec=KIND      a part of a manifest: it is merged into the minimal manifest of its Kind
//	yaml values         values of the chart
//	yaml foreign        manifests of other projects, whose fields are listed in foreign
func TestExamples(t *testing.T) {
	t.Parallel()
	must(t, shared.CreateNamespace(t.Context(), documented))
	kinds, checked := customKinds(t, shared), 0
	for _, path := range pages(t) {
		p := readPage(t, path)
		for _, line := range p.strays {
			t.Errorf("%s:%d: no test applies a manifest outside of a ```yaml block", path, line)
		}
		for _, b := range p.blocks {
			checked++
			if err := checkBlock(t, kinds, b); err != nil {
				t.Errorf("%s:%d: %v", path, b.line, err)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d blocks were found", checked)
	}
}

func checkBlock(t *testing.T, kinds map[string]schema.GroupVersionKind, b block) error {
	t.Helper()
	language, mark := "", ""
	if len(b.info) > 0 {
		language = b.info[0]
	}
	if len(b.info) > 1 {
		mark = b.info[1]
	}
	kind, isPart := strings.CutPrefix(mark, "spec=")
	switch {
	case len(b.info) > 2:
		return fmt.Errorf("a block has one mark, not %q", b.info[1:])
	case language == "json":
		var value any
		return json.Unmarshal([]byte(b.text), &value)
	case slices.Contains(languages, language):
		return nil
	case language != "yaml":
		return fmt.Errorf("the language %q is unknown: write yaml, or one of %v", language, languages)
	case mark == "":
		return checkManifests(t, kinds, b.text)
	case isPart:
		return checkPart(t, kinds, kind, b.text)
	case mark == "values":
		return checkValues(t, b.text)
	case mark == "foreign":
		return checkForeign(t, b.text)
	}
	return fmt.Errorf("the mark %q is unknown", mark)
}

// decode returns the documents of a block.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, doc := range stack.Documents([]byte(text)) {
		o := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, err
		}
		if err := utiljson.Unmarshal(raw, &o.Object); err != nil { // This decoder distinguishes integers from other numbers.
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// documented is the namespace of all examples.
const documented = "documented"

func checkManifests(t *testing.T, kinds map[string]schema.GroupVersionKind, text string) error {
	t.Helper()
	all, err := decode(text)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			return fmt.Errorf("a manifest has apiVersion, kind and a name; a block that is a part of one is marked, for example as ```yaml spec=ExternalSecret")
		}
		if err := accepted(t, o); err != nil {
			return err
		}
		if kind, isOurs := kinds[o.GetKind()]; isOurs && kind != o.GroupVersionKind() {
			return fmt.Errorf("%s is of %s here, and of %s in the cluster", o.GetKind(), o.GetAPIVersion(), kind.GroupVersion())
		}
	}
	return nil
}

// accepted checks that the API server accepts an object, and keeps all fields of its spec unchanged.
func accepted(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	namespaced, err := shared.Admin.IsObjectNamespaced(o)
	if err != nil {
		return fmt.Errorf("%s: %w", o.GetKind(), err)
	}
	if namespaced {
		o.SetNamespace(documented)
	}
	got := o.DeepCopy()
	dry := client.WithFieldValidation(client.NewDryRunClient(shared.Admin), metav1.FieldValidationStrict)
	if err := dry.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(got), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if diff := cmp.Diff(o.Object["spec"], got.Object["spec"]); diff != "" && strings.HasSuffix(o.GroupVersionKind().Group, v1alpha1.Group) {
		return fmt.Errorf("%s %s: the spec is changed: -sent, +got:\n%s", o.GetKind(), o.GetName(), diff)
	}
	return nil
}

// checkPart merges the metadata and spec of a block into the minimal manifest of a Kind.
func checkPart(t *testing.T, kinds map[string]schema.GroupVersionKind, kind, text string) error {
	t.Helper()
	of, known := manifests[kind]
	if !known {
		return fmt.Errorf("there is no Kind %q", kind)
	}
	parts, err := decode(text)
	if err != nil {
		return err
	}
	if len(parts) != 1 {
		return fmt.Errorf("a block that is a part of one manifest has one document, not %d", len(parts))
	}
	o := of[0].object(t, kinds[kind], false)
	for key, value := range parts[0].Object {
		fields, isMap := value.(map[string]any)
		if !isMap || key != "metadata" && key != "spec" {
			return fmt.Errorf("a part of %s has metadata or spec, not %q", kind, key)
		}
		over, _ := o.Object[key].(map[string]any)
		if over == nil {
			over = map[string]any{}
			o.Object[key] = over
		}
		maps.Copy(over, fields)
	}
	return accepted(t, o)
}

// checkValues renders the chart with the values, which checks them against the chart's schema, and checks that
// the API server accepts the result. It omits CRDs, which do not depend on values, and objects of the
// Prometheus operator, whose CRDs are missing.
func checkValues(t *testing.T, text string) error {
	t.Helper()
	chart, err := stack.Chart()
	must(t, err)
	helmClient, err := helm.New(shared.Config())
	must(t, err)
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		return err
	}
	out, err := helmClient.Template(helm.Release{Name: "direct-secrets", Namespace: stack.Namespace, Chart: chart, Values: values})
	if err != nil {
		return err
	}
	all, err := decode(out)
	if err != nil {
		return err
	}
	deployments := 0
	for _, o := range all {
		switch {
		case len(o.Object) == 0, o.GetKind() == "CustomResourceDefinition", o.GroupVersionKind().Group == "monitoring.coreos.com":
			continue
		case o.GetKind() == "Deployment":
			deployments++
		}
		if err := accepted(t, o); err != nil {
			return fmt.Errorf("of the chart: %w", err)
		}
	}
	if deployments == 0 {
		return fmt.Errorf("the values run no module")
	}
	return nil
}

// foreign lists the fields of other projects' Kinds that examples can use. A star matches all fields below.
var foreign = map[string][]string{
	"source.toolkit.fluxcd.io/v1/OCIRepository": {
		"spec.interval", "spec.url", "spec.ref.semver", "spec.layerSelector.mediaType", "spec.layerSelector.operation",
	},
	"helm.toolkit.fluxcd.io/v2/HelmRelease": {
		"spec.interval", "spec.chartRef.kind", "spec.chartRef.name", "spec.chartRef.namespace", "spec.values.*",
	},
	"kustomize.config.k8s.io/v1beta1/Kustomization": {"spec"}, // TestStaticManifestsPage builds it.
	"kustomize.toolkit.fluxcd.io/v1/Kustomization": {
		"spec.interval", "spec.path", "spec.prune", "spec.wait", "spec.timeout", "spec.dependsOn.name",
		"spec.sourceRef.kind", "spec.sourceRef.name",
	},
	"argoproj.io/v1alpha1/Application": {
		"spec.project", "spec.destination.server", "spec.destination.namespace", "spec.source.repoURL", "spec.source.chart",
		"spec.source.targetRevision", "spec.source.helm.valuesObject.*", "spec.syncPolicy.automated.prune",
		"spec.syncPolicy.automated.selfHeal", "spec.syncPolicy.syncOptions", "spec.source.path",
		"spec.ignoreDifferences.group", "spec.ignoreDifferences.kind", "spec.ignoreDifferences.managedFieldsManagers",
	},
}

// chartValues names the fields of these Kinds that contain values of the chart.
var chartValues = map[string][]string{
	"HelmRelease": {"spec", "values"},
	"Application": {"spec", "source", "helm", "valuesObject"},
}

func checkForeign(t *testing.T, text string) error {
	t.Helper()
	all, err := decode(text)
	if err != nil {
		return err
	}
	for _, o := range all {
		known, isKnown := foreign[o.GetAPIVersion()+"/"+o.GetKind()]
		if !isKnown {
			return fmt.Errorf("%s %s is not listed in foreign", o.GetAPIVersion(), o.GetKind())
		}
		for _, path := range fieldsOf("spec", o.Object["spec"]) {
			if !slices.ContainsFunc(known, func(k string) bool {
				below, all := strings.CutSuffix(k, "*")
				return path == k || all && strings.HasPrefix(path, below)
			}) {
				return fmt.Errorf("nothing is known of %s in a %s", path, o.GetKind())
			}
		}
		values, found, err := unstructured.NestedMap(o.Object, chartValues[o.GetKind()]...)
		if err != nil {
			return err
		}
		if found && chartValues[o.GetKind()] != nil {
			raw, err := yaml.Marshal(values)
			must(t, err)
			if err := checkValues(t, string(raw)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldsOf returns the paths of all fields in a value. List items have no index.
func fieldsOf(path string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		var all []string
		for k, v := range value {
			all = append(all, fieldsOf(path+"."+k, v)...)
		}
		return all
	case []any:
		var all []string
		for _, v := range value {
			all = append(all, fieldsOf(path, v)...)
		}
		return all
	}
	return []string{path}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor returns GitHub's anchor of a heading.
func anchor(heading string) string {
	text := link.ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(text, ""), " ", "-")
}

// TestLinks checks that every link between pages leads to an existing file and heading.
func TestLinks(t *testing.T) {
	for _, path := range pages(t) {
		for _, l := range readPage(t, path).links {
			if strings.Contains(l, "://") || strings.HasPrefix(l, "mailto:") {
				continue
			}
			file, fragment, hasFragment := strings.Cut(l, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(repository, to)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", path, l)
				continue
			}
			if !hasFragment {
				continue
			}
			headings := readPage(t, to).headings
			if !slices.ContainsFunc(headings, func(h string) bool { return anchor(h) == fragment }) {
				t.Errorf("%s: the link %s leads to no heading", path, l)
			}
		}
	}
}

// TestEveryKindExplained checks that every Kind has a heading.
func TestEveryKindExplained(t *testing.T) {
	var headings []string
	for _, path := range pages(t) {
		headings = append(headings, readPage(t, path).headings...)
	}
	for kind := range customKinds(t, shared) {
		word := regexp.MustCompile(`\b` + kind + `\b`)
		if !slices.ContainsFunc(headings, word.MatchString) {
			t.Errorf("no heading of any page names %s", kind)
		}
	}
}

// runbook is the page for on-call engineers.
const runbook = "docs/operate/runbook.md"

// below returns the headings of one level under a heading of the level above.
func below(t *testing.T, path, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, path))
	must(t, err)
	_, rest, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", path, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var all []string
	for line := range strings.Lines(rest) {
		if h, isHeading := strings.CutPrefix(line, "### "); isHeading {
			all = append(all, strings.TrimSpace(h))
		}
	}
	slices.Sort(all)
	return all
}

// apiReasons returns the reasons of conditions in the API.
func apiReasons(t *testing.T) []string {
	t.Helper()
	const api = repository + "/common/apis/v1alpha1"
	files, err := filepath.Glob(api + "/*.go")
	must(t, err)
	reasons := map[string]bool{
		// This is the name of a condition, which is also a reason of Ready of a PushSecret.
		v1alpha1.ConditionReconciling: true,
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		must(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, isSpec := n.(*ast.ValueSpec)
			if !isSpec {
				return true
			}
			for i, name := range spec.Names {
				if !strings.HasPrefix(name.Name, "Reason") {
					continue
				}
				literal, isLiteral := spec.Values[i].(*ast.BasicLit)
				if !isLiteral {
					t.Fatalf("%s is no literal", name.Name)
				}
				value, err := strconv.Unquote(literal.Value)
				must(t, err)
				reasons[value] = true
			}
			return true
		})
	}
	if len(reasons) < 15 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	return slices.Sorted(maps.Keys(reasons))
}

// TestRunbookReasons compares the runbook with the reasons in the API.
func TestRunbookReasons(t *testing.T) {
	if diff := cmp.Diff(apiReasons(t), below(t, runbook, "Reasons")); diff != "" {
		t.Errorf("reasons: -API, +%s:\n%s", runbook, diff)
	}
}

var listedReason = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\(../operate/runbook.md#(\\w+)\\) \\|")

// TestReasonsListed compares the table of reasons with the API. Each row links to the entry of its reason in the runbook.
func TestReasonsListed(t *testing.T) {
	const path = "docs/reference/conditions.md"
	raw, err := os.ReadFile(filepath.Join(repository, path))
	must(t, err)
	var listed []string
	for _, row := range listedReason.FindAllStringSubmatch(string(raw), -1) {
		listed = append(listed, row[1])
		if row[2] != anchor(row[1]) {
			t.Errorf("%s: %s links to #%s", path, row[1], row[2])
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(apiReasons(t), listed); diff != "" {
		t.Errorf("reasons: -API, +%s:\n%s", path, diff)
	}
}

// TestRunbookAlerts compares the runbook with the alerts of the chart.
func TestRunbookAlerts(t *testing.T) {
	raw, err := os.ReadFile(repository + "/charts/direct-secrets/files/alerts.yaml")
	must(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	must(t, yaml.Unmarshal(raw, &rules))
	var alerts []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts = append(alerts, r.Alert)
			if url, want := r.Annotations["runbook_url"], "/"+runbook+"#"+anchor(r.Alert); !strings.HasSuffix(url, want) {
				t.Errorf("the runbook_url of %s is %q, want one that ends with %s", r.Alert, url, want)
			}
		}
	}
	slices.Sort(alerts)
	if diff := cmp.Diff(alerts, below(t, runbook, "Alerts")); diff != "" {
		t.Errorf("alerts: -chart, +%s:\n%s", runbook, diff)
	}
}
