package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// staticSecrets are the rules for the spec of a VaultStaticSecret. Its store has what other fields say.
var staticSecrets = rules{
	"spec.vaultAuthRef":   usedBy("spec.storeRef"),
	"spec.namespace":      usedBy("spec.storeRef"),
	"spec.mount":          usedBy("spec.storeRef"),
	"spec.type":           usedBy("spec.storeRef"),
	"spec.path":           vaultPath,
	"spec.version":        kvVersion,
	"spec.refreshAfter":   refreshAfter,
	"spec.hmacSecretData": hmacSecretData,
	"spec.syncConfig.instantUpdates": func(f *field) {
		if f.node.Value == "true" {
			f.pend()
			f.add(Finding{Field: f.String(), To: "spec.refreshInterval", Verdict: Changed, Reason: "events of Vault are not received: a new value is read when refreshInterval has passed", Todo: "check that refreshInterval is short enough"})
			return
		}
		f.dropped("it is the default")
	},
}

// destinations are the rules for the Secret that an object of Vault Secrets Operator writes.
var destinations = rules{
	"spec.rolloutRestartTargets":   restarts,
	"spec.destination.name":        scalar("spec.target.name"),
	"spec.destination.create":      create,
	"spec.destination.overwrite":   overwrite,
	"spec.destination.labels":      ifCreated(literals("labels")),
	"spec.destination.annotations": ifCreated(literals("annotations")),
	"spec.destination.type":        ifCreated(secretType("spec.target.template.type")),
	transformation + ".templates":  vsoTemplates,
	transformation + ".includes":   includes,
	transformation + ".excludes":   excludes,
	transformation + ".excludeRaw": excludeRaw,
	transformation + ".resync":     drop("there are no transformationRefs"),
	transformation + ".transformationRefs": func(f *field) {
		if f.node.Kind == yaml.SequenceNode && len(f.node.Content) == 0 {
			f.dropped("it is empty")
			return
		}
		f.unsupported("a SecretTransformation is not read", "write its templates, includes and excludes into the object, and remove transformationRefs")
	},
}

// vaultStaticSecret converts a VaultStaticSecret to an ExternalSecret and its store.
func vaultStaticSecret(o *object) {
	o.becomes(kind{name: "ExternalSecret"})
	staticSecrets.with(destinations, metadata()).walk(&field{object: o, node: o.node})
	o.finishDestination()
	o.finishRefresh()
	mount, version := strings.Trim(text(o.node, "spec", "mount"), "/"), text(o.node, "spec", "type")
	switch {
	case mount == "":
		o.refuse("spec.mount", "it is missing")
	case version != "kv-v1" && version != "kv-v2":
		o.refuse("spec.type", "it is not one of kv-v1, kv-v2")
	case text(o.node, "spec", "path") == "":
		o.refuse("spec.path", "it is missing")
	default:
		o.staticStore(mount, strings.TrimPrefix(version, "kv-"))
	}
	ordered(child(o.out.root, "spec"), "storeRef", "refreshPolicy", "refreshInterval", "target", "dataFrom")
}

// staticStore adds the store of a VaultStaticSecret, which it shares with others of the same login and mount.
func (o *object) staticStore(mount, version string) {
	auth, spec := o.vaultFor()
	if auth == nil {
		return
	}
	spec.Content = append(spec.Content, plain("path"), plain(mount))
	names := []string{auth.Name.Name, mount}
	if version != "v2" {
		spec.Content = append(spec.Content, plain("version"), plain(version))
		names = append(names, version)
	}
	if own := text(spec, "namespace"); own != text(auth.merged, "spec", "namespace") {
		names = append(names, own)
	}
	ordered(spec, "server", "namespace", "path", "version", "auth", "caProvider", "headers")
	namespace := o.inputs.namespace(o.Namespace)
	key := strings.Join([]string{"store", namespace, auth.Namespace, auth.Name.Name, mount, version, text(spec, "namespace")}, "\x00")
	name := o.inputs.freeName(vaultKV, namespace, key, names...)
	t := o.newResult(vaultKV, o.metadataFor(name), spec, key)
	t.root.HeadComment = strings.Join(auth.comments(), "\n")
	o.out.put([]string{"spec", "storeRef"}, nil, mapping("kind", plain(vaultKV.name), "name", plain(name)))
}

