package main

import (
	"embed"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"go.yaml.in/yaml/v3"
)

//go:embed settings.yaml umbrella.yaml *.tmpl
var sources embed.FS

// A setting is a value of a chart, or a group of values.
type setting struct {
	name        string
	description string
	moduleOnly  bool
	value       *yaml.Node // the default; nil for a group
	group       group
	schema      map[string]any
}

// A group holds settings in the order of their descriptions.
type group []setting

type settings struct {
	module   group
	umbrella group
	defs     any
	instead  map[string]string // names to use instead of unknown settings
}

func loadSettings() (*settings, error) {
	module, all, err := load("settings.yaml")
	if err != nil {
		return nil, err
	}
	instead := map[string]string{}
	for name, other := range all["x-instead"].(map[string]any) {
		instead[name] = other.(string)
	}
	umbrella, _, err := load("umbrella.yaml")
	return &settings{module: module, umbrella: umbrella, defs: all["$defs"], instead: instead}, err
}

func load(name string) (group, map[string]any, error) {
	raw, err := sources.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	var schema yaml.Node
	if err := yaml.Unmarshal(raw, &schema); err != nil {
		return nil, nil, errors.Wrapf(err, "cannot read %s", name)
	}
	g, err := groupOf(schema.Content[0])
	if err != nil {
		return nil, nil, errors.Wrapf(err, "cannot use %s", name)
	}
	var all map[string]any
	err = schema.Decode(&all) // Go does not define whether an operand is read before a function call in the same expression.
	return g, all, errors.Wrapf(err, "cannot read %s", name)
}

// field returns the value of a mapping with that name, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// groupOf reads the properties of a schema. Each is a group, or has a description and a default.
func groupOf(schema *yaml.Node) (group, error) {
	var out group
	properties := field(schema, "properties")
	if properties == nil {
		return nil, errors.New("has neither a default nor properties")
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		s, n := setting{name: properties.Content[i].Value}, properties.Content[i+1]
		if err := n.Decode(&s.schema); err != nil {
			return nil, err
		}
		s.moduleOnly = s.schema["x-module-only"] == true
		delete(s.schema, "x-module-only")
		if fields, ok := s.schema["x-instead"].(map[string]any); ok {
			properties, _ := s.schema["properties"].(map[string]any)
			if properties == nil {
				properties = map[string]any{}
			}
			for name, instead := range fields {
				properties[name] = refused(instead.(string))
			}
			delete(s.schema, "x-instead")
			s.schema["properties"] = properties
		}
		s.description, _ = s.schema["description"].(string)
		s.value = field(n, "default")
		if s.value == nil {
			var err error
			if s.group, err = groupOf(n); err != nil {
				return nil, errors.Wrap(err, s.name)
			}
			delete(s.schema, "properties")
		}
		if s.value != nil && s.description == "" {
			return nil, errors.Errorf("%s has no description", s.name)
		}
		out = append(out, s)
	}
	return out, nil
}

// only returns the settings that exist for modules only, or the others.
func (g group) only(moduleOnly bool) group {
	var out group
	for _, s := range g {
		if s.value == nil {
			if s.group = s.group.only(moduleOnly); len(s.group) > 0 {
				out = append(out, s)
			}
		} else if s.moduleOnly == moduleOnly {
			out = append(out, s)
		}
	}
	return out
}

// pick returns the settings with these names.
func (g group) pick(names ...string) group {
	return slices.DeleteFunc(slices.Clone(g), func(s setting) bool { return !slices.Contains(names, s.name) })
}

// with returns the settings with another default for one of them.
func (g group) with(name string, value any) (group, error) {
	out := slices.Clone(g)
	i := slices.IndexFunc(out, func(s setting) bool { return s.name == name })
	if i < 0 {
		return nil, errors.Errorf("there is no setting %s", name)
	}
	out[i].value = &yaml.Node{}
	return out, errors.Wrapf(out[i].value.Encode(value), "cannot write the default of %s", name)
}

// named returns the settings with the defaults of a module.
func (g group) named(module string) group {
	out := slices.Clone(g)
	for i, s := range out {
		if s.value == nil {
			out[i].group = s.group.named(module)
			continue
		}
		v := *s.value
		v.Value = strings.ReplaceAll(v.Value, "MODULE", module)
		out[i].value = &v
	}
	return out
}

