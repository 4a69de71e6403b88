package migrate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	utilyaml "sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// stakater is the domain of the annotations of Stakater's Reloader.
const stakater = "reloader.stakater.com/"

// Annotations of Stakater's Reloader. Those of a workload on Secrets or ConfigMaps begin with the type.
const (
	stakaterAuto   = stakater + "auto"
	stakaterSearch = stakater + "search"
	stakaterMatch  = stakater + "match"
	stakaterIgnore = stakater + "ignore"
	stakaterReload = "." + stakater + "reload"
	stakaterTyped  = "." + stakater + "auto"
	stakaterPause  = "deployment." + stakater + "pause-period"
	stakaterRoll   = stakater + "rollout-strategy"
)

// The types of what Reloader watches, as its annotations name them.
const (
	typeSecret    = "secret"
	typeConfigMap = "configmap"
)

// excludeOf is the annotation with the names of a type for which Reloader restarts nothing.
func excludeOf(of string) string { return of + "s.exclude." + stakater + "reload" }

// A workload is one with pods.
type workload struct {
	Name
	*document

	// reads are the names of the Secrets and ConfigMaps that its pods use, by type.
	reads map[string][]string
	// unread says why its pods are not known; empty if they are.
	unread string
	// covered are the names for which an ExternalSecret restarts it, by type; by are these ExternalSecrets.
	covered map[string][]string
	by      []string
	// findings are reported for it.
	findings []Finding
	edited   bool
}

// annotationPaths are where Reloader reads annotations of a workload, in order.
var annotationPaths = [][]string{{"metadata", "annotations"}, {"spec", "template", "metadata", "annotations"}}

// restartable reports whether the operator restarts workloads of a Kind.
func restartable(n Name) bool {
	switch groupOf(n.APIVersion) {
	case "apps":
		return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, n.Kind)
	case "argoproj.io":
		return n.Kind == "Rollout"
	}
	return false
}

// takeRestarted remembers a workload that a tool can restart.
func (in *inputs) takeRestarted(name Name, d *document) {
	others := slices.Contains([]string{"Job", "CronJob", "DeploymentConfig"}, name.Kind)
	if !restartable(name) && !others {
		return
	}
	name.Namespace = in.namespace(name.Namespace)
	same := func(w *workload) bool {
		return !d.own && w.Kind == name.Kind && w.Namespace == name.Namespace && w.Name.Name == name.Name
	}
	if name.Name == "" || slices.ContainsFunc(in.workloads, same) {
		return
	}
	w := &workload{Name: name, document: d, reads: map[string][]string{}, covered: map[string][]string{}}
	path := []string{"spec", "template", "spec"}
	if name.Kind == "CronJob" {
		path = slices.Concat([]string{"spec", "jobTemplate"}, path)
	}
	var pods corev1.PodSpec
	if n := child(d.node, path...); n != nil {
		raw, err := encode(n, "")
		if err == nil {
			err = utilyaml.Unmarshal(raw, &pods)
		}
		if err != nil {
			w.unread = "its pod template cannot be read"
		}
	}
	if d.hidden != nil || templated(d.node) {
		w.unread = "it is a template of a chart"
	}
	w.reads[typeSecret], w.reads[typeConfigMap] = inspect.PodReads(&pods)
	in.workloads = append(in.workloads, w)
}

// watched reports whether annotations concern Secrets or ConfigMaps.
func watched(annotations map[string]string, of string) bool {
	for _, key := range []string{of + stakaterReload, stakaterSearch, stakaterAuto, of + stakaterTyped} {
		if _, found := annotations[key]; found {
			return true
		}
	}
	return false
}

// annotations returns those by which Reloader decides for a type: those of the workload, or else those of its pods.
func (w *workload) annotations(of string) map[string]string {
	for _, path := range annotationPaths {
		if all := stringsOf(child(w.node, path...)); watched(all, of) {
			return all
		}
	}
	return stringsOf(child(w.node, annotationPaths[0]...))
}

