//go:build long

package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/commands"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// esoGroup is the suffix of the API groups of External Secrets Operator.
const esoGroup = "external-secrets.io"

// esoCRDs returns the CRDs in the published Go module of External Secrets Operator.
func esoCRDs(t *testing.T) [][]byte {
	t.Helper()
	const module = "github.com/external-secrets/external-secrets"
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join("..", "servers", "external-secrets")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot download %s: %v\n%s", module, err, out)
	}
	var downloaded struct{ Dir string }
	must(t, json.Unmarshal(out, &downloaded))
	files, err := filepath.Glob(filepath.Join(downloaded.Dir, "config", "crds", "bases", "*"+esoGroup+"_*.yaml"))
	must(t, err)
	var crds [][]byte
	for _, f := range files {
		raw, err := os.ReadFile(f)
		must(t, err)
		crds = append(crds, raw)
	}
	if len(crds) < 10 {
		t.Fatalf("%s has %d CRDs", downloaded.Dir, len(crds))
	}
	return crds
}

// esoObjects have the same names as the objects of direct-secrets in the pages.
const esoObjects = `
{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: prod}, spec: {provider: {fake: {data: [{key: a, value: b}]}}}}
---
{apiVersion: external-secrets.io/v1, kind: ClusterSecretStore, metadata: {name: prod}, spec: {provider: {fake: {data: [{key: a, value: b}]}}}}
---
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: db}, spec: {secretStoreRef: {name: prod}, target: {name: eso}, data: [{secretKey: a, remoteRef: {key: a}}]}}
---
{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, metadata: {name: db}, spec: {namespaceSelectors: [{}], externalSecretSpec: {secretStoreRef: {name: prod}, data: [{secretKey: a, remoteRef: {key: a}}]}}}
---
{apiVersion: external-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: db}, spec: {secretStoreRefs: [{name: prod}], selector: {secret: {name: eso}}, data: [{match: {remoteRef: {remoteKey: a}}}]}}
---
{apiVersion: external-secrets.io/v1alpha1, kind: ClusterPushSecret, metadata: {name: db}, spec: {namespaceSelectors: [{}], pushSecretSpec: {secretStoreRefs: [{name: prod}], selector: {secret: {name: eso}}}}}
---
{apiVersion: generators.external-secrets.io/v1alpha1, kind: Password, metadata: {name: db}, spec: {length: 24, noUpper: false, allowRepeat: true}}
---
{apiVersion: generators.external-secrets.io/v1alpha1, kind: ECRAuthorizationToken, metadata: {name: db}, spec: {region: eu-central-1}}
`

// ourObjects are the objects that commands of pages use, in addition to those of the README.
const ourObjects = `
{apiVersion: v1, kind: Secret, metadata: {name: eso, labels: {reconcile.external-secrets.io/managed: "true"}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: db-part-0123456789abcdef, finalizers: [aws.direct-secrets.io/part]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: orphan, labels: {aws.direct-secrets.io/managed: "true"}, annotations: {direct-secrets.io/es.0: '{"name":"gone","uid":"00000000-0000-0000-0000-000000000000"}'}}}
---
{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: db}, spec: {storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: db}}, data: [{match: {remoteRef: {remoteKey: pushed}}}]}}
---
{apiVersion: direct-secrets.io/v1alpha1, kind: ClusterExternalSecret, metadata: {name: spread}, spec: {namespaces: [default], externalSecretSpec: {storeRef: {kind: AWSSecretsManager, name: prod}, data: [{secretKey: a, remoteRef: {key: a}}]}}}
`

// ourFiles are the files that commands of pages use.
var ourFiles = map[string]string{
	"externalsecret.yaml":  `{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: db, namespace: shop}, spec: {storeRef: {kind: AWSSecretsManager, name: prod}, data: [{secretKey: token, remoteRef: {key: shop/db}}]}}`,
	"values.yaml":          `remote: {shop/db: x}`,
	"manifests/store.yaml": `{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: google}, spec: {provider: {gcpsm: {projectID: shop-prod, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json}}}}}}}`,
}

