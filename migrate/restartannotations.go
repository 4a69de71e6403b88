package migrate

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// finish removes the annotations for which an ExternalSecret restarts the workload, and reports on all of Reloader. refused says why
// the text of the workload cannot be edited; nil if it can. some says that the input makes a Secret.
func (w *workload) finish(some bool, refused error) {
	if len(w.by) == 0 {
		switch {
		case len(w.findings) > 0:
		case w.unread != "" && some:
			w.todo("", "Reloader may restart it, and "+w.unread, "set target.restart on the ExternalSecrets that make what it uses, then remove the annotations of Reloader from the workload")
		case w.own:
			w.findings = append(w.findings, Finding{Verdict: Exact, Reason: "it stays with Reloader: no ExternalSecret of the input makes what Reloader watches for it"})
		}
		return
	}
	root := copyOf(w.node)
	for _, path := range annotationPaths {
		w.finishAnnotations(root, path, refused)
	}
	if w.edited = w.own && refused == nil; w.edited {
		w.replaced = root
	}
}

// finishAnnotations removes annotations at a path of a workload.
func (w *workload) finishAnnotations(root *yaml.Node, path []string, refused error) {
	all := child(root, path...)
	before := stringsOf(all)
	after := w.remaining(before)
	by := "the " + strings.Join(w.by, " and the ") + " restarts it"
	for key := range pairs(child(w.node, path...)) {
		if !isStakater(key.Value) {
			continue
		}
		at := strings.Join(append(slices.Clone(path), key.Value), ".")
		value, stays := after[key.Value]
		f := Finding{Field: at, Verdict: Exact, Reason: by}
		switch {
		case stays && value == before[key.Value]:
			f.Verdict, f.Reason, f.Todo = Changed, "it stays, for what no ExternalSecret of the input makes", "keep Reloader for it, or remove it"
		case key.Value == stakaterPause:
			f.Verdict, f.Reason, f.Todo = Changed, "changes within target.restart.window are one restart", "set window of the "+strings.Join(w.by, " and the ")+" to "+before[key.Value]+", if 30s is too short"
		case key.Value == stakaterRoll:
			f.Verdict, f.Reason, f.Todo = Changed, "a restart sets an annotation of the pod template", "check that the tool that applies the workload keeps it"
		}
		if refused != nil || !w.own {
			f.Verdict, f.Todo = Changed, strings.TrimPrefix(f.Todo+"; ", "; ")+byHand(value, stays, before[key.Value])
		}
		w.findings = append(w.findings, f)
		if !stays {
			cut(all, key.Value)
		}
	}
	for _, of := range []string{typeSecret, typeConfigMap} {
		key := excludeOf(of)
		if value := after[key]; value != before[key] && before[key] == "" {
			f := Finding{Field: strings.Join(append(slices.Clone(path), key), "."), Verdict: Exact, Reason: "Reloader skips what " + strings.Join(w.by, " and the ") + " restarts it for"}
			if refused != nil || !w.own {
				f.Verdict, f.Todo = Changed, "set the annotation to "+value
			}
			w.findings = append(w.findings, f)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if value := after[key]; value != before[key] {
			(&tree{root: root}).put(append(slices.Clone(path), key), nil, plain(value))
		}
	}
	if all != nil && len(all.Content) == 0 {
		(&tree{root: root}).remove(path...)
	}
}

// byHand says what to do with an annotation of a workload that is not edited.
func byHand(value string, stays bool, before string) string {
	switch {
	case !stays:
		return "remove the annotation from the workload"
	case value != before:
		return "set the annotation of the workload to " + value
	}
	return "leave the annotation"
}

// remaining returns the annotations of Reloader with which it restarts a workload for all that no ExternalSecret does.
func (w *workload) remaining(before map[string]string) map[string]string {
	after := map[string]string{}
	for key, value := range before {
		if isStakater(key) {
			after[key] = value
		}
	}
	more := map[string]bool{}
	for _, of := range []string{typeSecret, typeConfigMap} {
		excluded := names(before[excludeOf(of)])
		more[of] = slices.ContainsFunc(w.reads[of], func(name string) bool {
			return !slices.Contains(w.covered[of], name) && !slices.Contains(excluded, name)
		})
		w.remainingList(of, after)
	}
	for key, needed := range map[string]bool{
		stakaterAuto: more[typeSecret] || more[typeConfigMap], stakaterSearch: more[typeSecret] || more[typeConfigMap],
		typeSecret + stakaterTyped: more[typeSecret], typeConfigMap + stakaterTyped: more[typeConfigMap],
	} {
		if after[key] == "true" && !needed {
			delete(after, key)
		}
	}
	triggers := false
	for key := range after {
		triggers = triggers || strings.HasSuffix(key, stakaterTyped) || key == stakaterAuto || key == stakaterSearch || (strings.HasSuffix(key, stakaterReload) && !strings.Contains(key, "s.exclude."))
	}
	if !triggers {
		return nil
	}
	for _, of := range []string{typeSecret, typeConfigMap} {
		w.exclude(of, after)
	}
	return after
}

// remainingList removes names from the list of a type for which an ExternalSecret restarts the workload.
func (w *workload) remainingList(of string, after map[string]string) {
	key := of + stakaterReload
	list, found := after[key]
	if !found {
		return
	}
	left := slices.DeleteFunc(names(list), func(entry string) bool { return slices.Contains(w.covered[of], entry) })
	switch {
	case len(left) == 0:
		delete(after, key)
	case len(left) < len(names(list)):
		after[key] = strings.Join(left, ",")
	}
}

// exclude adds the names for which an ExternalSecret restarts the workload to those that Reloader skips, if it would not skip them.
func (w *workload) exclude(of string, after map[string]string) {
	var more []string
	skipped := names(after[excludeOf(of)])
	for _, name := range w.covered[of] {
		uses := slices.Contains(w.reads[of], name) && (after[stakaterAuto] == "true" || after[stakaterSearch] == "true" || after[of+stakaterTyped] == "true")
		listed := slices.ContainsFunc(names(after[of+stakaterReload]), func(entry string) bool { return matchesEntry(entry, name) })
		if (uses || listed) && !slices.Contains(skipped, name) {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		after[excludeOf(of)] = strings.Join(append(skipped, more...), ",")
	}
}

// mentionsReloader reports lines with annotations of Reloader in what is no workload: patches, values of charts, and templates that
// cannot be read.
func (k *kustomizations) mentionsReloader(d *document) {
	known := slices.ContainsFunc(k.in.workloads, func(w *workload) bool { return w.document == d })
	kind := text(d.node, "kind")
	if !k.in.makes || known || d.items != nil || d.err != nil || d.object != nil || slices.Contains([]string{"Secret", configMap, "ExternalSecret"}, kind) {
		return
	}
	for i, line := range strings.Split(string(d.raw), "\n") {
		if strings.Contains(line, stakater) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			k.note(d, &yaml.Node{Line: i + 1}, "an annotation of Reloader is in a patch, in values of a chart, or in what cannot be read as a workload", "set target.restart on the ExternalSecret that makes what the workload uses, then remove the annotation")
		}
	}
}
