package migrate

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// destinationBlocks are the fields that configure destinations, by their type.
var destinationBlocks = map[string]string{
	"ExternalSecret": "externalSecret", "PushSecret": "pushSecret", "Deployment": "deployment", "WorkflowRunTemplate": "workflowRunTemplate",
}

// destinationsPath is where the destinations of a Config are.
const destinationsPath = "spec.destinationsToWatch[]"

// destinations reports what an event does without destinations.
func (s *eventSources) destinations(f *field) {
	if f.node.Kind != yaml.SequenceNode {
		f.invalid("a list")
		return
	}
	conditions := &yaml.Node{Kind: yaml.SequenceNode}
	limited := true
	for i, n := range f.node.Content {
		s.destination(f.below(nil, n, index(i)))
		of := text(n, "type")
		if of != "ExternalSecret" && of != "PushSecret" {
			continue
		}
		all := child(n, destinationBlocks[of], "namespaceSelectors")
		limited = limited && length(all) > 0
		for _, selector := range contentOf(all) {
			conditions.Content = append(conditions.Content, mapping("namespaceSelector", selector))
		}
	}
	if limited && len(conditions.Content) > 0 {
		s.conditions = conditions
		f.add(Finding{Field: f.String(), To: "spec.conditions", Verdict: Exact, Reason: "namespaceSelectors limit the namespaces of the event source"})
	}
}

// destination reports on a destination.
func (s *eventSources) destination(f *field) {
	of := text(f.node, "type")
	block, known := destinationBlocks[of]
	switch {
	case !known:
		f.unsupported(fmt.Sprintf("the type %q is not known", of), "correct it, or leave the Config with the reloader")
		return
	case of == "WorkflowRunTemplate":
		f.unsupported("an event runs no workflow", "move the other entries to a Config of their own, and convert that one")
		return
	case of == "Deployment":
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "an event restarts no Deployment; an ExternalSecret restarts workloads when the data of its Secret change", Todo: "set target.restart on the ExternalSecrets whose Secrets " + deployments(f.node) + " use, and workloadRestarts.enabled in the values of the chart"})
		return
	}
	at := destinationsPath + "." + block
	const refreshed = "an event refreshes each object that reads or pushes the secret"
	selection := func(f *field) {
		f.left(refreshed+", so a selection has no effect", "check that the others can be refreshed, too: a refresh without a new value writes nothing")
	}
	all := rules{
		destinationsPath + ".type":           drop(refreshed),
		destinationsPath + ".updateStrategy": never("an event refreshes objects, and does not patch or delete them", "leave the Config with the reloader, or remove updateStrategy"),
		destinationsPath + ".matchStrategy": func(f *field) {
			f.left(refreshed+", found by the keys that it names", "check that the objects name the secret in their keys")
		},
		destinationsPath + ".waitStrategy": drop("refreshes of one store run in parallel, within its limits"),
		at + ".labelSelectors":             selection,
		at + ".names":                      selection,
		at + ".namespaceSelectors":         s.namespaceSelectors,
	}
	for _, other := range destinationBlocks {
		if other != block {
			all[destinationsPath+"."+other] = drop("the type is " + of)
		}
	}
	all.walk(f)
}

// namespaceSelectors reports selectors, which destinations makes conditions if all destinations have them.
func (s *eventSources) namespaceSelectors(f *field) {
	all := child(s.node, "spec", "destinationsToWatch")
	every := !slices.ContainsFunc(contentOf(all), func(n *yaml.Node) bool {
		of := text(n, "type")
		return (of == "ExternalSecret" || of == "PushSecret") && length(child(n, destinationBlocks[of], "namespaceSelectors")) == 0
	})
	switch {
	case f.node.Kind != yaml.SequenceNode:
		f.invalid("a list")
	case every:
		f.pend()
		f.add(Finding{Field: f.String(), To: "spec.conditions", Verdict: Exact})
	default:
		f.left("another destination has no namespaceSelectors, so the event source is for all namespaces", "set conditions, if it should not be")
	}
}

// deployments names the Deployments of a destination for a report.
func deployments(n *yaml.Node) string {
	var names []string
	for _, one := range contentOf(child(n, "deployment", "names")) {
		names = append(names, one.Value)
	}
	if len(names) == 0 {
		return "these Deployments"
	}
	return "the Deployments " + shortened(names)
}
