package migrate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	utilyaml "sigs.k8s.io/yaml"
)

// Compare converts the objects of a build, and returns how they differ from those of the same build of converted files, a line for each
// field. Lists name no values.
func Compare(before, after []byte, options Options) ([]string, error) {
	converted, err := Convert([]Source{{Name: "build", Content: before}}, options)
	if err != nil {
		return nil, err
	}
	want, err := objectsOf(converted.Files[0].Content)
	if err != nil {
		return nil, err
	}
	got, err := objectsOf(after)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] == nil {
			all = append(all, name+" is missing")
			continue
		}
		for _, f := range differences("", want[name], got[name]) {
			all = append(all, name+": "+f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == nil {
			all = append(all, name+" is added")
		}
	}
	return all, nil
}

// objectsOf returns the objects of a build by their Kind and name.
func objectsOf(raw []byte) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, d := range splitText(Source{Content: raw}, nil) {
		var o map[string]any
		if err := utilyaml.Unmarshal(bytes.TrimPrefix(d.raw, []byte("---\n")), &o); err != nil {
			return nil, fmt.Errorf("cannot read a build: %w", err)
		}
		metadata, _ := o["metadata"].(map[string]any)
		name := fmt.Sprint(o["kind"], " ")
		if namespace, _ := metadata["namespace"].(string); namespace != "" {
			name += namespace + "/"
		}
		name = fmt.Sprint(name, metadata["name"], " (", groupOf(fmt.Sprint(o["apiVersion"])), ")")
		all[name] = o
	}
	return all, nil
}

// differences returns the fields in which two values differ.
func differences(at string, want, got any) []string {
	a, okA := want.(map[string]any)
	b, okB := got.(map[string]any)
	if !okA || !okB {
		if equality.Semantic.DeepEqual(want, got) {
			return nil
		}
		return []string{strings.TrimPrefix(at, ".") + " differs"}
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if _, found := b[key]; !found {
			all = append(all, strings.TrimPrefix(at+"."+key, ".")+" is missing")
			continue
		}
		all = append(all, differences(at+"."+key, a[key], b[key])...)
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, found := a[key]; !found {
			all = append(all, strings.TrimPrefix(at+"."+key, ".")+" is added")
		}
	}
	return all
}