// vaultPath moves the path of a secret below its mount.
func vaultPath(f *field) {
	parts := slices.DeleteFunc(strings.Split(f.node.Value, "/"), func(p string) bool { return p == "" })
	switch {
	case f.node.Kind != yaml.ScalarNode:
		f.invalid("a single value")
		return
	case len(parts) == 0 || slices.Contains(parts, ".") || slices.Contains(parts, ".."):
		f.unsupported("a key has no parts . and .., and is not empty", "write the path without them")
		return
	}
	f.node = scalarNode(strings.Join(parts, "/"), f.node)
	f.moveTo([]string{"spec", "dataFrom", index(0), "extract", "key"}, Finding{Verdict: Exact})
}

// kvVersion moves the version of a secret. Version 0 is the latest one, and KV version 1 has no others.
func kvVersion(f *field) {
	switch {
	case f.node.Value == "0":
		f.dropped("it is the latest version")
	case text(f.object.node, "spec", "type") == "kv-v1":
		f.dropped("Vault Secrets Operator ignores it for kv-v1")
	case f.node.Tag != "!!int":
		f.invalid("a number")
	default:
		f.node = scalarNode(f.node.Value, f.node)
		f.moveTo([]string{"spec", "dataFrom", index(0), "extract", "version"}, Finding{Verdict: Exact})
	}
}

// refreshAfter moves how often a secret is read. finishRefresh makes explicit what happens without it.
func refreshAfter(f *field) {
	if d, err := readDuration(f.node); err == nil && d == 0 {
		f.dropped("0 is as if it were not set")
		return
	}
	interval("spec.refreshInterval")(f)
}

// vsoPoll is how often Vault Secrets Operator reads a secret without refreshAfter.
const vsoPoll = "1m"

// finishRefresh makes explicit how often Vault Secrets Operator reads a secret.
func (o *object) finishRefresh() {
	n := child(o.node, "spec", "refreshAfter")
	if n != nil {
		if d, err := readDuration(n); err != nil || d > 0 {
			return
		}
	}
	if text(o.node, "spec", "hmacSecretData") != "false" {
		o.out.set(vsoPoll, "spec", "refreshInterval")
		o.add(Finding{To: "spec.refreshInterval", Verdict: Exact, Reason: "without refreshAfter, Vault Secrets Operator reads the secret once a minute"})
		return
	}
	o.out.set("OnChange", "spec", "refreshPolicy")
	o.add(Finding{To: "spec.refreshPolicy", Verdict: Changed, Reason: "the secret is read when the object changes; Vault Secrets Operator also reads it when it starts", Todo: "set refreshInterval, if new values are wanted"})
}

func hmacSecretData(f *field) {
	switch f.node.Value {
	case "true":
		f.dropped("what is in the Secret is always compared")
	case "false":
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "a Secret that another tool changes is restored; Vault Secrets Operator does so at the next refresh only", Todo: "check that no other tool changes the Secret"})
	default:
		f.invalid("true or false")
	}
}

// restartTarget moves a workload that Vault Secrets Operator restarts.
func (f *field) restartTarget() {
	of := strings.TrimPrefix(text(f.node, "kind"), "argo.")
	switch {
	case f.node.Kind != yaml.MappingNode:
		f.invalid("a mapping")
	case !f.only("kind", "name"):
	case !slices.Contains([]string{"Deployment", "DaemonSet", "StatefulSet", "Rollout"}, of):
		f.invalid("of the kind Deployment, DaemonSet, StatefulSet or argo.Rollout")
	default:
		name := child(f.node, "name")
		f.out.pend(len(f.path)+1, f.node.Content...)
		f.node = mapping("kind", plain(of), "name", name)
		f.used.module(vaultKV.module).restarts = true
		f.moveTo([]string{"spec", "target", "restart", "workloads", f.path[len(f.path)-1]}, Finding{Verdict: Changed, Reason: causeRestart, Todo: "apply the values with workloadRestarts.enabled"})
	}
}