// notRun are parts of commands of pages that this test does not run.
var notRun = []string{
	"kubectl krew", "kubectl direct-secrets", "ln -s dsctl", // dsctl is run by its own name.
	"kubectl top", "kubectl logs", // There are no pods.
	"helm template shop ./chart",                                             // There is no chart.
	"dsctl migrate --cluster",                                                // It is for objects of External Secrets Operator; TestCutOver runs it.
	"dsctl diff pushsecret/",                                                 // No PushSecret has a dry run; TestDsctl runs it.
	"externalsecrets.external-secrets.io", "pushsecrets.external-secrets.io", // These change objects of External Secrets Operator by hand.
	"reconcile.external-secrets.io/managed-",                                                          // It removes their label.
	"kubectl describe\n", "kubectl wait --for=condition=Ready\n", "kubectl delete --cascade=orphan\n", // These are parts of commands.
}

// offline are prefixes of commands that make no requests to the API server. The last one needs a file of the reader. The cluster has no Argo CD, and the folder not the file
// that the last one needs.
var offline = []string{"dsctl --version", "dsctl render", "dsctl completion", "dsctl migrate", "kubectl patch configmap argocd-cm"}

// atLast are parts of commands that must run last and in this order, because they delete the objects of other commands.
var atLast = []string{"kubectl delete externalsecrets", "kubectl delete $("}

var (
	isCommand     = regexp.MustCompile(`(?m)(^|[ (|])(kubectl|dsctl) `)
	inlineCommand = regexp.MustCompile("`((?:kubectl|dsctl) [^`]+)`")
	prompt        = regexp.MustCompile(`(?m)^\$ (.*)$`)
	// placeholders are the parts of commands that readers replace.
	placeholders = strings.NewReplacer("<hash>", "0", "/NAME", "/spread")
)

// commandsOf returns the commands for readers in a page: blocks with kubectl or dsctl, in fences, in indented
// blocks and in text.
func commandsOf(t *testing.T, path string) []block {
	t.Helper()
	p := readPage(t, path)
	var all []block
	for _, b := range p.blocks {
		if len(b.info) > 0 && b.info[0] == "sh" && isCommand.MatchString(b.text) {
			all = append(all, b)
		}
	}
	raw, err := os.ReadFile(filepath.Join(repository, path))
	must(t, err)
	lines := strings.Split(string(raw), "\n")
	inFence := false
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(strings.TrimSpace(lines[i]), "```") {
			inFence = !inFence
		}
		indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " "))
		if inFence || indent < 4 || i == 0 || strings.TrimSpace(lines[i-1]) != "" {
			continue
		}
		first, text := i, ""
		for ; i < len(lines) && strings.HasPrefix(lines[i], strings.Repeat(" ", indent)); i++ {
			text += lines[i][indent:] + "\n"
		}
		if typed := prompt.FindAllStringSubmatch(text, -1); len(typed) > 0 { // The output of a program follows.
			text = ""
			for _, command := range typed {
				text += command[1] + "\n"
			}
		}
		if isCommand.MatchString(text) {
			all = append(all, block{line: first + 1, text: text})
		}
	}
	for i, line := range lines {
		for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
			all = append(all, block{line: i + 1, text: m[1] + "\n"})
		}
	}
	return all
}

