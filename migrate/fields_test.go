package migrate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// complete are objects to which one field is added.
var complete = map[string]string{
	"ExternalSecret":        "spec: {secretStoreRef: {name: prod}}",
	"ClusterExternalSecret": "spec: {externalSecretSpec: {secretStoreRef: {name: prod}}}",
	"PushSecret":            "spec: {secretStoreRefs: [{name: prod}]}",
	"ClusterPushSecret":     "spec: {pushSecretSpec: {secretStoreRefs: [{name: prod}]}}",
	"VaultAuth":             "spec: {method: kubernetes, mount: kubernetes}",
	"SecretProviderClass":   "spec: {provider: aws}",
	"Config":                "spec: {}",
}

// otherFields are the objects that others refer to.
const otherFields = `
{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: prod}, spec: {provider: {aws: {service: SecretsManager, region: a, auth: {secretRef: {accessKeyIDSecretRef: {name: a, key: a}, secretAccessKeySecretRef: {name: a, key: a}}}}}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: prod, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/a"}}}
`

// fieldLines returns the fields that migrate must know: those of External Secrets Operator, which a test compares with its
// CRDs, those that version 2.9 has in addition, and those of other tools.
func fieldLines(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, file := range []string{"testdata/fields.txt", "testdata/fields-2.9.txt", "testdata/fields-others.txt"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(raw)), "\n")...)
	}
	return all
}

// TestFields gives each field of the tools to migrate, and expects that it knows it, and reports on it.
func TestFields(t *testing.T) {
	t.Parallel()
	lines := fieldLines(t)
	if len(lines) < 1000 {
		t.Errorf("the list has %d fields", len(lines))
	}
	for _, line := range lines {
		words := append(strings.Fields(line), "any")
		found, err := withField(words[0], words[1], words[2], words[3])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !slices.ContainsFunc(found, func(f Finding) bool { return concerns(f.Field, words[2]) }) {
			t.Errorf("%s: no finding concerns it: %v", line, found)
		}
		for _, f := range found {
			if strings.Contains(f.Reason, "no such field") {
				t.Errorf("%s: %s: %s", line, f.Field, f.Reason)
			}
		}
	}
}

// withField returns the findings on an object that has a field.
func withField(version, kind, path, of string) ([]Finding, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte("metadata: {name: a}\n"+complete[kind]), &root); err != nil {
		return nil, err
	}
	t := &tree{root: root.Content[0], lists: map[string]*yaml.Node{}}
	t.set(version, "apiVersion")
	t.set(kind, "kind")
	if csiAzure.parameters[path] != nil && csiAWS.parameters[path] == nil {
		t.set("azure", "spec", "provider")
	}
	switch {
	case strings.HasPrefix(path, "spec.provider.aws."), strings.HasSuffix(kind, "SecretStore") && !strings.HasPrefix(path, "spec.provider."):
		t.set("SecretsManager", "spec", "provider", "aws", "service")
		t.set("arn:aws:iam::111122223333:role/a", "spec", "provider", "aws", "role")
	case strings.HasPrefix(path, "spec.generator."):
		for k, name := range specs {
			if strings.HasPrefix(path, "spec.generator."+name+".") {
				t.set(k, "spec", "kind")
			}
		}
	}
	values := map[string]string{"string": "prod", "integer": "30", "boolean": "true", "object": "{a: b}", "any": "{a: b}"}
	var value yaml.Node
	if err := yaml.Unmarshal([]byte(values[of]), &value); err != nil {
		return nil, err
	}
	var at []string
	for p := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(p, "[]")
		at = append(at, name)
		if list {
			at = append(at, index(0))
		}
	}
	t.put(at, nil, value.Content[0])
	object, err := encode(t.root, "")
	if err != nil {
		return nil, err
	}
	r, err := Convert([]Source{{Content: append(object, "---"+otherFields...)}}, Options{Namespace: "default"})
	if err != nil {
		return nil, err
	}
	return r.Report.Objects[0].Findings, nil
}

// concerns reports whether a finding on a field is one on a path, on what holds it, or on what it holds.
func concerns(field, path string) bool {
	field = strings.NewReplacer("[0]", "[]", "[1]", "[]").Replace(field)
	at, of := strings.Split(field, "."), strings.Split(path, ".")
	n := min(len(at), len(of))
	if field == "spec.kind" && strings.HasPrefix(path, "spec.generator.") {
		return true // The Kind of the generator decides.
	}
	return field != "" && (n > 1 || field == path) && strings.TrimSuffix(strings.Join(at[:n], "."), "[]") == strings.TrimSuffix(strings.Join(of[:n], "."), "[]")
}

// same maps a field of one Kind to that of another whose rules are the same.
func same(kind, path string) string {
	switch kind {
	case "ClusterSecretStore":
		kind = "SecretStore"
	case "ClusterExternalSecret":
		if rest, found := strings.CutPrefix(path, "spec.externalSecretSpec."); found {
			kind, path = "ExternalSecret", "spec."+rest
		}
	case "ClusterPushSecret":
		if rest, found := strings.CutPrefix(path, "spec.pushSecretSpec."); found {
			kind, path = "PushSecret", "spec."+rest
		}
	case "ClusterGenerator":
		for k, name := range specs {
			if rest, found := strings.CutPrefix(path, "spec.generator."+name+"."); found {
				kind, path = k, "spec."+rest
			}
		}
	}
	return kind + " " + path
}

// paths adds the paths of a node and of what it holds.
func paths(n *yaml.Node, path, kind string, all map[string]bool) {
	all[same(kind, path)] = true
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			paths(c, path+"[]", kind, all)
		case i%2 == 1:
			paths(c, strings.TrimPrefix(path+"."+n.Content[i-1].Value, "."), kind, all)
		}
	}
}

// TestCorpusFields sees that each field of the tools occurs in the corpus.
func TestCorpusFields(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, path := range corpus(t) {
		raw, err := corpusFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range splitText(Source{Content: raw}, nil) {
			for _, one := range d.flat() {
				if one.node != nil {
					paths(one.node, "", text(one.node, "kind"), found)
				}
			}
		}
	}
	for _, line := range fieldLines(t) {
		words := append(strings.Fields(line), "any")
		other := strings.HasSuffix(line, " object") && (strings.HasPrefix(words[2], "spec.provider.") || strings.HasPrefix(words[2], "spec.generator."))
		if other && strings.Count(words[2], ".") == 2 {
			continue // migrate converts no such provider or generator.
		}
		if field := same(words[1], words[2]); !found[field] {
			t.Errorf("no manifest has %s", field)
		}
	}
}
