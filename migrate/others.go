package migrate

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
	"github.com/direct-secrets/direct-secrets/migrate/internal/splice"
)

// gitOps converts the patches and health checks in objects of Flux and Argo CD, and reports whether anything changes.
func (k *kustomizations) gitOps(d *document, root *yaml.Node) bool {
	group, kind := groupOf(text(root, "apiVersion")), text(root, "kind")
	var lists []*yaml.Node
	switch {
	case group == "kustomize.toolkit.fluxcd.io" && kind == "Kustomization":
		lists = append(lists, child(root, "spec", "patches"))
	case group == "argoproj.io" && kind == "Application":
		lists = append(lists, child(root, "spec", "source", "kustomize", "patches"))
		for _, s := range contentOf(child(root, "spec", "sources")) {
			lists = append(lists, child(s, "kustomize", "patches"))
		}
	default:
		return false
	}
	changed := false
	for _, list := range lists {
		for _, n := range contentOf(list) {
			changed = k.patchOf(path.Clean(strings.TrimPrefix(text(root, "spec", "path"), "./")), d, onePatch{n, child(n, "patch")}) || changed
		}
	}
	for _, check := range contentOf(child(root, "spec", "healthChecks")) {
		changed = k.healthCheck(d, check) || changed
	}
	return changed
}

// healthCheck converts a health check of Flux, and reports whether it changes.
func (k *kustomizations) healthCheck(d *document, check *yaml.Node) bool {
	if !KnowsESO(groupOf(text(check, "apiVersion"))) {
		return false
	}
	var found *object
	certain := true
	for _, o := range k.in.objects {
		other := o.Namespace != "" && text(check, "namespace") != "" && o.Namespace != text(check, "namespace")
		if o.Kind != text(check, "kind") || o.Name.Name != text(check, "name") || groupOf(o.APIVersion) != groupOf(text(check, "apiVersion")) || other {
			continue
		}
		certain = certain && o.verdict() != Unsupported && !o.omitted && (found == nil || text(found.out.root, "kind") == text(o.out.root, "kind"))
		found = o
	}
	if found != nil && certain {
		child(check, "apiVersion").Value, child(check, "kind").Value = text(found.out.root, "apiVersion"), text(found.out.root, "kind")
		return true
	}
	k.note(d, check, "a health check of Flux is for an object that is not in the input, or cannot be converted", "name the new Kind and its group")
	return false
}

// mention matches the API groups of External Secrets Operator where they are not a part of an address or of a longer name.
var mention = regexp.MustCompile(`resource\.customizations\S*external-secrets\.io|(?:^|[^.\w/-])(?:generators\.)?external-secrets\.io\b(?:[^./\w-]|/v|$|_)`)

// mentions reports the lines of a document that name the API groups of External Secrets Operator, and that no conversion changes.
func (k *kustomizations) mentions(d *document) {
	if d.items != nil || d.err != nil || text(d.node, "kind") == "CustomResourceDefinition" || (d.object != nil && d.hidden == nil) {
		return
	}
	reason, todo := hintFor(text(d.node, "kind"))
	lines := strings.Split(string(d.raw), "\n")
	noted := map[int]bool{}
	for _, n := range k.notes {
		if n.File == d.source {
			noted[n.Line] = true
		}
	}
	stays := func(string) bool { return true }
	if d.replaced != nil {
		if now, err := splice.Document(d.raw, d.replaced, nil); err == nil {
			stays = func(line string) bool { return slices.Contains(strings.Split(string(now), "\n"), line) }
		}
	}
	for i, line := range lines {
		shown, reason, todo := line, reason, todo
		switch {
		case d.hidden != nil && actions.Is(line):
			shown = d.hidden.Show(line)
			reason, todo = "an action of a template names the API group of External Secrets Operator", "name the groups of direct-secrets"
		case d.object != nil || strings.HasPrefix(strings.TrimSpace(line), "#"):
			continue
		}
		if mention.MatchString(shown) && !noted[d.line+i] && stays(line) {
			k.note(d, &yaml.Node{Line: i + 1}, reason, todo)
		}
	}
}

// hintFor returns why a document of a Kind is to be changed by hand, and how.
func hintFor(kind string) (reason, todo string) {
	reason, todo = "it names the API group of External Secrets Operator", "name the groups of direct-secrets, too"
	switch kind {
	case "AppProject":
		reason, todo = "an AppProject of Argo CD names the API group of External Secrets Operator", "permit the groups direct-secrets.io and those of your stores, too"
	case "Role", "ClusterRole":
		reason, todo = "a "+kind+" is for objects of External Secrets Operator", "add a rule for the groups direct-secrets.io and those of your stores"
	case "ConfigMap":
		reason, todo = "a ConfigMap names the API group of External Secrets Operator, for example for health checks of Argo CD", "write it for the groups of direct-secrets, too; their Kinds have a condition Ready"
	case "Application", "ApplicationSet":
		reason, todo = "an object of Argo CD names the API group of External Secrets Operator", "name the groups and Kinds of direct-secrets"
	case "HelmRelease", "":
		reason, todo = "values have objects of External Secrets Operator, or name its API group", "convert the objects by hand, as the report does with others of their Kind"
	}
	return reason, todo
}

// patchOf converts a patch in a kustomization, and its target. It reports whether anything changes.
func (k *kustomizations) patchOf(dir string, d *document, p onePatch) bool {
	changed := false
	edit := func(n *yaml.Node, one bool, err error) bool {
		if err != nil {
			k.note(d, n, err.Error(), todoPatch)
		}
		changed = changed || one
		return err == nil
	}
	target := child(p.node, "target")
	if p.inline != nil {
		one, err := k.inline(dir, target, p.inline)
		if !edit(p.inline, one, err) {
			return false
		}
	}
	if is, err := k.ours(target); target != nil && err == nil && is {
		one, err := k.selector(dir, target)
		if err != nil {
			err = fmt.Errorf("the target of a patch cannot be converted: %w", err)
		}
		edit(target, one, err)
	}
	return changed
}