// restarts moves workloads that Vault Secrets Operator restarts.
func restarts(f *field) {
	switch {
	case f.node.Kind != yaml.SequenceNode:
		f.invalid("a list")
	case len(f.node.Content) == 0:
		f.dropped("it is empty")
	case f.Kind == "VaultStaticSecret" && text(f.object.node, "spec", "hmacSecretData") == "false":
		f.dropped("Vault Secrets Operator ignores it if hmacSecretData is false")
	default:
		f.pend()
		for i, n := range f.node.Content {
			f.below(nil, n, index(i)).restartTarget()
		}
	}
}

// created reports whether the object creates its Secret.
func (o *object) created() bool { return text(o.node, "spec", "destination", "create") == "true" }

func create(f *field) {
	if f.node.Value != "true" && f.node.Value != "false" {
		f.invalid("true or false")
		return
	}
	f.pend()
	if f.node.Value == "true" {
		f.add(Finding{Field: f.String(), To: "spec.target.creationPolicy", Verdict: Exact, Reason: "Owner is the default"})
	} // finishDestination makes explicit what happens if it is false.
}

func overwrite(f *field) {
	switch {
	case f.node.Value == "true" && f.created():
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "other keys of a Secret that exists stay; Vault Secrets Operator removes them", Todo: "remove keys that are not wanted by hand"})
	case f.node.Value == "true":
		f.dropped("Vault Secrets Operator ignores it if create is false")
	case f.node.Value == "false":
		f.dropped("it is the default")
	default:
		f.invalid("true or false")
	}
}

// ifCreated drops what Vault Secrets Operator sets only on a Secret that it creates.
func ifCreated(then rule) rule {
	return func(f *field) {
		if !f.created() {
			f.dropped("Vault Secrets Operator ignores it if create is false")
			return
		}
		then(f)
	}
}

// literals moves labels or annotations of the Secret, which are templates here.
func literals(what string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.MappingNode {
			f.invalid("a mapping")
			return
		}
		for key, value := range pairs(f.node) {
			at := f.below(key, value, key.Value)
			if !isText(value) {
				at.invalid("text")
				return
			}
			at.node = scalarNode(literal(value.Value), value)
			at.moveTo([]string{"spec", "target", "template", "metadata", what, key.Value}, Finding{Verdict: Exact})
		}
	}
}

// finishDestination makes explicit what Vault Secrets Operator does by default.
func (o *object) finishDestination() {
	if text(o.node, "spec", "destination", "name") == "" {
		o.refuse("spec.destination.name", "it is missing")
	}
	if !o.created() {
		o.out.set("Merge", "spec", "target", "creationPolicy")
		o.add(Finding{Field: "spec.destination.create", To: "spec.target.creationPolicy", Verdict: Changed, Reason: "other keys of the Secret stay; without create, Vault Secrets Operator removes them", Todo: "check that other keys may stay"})
	}
	if text(o.node, append(strings.Split(transformation, "."), "excludeRaw")...) != "true" {
		o.add(Finding{Field: transformation + ".excludeRaw", Verdict: Changed, Reason: "the Secret has no key _raw, under which Vault Secrets Operator writes the whole answer of Vault", Todo: "check that no workload reads _raw"})
	}
	ordered(child(o.out.root, "spec", "target"), "name", "creationPolicy", "template")
	ordered(child(o.out.root, "spec", "target", "template"), "type", "metadata", "mergePolicy", "data")
}
