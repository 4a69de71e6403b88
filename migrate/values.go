package migrate

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	utilyaml "sigs.k8s.io/yaml"
)

// values are those of the umbrella chart that the results need.
type values struct {
	modules map[string]*moduleValues
}

// moduleValues are those of one module.
type moduleValues struct {
	tokens  tokenValues
	ambient bool
	// configMaps allows the module to write ConfigMaps.
	configMaps bool
	// restarts allows the module to restart workloads.
	restarts bool
}

// module switches a module on; "" is none.
func (v *values) module(name string) *moduleValues {
	if v.modules == nil {
		v.modules = map[string]*moduleValues{}
	}
	if v.modules[name] == nil {
		v.modules[name] = &moduleValues{}
	}
	return v.modules[name]
}

// tokens allows a module to create tokens of ServiceAccounts.
func (v *values) tokens(k *kind) {
	if k != nil {
		v.module(k.module).tokens.enabled = true
	}
}

// ambient allows all stores of a module to log in with the operator's own credentials.
func (v *values) ambient(k *kind) { v.module(k.module).ambient = true }

// add adds what an object needs.
func (v *values) add(o values) {
	for name, m := range o.modules {
		all := v.module(name)
		all.tokens.enabled = all.tokens.enabled || m.tokens.enabled
		all.tokens.namespaces.merge(m.tokens.namespaces)
		all.tokens.names.merge(m.tokens.names)
		all.ambient = all.ambient || m.ambient
		all.configMaps = all.configMaps || m.configMaps
		all.restarts = all.restarts || m.restarts
	}
}

// yaml returns the values as a file for Helm.
func (v *values) yaml() ([]byte, error) {
	t := newTree()
	yes := func() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"} }
	for _, name := range slices.Sorted(maps.Keys(v.modules)) {
		if name == "" {
			continue
		}
		m := v.modules[name]
		t.put([]string{name, "enabled"}, nil, yes())
		m.tokens.put(t, name)
		if m.ambient {
			t.set("all", name, "ambientCredentials")
		}
		if m.configMaps {
			t.put([]string{name, "configMapTargets", "enabled"}, nil, yes())
		}
		if m.restarts {
			t.put([]string{name, "workloadRestarts", "enabled"}, nil, yes())
		}
	}
	if len(t.root.Content) == 0 {
		return nil, nil
	}
	return encode(t.root, "Values of the chart direct-secrets for the converted objects.")
}

// decode reads a node into a type of the API.
func decode(n *yaml.Node, into any) error {
	raw, err := encode(n, "")
	if err != nil {
		return err
	}
	return utilyaml.UnmarshalStrict(raw, into)
}

// groupOf returns the group of an API version.
func groupOf(apiVersion string) string {
	g, _, _ := strings.Cut(apiVersion, "/")
	return g
}
