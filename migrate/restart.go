package migrate

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// mostWorkloads is how many workloads an ExternalSecret can list.
	mostWorkloads = 100
	causeRestart  = "the operator restarts the workloads, if the values of the chart allow it, 30s after a change of the data and at most five of a namespace at the same time"
	todoRestart   = "apply the values with workloadRestarts.enabled, and these ExternalSecrets, before the workloads without their annotations"
)

// moveRestarts sets target.restart on the ExternalSecrets for whose targets Stakater's Reloader restarts workloads, and removes the
// annotations of Reloader from these workloads.
func (in *inputs) moveRestarts(refused map[position]error) {
	makers, byTarget := in.makers(refused), map[string][]*maker{}
	for _, m := range makers {
		byTarget[m.place()] = append(byTarget[m.place()], m)
	}
	for _, m := range makers {
		in.moveRestart(m, byTarget[m.place()])
	}
	in.makes = len(makers) > 0
	for _, w := range in.workloads {
		if w.isAnnotated() {
			w.finish(in.makes, refused[position{w.source, w.line}])
		}
	}
}

// moveRestart sets target.restart on an ExternalSecret. all are those that make the same.
func (in *inputs) moveRestart(m *maker, all []*maker) {
	var restarted []*workload
	auto := true
	for _, w := range in.workloads {
		if w.Namespace != m.namespace {
			continue
		}
		makers := nearest(w.File, all, func(o *maker) string { return o.file })
		if !slices.Contains(makers, m) {
			continue
		}
		does, named := w.restarts(m)
		uses := slices.Contains(w.reads[m.of], m.target)
		auto = auto && w.unread == "" && (!named && does == uses || !restartable(w.Name))
		switch {
		case !does:
		case w.unread != "":
			w.todo("", "Reloader may restart it for "+m.target+", and "+w.unread, "set target.restart on the "+m.String()+", then remove the annotations of Reloader from the workload")
		case len(makers) > 1:
			w.todo("", "several ExternalSecrets of the input make "+m.target, "set target.restart on the one that makes it, then remove the annotations of Reloader from the workload")
		case !restartable(w.Name):
			w.todo("", "the operator restarts no "+w.Kind+"; the pods of its next run read the new data", "keep Reloader for it, if it must not wait for its next run")
		case !knownText(w.Name.Name):
			w.todo("", "its name is made when the manifest is applied", "set target.restart on the "+m.String()+", then remove the annotations of Reloader from the workload")
		default:
			restarted = append(restarted, w)
		}
	}
	if len(restarted) > 0 {
		in.setRestart(m, restarted, auto)
	}
}

// setRestart sets target.restart: auto if these are all workloads that use the target, and their list otherwise.
func (in *inputs) setRestart(m *maker, restarted []*workload, auto bool) {
	slices.SortStableFunc(restarted, func(a, b *workload) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name.Name, b.Name.Name))
	})
	if former := child(m.root, "spec", "target", "restart"); former != nil {
		for _, w := range restarted {
			w.cover(m, former)
		}
		return
	}
	restart := mapping("auto", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	if !auto {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, w := range restarted {
			list.Content = append(list.Content, mapping("kind", plain(w.Kind), "name", plain(w.Name.Name)))
		}
		restart = mapping("workloads", list)
	}
	(&tree{root: m.root}).put([]string{"spec", "target", "restart"}, nil, restart)
	if wrong, err := faults(m.root); err != nil || len(wrong) > 0 || len(restarted) > mostWorkloads && !auto {
		(&tree{root: m.root}).remove("spec", "target", "restart")
		for _, w := range restarted {
			w.todo("", "the "+m.String()+" cannot list the workloads that Reloader restarts for "+m.target, "set target.restart on it by hand, then remove the annotations of Reloader from the workload")
		}
		return
	}
	var shown []string
	for _, w := range restarted {
		w.cover(m, restart)
		shown = append(shown, w.Kind+" "+w.Name.Name)
	}
	in.allowRestarts(m.root)
	found := Finding{To: "spec.target.restart", Verdict: Changed, Reason: causeRestart + ": " + shortened(shown), Todo: todoRestart, Cause: causeRestart, Subject: m.String() + " for " + shortened(shown)}
	if m.object == nil {
		m.document.replaced = m.root
		name := Name{APIVersion: text(m.root, "apiVersion"), Kind: "ExternalSecret", Namespace: m.namespace, Name: text(m.root, "metadata", "name"), File: m.file, Line: m.document.line}
		in.restarted = append(in.restarted, ObjectReport{Name: name, To: []string{"ExternalSecret"}, Verdict: Changed, Findings: []Finding{found}})
		return
	}
	m.object.add(found)
	if m.annotations[stakaterMatch] != "" {
		m.object.add(Finding{Field: "spec.target.template.metadata.annotations." + stakaterMatch, Verdict: Changed, Reason: "only Reloader reads it", Todo: "remove it, once Reloader restarts no workload of the namespace"})
	}
}

// allowRestarts lets the module of the store of an ExternalSecret restart workloads.
func (in *inputs) allowRestarts(root *yaml.Node) {
	for _, k := range storesOf(child(root, "spec")) {
		in.used.module(k.module).restarts = true
	}
}

// cover records that an ExternalSecret restarts a workload, or what to add to it.
func (w *workload) cover(m *maker, restart *yaml.Node) {
	listed := slices.ContainsFunc(contentOf(child(restart, "workloads")), func(n *yaml.Node) bool {
		return text(n, "kind") == w.Kind && text(n, "name") == w.Name.Name
	})
	if !listed && (text(restart, "auto") != "true" || !slices.Contains(w.reads[m.of], m.target)) {
		w.todo("", "target.restart of the "+m.String()+" does not include it", "add it to workloads there, then remove the annotations of Reloader")
		return
	}
	w.covered[m.of] = append(w.covered[m.of], m.target)
	w.by = append(w.by, m.String())
}

// todo reports what is to be done by hand.
func (w *workload) todo(field, reason, todo string) {
	w.findings = append(w.findings, Finding{Field: field, Verdict: Changed, Reason: reason, Todo: todo})
}