// isAnnotated reports whether a workload has annotations of Reloader.
func (w *workload) isAnnotated() bool {
	return slices.ContainsFunc(annotationPaths, func(path []string) bool {
		for key := range pairs(child(w.node, path...)) {
			if isStakater(key.Value) {
				return true
			}
		}
		return false
	})
}

// isStakater reports whether an annotation is one of Reloader.
func isStakater(key string) bool {
	return strings.HasPrefix(key, stakater) || strings.Contains(key, "."+stakater)
}

// names returns the entries of a list in an annotation.
func names(list string) []string {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		all = append(all, nonEmpty(strings.TrimSpace(name))...)
	}
	return all
}

// matchesEntry reports whether an entry of a list, which is an expression, is for a name.
func matchesEntry(entry, name string) bool {
	expression, err := regexp.Compile("^" + entry + "$")
	return entry == name || (err == nil && expression.MatchString(name))
}

// restarts reports whether Reloader restarts the workload when what an ExternalSecret makes changes, and whether that is because the
// workload names it.
func (w *workload) restarts(m *maker) (restarts, named bool) {
	all := w.annotations(m.of)
	uses := slices.Contains(w.reads[m.of], m.target)
	switch {
	case m.annotations[stakaterIgnore] == "true", slices.Contains(names(all[excludeOf(m.of)]), m.target):
		return false, false
	case slices.ContainsFunc(names(all[m.of+stakaterReload]), func(entry string) bool { return matchesEntry(entry, m.target) }):
		return true, true
	case all[stakaterSearch] == "true" && m.annotations[stakaterMatch] == "true":
		return uses, false
	}
	return uses && (all[stakaterAuto] == "true" || all[m.of+stakaterTyped] == "true"), false
}

// A maker is an ExternalSecret of the input, or what becomes one.
type maker struct {
	root *yaml.Node
	// object is what becomes it, or nil if it is one already; then document has it.
	object   *object
	document *document
	// namespace, target and of are those of what it makes; of is its type.
	namespace, target, of, file string
	// annotations are those of what it makes.
	annotations map[string]string
}

// makers returns the ExternalSecrets of the input.
func (in *inputs) makers(refused map[position]error) (all []*maker) {
	add := func(m *maker, namespace string) {
		m.namespace, m.target, m.of = in.namespace(namespace), text(m.root, "spec", "target", "name"), typeSecret
		if m.target == "" {
			m.target = text(m.root, "metadata", "name")
		}
		if text(m.root, "spec", "target", "kind") == configMap {
			m.of = typeConfigMap
		}
		m.annotations = stringsOf(child(m.root, "spec", "target", "template", "metadata", "annotations"))
		if text(m.root, "kind") == "ExternalSecret" && text(m.root, "spec", "target", "creationPolicy") != "None" {
			all = append(all, m)
		}
	}
	for _, o := range in.objects {
		if !o.own || o.omitted || o.verdict() == Unsupported {
			continue
		}
		for _, root := range o.roots() {
			add(&maker{root: root, object: o, document: o.document, file: o.File}, o.Namespace)
		}
	}
	for _, d := range in.restarters {
		if refused[position{d.source, d.line}] == nil {
			add(&maker{root: copyOf(d.node), document: d, file: d.source}, d.namespaceOf())
		}
	}
	return all
}

// namespaceOf returns the namespace of the object of a document; empty if it names none.
func (d *document) namespaceOf() string {
	if d.namespace != "" {
		return d.namespace
	}
	return text(d.node, "metadata", "namespace")
}

// place is that of what it makes.
func (m *maker) place() string { return m.of + "/" + m.namespace + "/" + m.target }

// String returns the Kind, the namespace and the name of an ExternalSecret.
func (m *maker) String() string {
	return "ExternalSecret " + m.namespace + "/" + text(m.root, "metadata", "name")
}