// TestNextToESO runs every command of the pages and of the chart's notes in a cluster with the CRDs and objects
// of External Secrets Operator. It prints the requests of each to the API server, none of which may be for that
// project.
func TestNextToESO(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{Bare: true, Audit: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	must(t, s.InstallCRDs(ctx, esoCRDs(t)...))
	applyIn(t, s, "default", esoObjects)
	before := esoState(t, s)

	shell := newPageShell(t, s)
	prints := runReadme(t, shell)
	applyIn(t, s, "shop", ourObjects)
	if diff := cmp.Diff(before, esoState(t, s)); diff != "" {
		t.Errorf("objects of External Secrets Operator: -before the quick start, +after:\n%s", diff)
	}
	applyIn(t, s, "shop", esoObjects)
	before = esoState(t, s)
	_, err = shell.programs.Run(ctx, commands.Kubectl, "config", "set-context", "--current", "--namespace", "shop")
	must(t, err)
	shell.built = map[string]string{"dsctl": filepath.Join(buildPlugin(t).folder, "kubectl-direct_secrets")}
	for name, text := range ourFiles {
		file := filepath.Join(shell.programs.Folder, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, b := range coexistenceBlocks(t, prints) {
		runCoexistenceBlock(t, shell, b)
	}
	if diff := cmp.Diff(before, esoState(t, s)); diff != "" {
		t.Errorf("objects of External Secrets Operator: -before, +after all commands:\n%s", diff)
	}
	ours := len(shell.ran)
	// These commands show that the table would contain such requests.
	for _, bare := range []string{"kubectl get externalsecrets.external-secrets.io -A", "kubectl get passwords.v1alpha1.generators.external-secrets.io", "kubectl get es db"} {
		_, err := shell.run(ctx, block{text: bare + "\n"})
		must(t, err)
	}
	table := touched(t, s, shell.ran)
	t.Log("\n" + tableOf(table))
	for i, row := range table {
		isOffline := slices.ContainsFunc(offline, func(o string) bool { return strings.HasPrefix(row.command, o) })
		if (len(row.theirs) > 0) != (i >= ours) || (len(row.requests) == 0) != isOffline {
			t.Errorf("%s: asks for %q, of it %q of External Secrets Operator", row.command, row.requests, row.theirs)
		}
	}
	if ours < 40 {
		t.Errorf("only %d commands were run", ours)
	}
}

// coexistenceBlocks returns the commands of all pages, and those of the chart's notes, in the order in which they
// run.
func coexistenceBlocks(t *testing.T, prints string) []block {
	t.Helper()
	var all []block
	last := make([][]block, len(atLast))
	found := map[string]bool{}
	for line := range strings.Lines(prints) {
		if command := strings.TrimSpace(line); strings.HasPrefix(line, "  kubectl ") {
			all = append(all, block{comment: "notes", text: command + "\n"})
		}
	}
	for _, path := range pages(t) {
		if path == "README.md" {
			continue // It has already run.
		}
		for _, b := range commandsOf(t, path) {
			b.comment, b.text = path, placeholders.Replace(b.text)
			skip := slices.IndexFunc(notRun, func(n string) bool { return strings.Contains(b.text, n) })
			late := slices.IndexFunc(atLast, func(l string) bool { return strings.Contains(b.text, l) })
			switch {
			case skip >= 0:
				found[notRun[skip]] = true
			case late >= 0:
				last[late] = append(last[late], b)
			default:
				all = append(all, b)
			}
		}
	}
	for _, n := range notRun {
		if !found[n] {
			t.Errorf("no page contains %q", n)
		}
	}
	return append(all, slices.Concat(last...)...)
}

// runCoexistenceBlock runs a block. Filters such as grep can find nothing; programs that use the cluster must succeed.
func runCoexistenceBlock(t *testing.T, shell *pageShell, b block) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// An earlier command may have suspended the object that most commands use.
	db := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	must(t, client.IgnoreNotFound(shell.stack.Admin.Patch(ctx, db, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":null}}`)))))
	ran := len(shell.ran)
	out, err := shell.run(ctx, b)
	if len(shell.ran) == ran {
		t.Errorf("%s:%d: nothing was run of %q: %v", b.comment, b.line, b.text, err)
	}
	for _, r := range shell.ran[ran:] {
		foundSomething := r.args[0] == "dsctl" && r.exitStatus == 2
		if r.exitStatus != 0 && !foundSomething {
			t.Errorf("%s:%d: %q ends with %d: %v\n%s", b.comment, b.line, r.args, r.exitStatus, err, out)
		}
	}
	if want := "shop\torphan\tgone\t00000000-0000-0000-0000-000000000000\n"; strings.Contains(b.text, "grep -vFf alive") && out != want {
		t.Errorf("%s:%d: Secrets that are left behind: %q, want %q", b.comment, b.line, out, want)
	}
}

// A touchedRow lists what a command requested from the API server.
type touchedRow struct {
	command          string
	requests, theirs []string
}

// touched returns the requests of a sequence of commands, from the audit log.
func touched(t *testing.T, s *stack.Stack, ran []ranCommand) []touchedRow {
	t.Helper()
	log, err := s.ReadAuditLog(ran[0].from)
	must(t, err)
	var table []touchedRow
	for _, r := range ran {
		row := touchedRow{command: strings.Join(strings.Fields(strings.Join(r.args, " ")), " ")}
		for _, e := range log {
			client, _, _ := strings.Cut(strings.ToLower(e.UserAgent), "/")
			if !slices.Contains([]string{"kubectl", "helm", "dsctl", "kubectl-direct_secrets"}, client) || e.RequestReceivedTimestamp.Before(r.from) || e.RequestReceivedTimestamp.After(r.to) {
				continue
			}
			request := strings.TrimSuffix(fmt.Sprintf("%s %s.%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.APIGroup), ".")
			if e.ObjectRef.Resource == "" {
				path, _, _ := strings.Cut(e.RequestURI, "?")
				request = e.Verb + " " + path
			}
			if !slices.Contains(row.requests, request) {
				row.requests = append(row.requests, request)
			}
			named := "." + e.ObjectRef.APIGroup + " ." + e.ObjectRef.Name + " " + strings.ReplaceAll(e.RequestURI, "/", " .")
			if esoName.MatchString(named) {
				row.theirs = append(row.theirs, request)
			}
		}
		table = append(table, row)
	}
	return table
}

// esoName matches a group of External Secrets Operator, or a CRD of it.
var esoName = regexp.MustCompile(`\.external-secrets\.io\b`)

func tableOf(rows []touchedRow) string {
	var text bytes.Buffer
	fmt.Fprintln(&text, "COMMAND\tASKS FOR\tOF EXTERNAL SECRETS OPERATOR")
	for _, r := range rows {
		theirs, requests := "nothing", r.requests
		if len(r.theirs) > 0 {
			theirs = strings.Join(r.theirs, ", ")
		}
		if more := len(requests) - 4; more > 1 {
			requests = append(slices.Clone(requests[:4]), fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(&text, "%.100s\t%s\t%s\n", r.command, strings.Join(requests, ", "), theirs)
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if _, err := w.Write(text.Bytes()); err != nil {
		return err.Error()
	}
	_ = w.Flush() // Writing to a buffer never fails.
	return b.String()
}

// applyIn creates the objects of a manifest, those with a namespace in the given one.
func applyIn(t *testing.T, s *stack.Stack, namespace, manifest string) {
	t.Helper()
	all, err := decode(strings.TrimSpace(manifest))
	must(t, err)
	for _, o := range all {
		namespaced, err := s.Admin.IsObjectNamespaced(o)
		must(t, err)
		if namespaced {
			o.SetNamespace(namespace)
		}
		must(t, client.IgnoreAlreadyExists(s.Admin.Create(t.Context(), o)))
	}
}

// esoState returns the versions of the CRDs and of all objects of External Secrets Operator, by their names.
func esoState(t *testing.T, s *stack.Stack) map[string]string {
	t.Helper()
	state := map[string]string{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	must(t, s.Admin.List(t.Context(), list))
	for _, item := range list.Items {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, crd))
		if !esoName.MatchString("." + crd.Spec.Group) {
			continue
		}
		state[crd.Name] = fmt.Sprintf("%s generation %d", crd.UID, crd.Generation)
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Status.StoredVersions[0], Kind: crd.Spec.Names.ListKind})
		must(t, s.Admin.List(t.Context(), objects))
		for _, o := range objects.Items {
			state[fmt.Sprintf("%s %s/%s", crd.Name, o.GetNamespace(), o.GetName())] = string(o.GetUID()) + " version " + o.GetResourceVersion()
		}
	}
	if len(state) < 20 {
		t.Fatalf("only %d objects of External Secrets Operator are here", len(state))
	}
	return state
}