// properties returns the schema of the settings.
func (g group) properties() map[string]any {
	out := map[string]any{}
	for _, s := range g {
		schema := maps.Clone(s.schema)
		if s.value == nil {
			schema["properties"] = s.group.properties()
		}
		out[s.name] = schema
	}
	return out
}

// required returns the schema of settings that are all required. For Helm a null value is missing, because it
// removes the default.
func (g group) required() map[string]any {
	properties, names := map[string]any{}, []string{}
	for _, s := range g {
		properties[s.name] = s.schema
		if s.value == nil {
			properties[s.name] = s.group.required()
		}
		names = append(names, s.name)
	}
	out := object(properties)
	out["required"] = names
	return out
}

// Helm adds these values itself: the switch of a module, also for the module's own chart, and maps for the
// charts inside a chart.
var (
	enabled = map[string]any{"type": "boolean"}
	table   = map[string]any{"type": "object"}
)

// root returns the schema of a chart.
func (s *settings) root(global map[string]any, properties, defs map[string]any) map[string]any {
	properties["library"] = table
	all := map[string]any{"global": global}
	for k, v := range s.defs.(map[string]any) {
		all[k] = v
	}
	maps.Copy(all, defs)
	properties["global"] = map[string]any{"$ref": "#/$defs/global"}
	// A parent chart can have its own settings there. library.checkGlobal rejects unknown settings if there is
	// no parent.
	delete(global, "additionalProperties")
	out := object(properties)
	// Some versions of Helm 3 do not support later drafts.
	out["$schema"] = "http://json-schema.org/draft-07/schema#"
	out["$defs"] = all
	return out
}

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// refused returns the schema of a setting that does not exist, with the name to use instead. Helm's error for
// an enum shows its values.
func refused(instead string) map[string]any {
	return map[string]any{"enum": []string{"(not a setting: use " + instead + ")"}}
}

// ofModule returns the properties of a module.
func (s *settings) ofModule() map[string]any {
	properties := s.module.properties()
	for name, instead := range s.instead {
		properties[name] = refused(instead)
	}
	properties["enabled"] = enabled
	return properties
}

func (s *settings) moduleSchema() map[string]any {
	properties := s.ofModule()
	return s.root(s.module.only(false).required(), properties, nil)
}

func (s *settings) crdsSchema() map[string]any {
	global := object(s.module.only(false).properties())
	global["required"] = []string{"crds", "rbac", "scope"} // The other properties come from the umbrella chart.
	return s.root(global, map[string]any{}, nil)
}

func (s *settings) umbrellaSchema(modules []string) map[string]any {
	module := s.ofModule()
	module["global"], module["library"] = table, table
	properties := map[string]any{}
	for name, instead := range s.instead {
		properties[name] = refused("global." + instead + ", or MODULE." + instead + " for one module")
	}
	for _, one := range s.module {
		properties[one.name] = refused("global." + one.name + ", or MODULE." + one.name + " for one module")
		if one.moduleOnly {
			properties[one.name] = refused("MODULE." + one.name + ", which each module has for itself")
		}
	}
	for _, name := range modules { // Users expect aws instead of provider-aws.
		_, short, _ := strings.Cut(name, "-")
		properties[short] = refused(name)
	}
	maps.Copy(properties, s.umbrella.properties())
	for _, m := range modules {
		properties[m] = map[string]any{"$ref": "#/$defs/module"}
	}
	crds := map[string]any{"global": table, "library": table}
	for _, one := range s.module.pick("crds")[0].group {
		crds[one.name] = refused("global.crds." + one.name)
	}
	properties["crds"] = object(crds)
	return s.root(s.module.only(false).required(), properties, map[string]any{"module": object(module)})
}

// write writes the values of a chart, with their schema and README.
func (s *settings) write(chart string, v values) error {
	schema, err := json.MarshalIndent(v.schema, "", "  ")
	if err != nil {
		return err
	}
	readme, err := v.page(filepath.Base(chart), v.readme)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"values.schema.json": append(schema, '\n'),
		"values.yaml":        v.yaml(),
		"README.md":          readme,
	} {
		if err := write(filepath.Join(chart, name), content); err != nil {
			return err
		}
	}
	return nil
}
