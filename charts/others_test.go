package charts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestValuesOfOthersPage checks that each value which docs/reference/chart-values-of-others.md names exists: as the same
// name, or as the other name.
func TestValuesOfOthersPage(t *testing.T) {
	t.Parallel()
	var all, module map[string]any
	must(t, yaml.Unmarshal([]byte(read(t, umbrella+"/values.yaml")), &all))
	must(t, yaml.Unmarshal([]byte(read(t, "provider-aws/values.yaml")), &module))
	module["enabled"] = true // It is a value of the umbrella chart.
	exists := func(name string) bool {
		// The fields of podSpecExtra are those of a pod.
		path := strings.Split(strings.Replace(name, "podSpecExtra.initContainers", "podSpecExtra", 1), ".")
		return slices.ContainsFunc([]any{all, all["global"], module}, func(in any) bool {
			for _, key := range path {
				values, _ := in.(map[string]any)
				if in = values[key]; in == nil {
					return false
				}
			}
			return true
		})
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(read(t, "../docs/reference/chart-values-of-others.md")) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows++
		from, here := quoted.FindAllStringSubmatch(cells[0], -1), cells[1]
		switch {
		case here == "none" && strings.TrimSpace(cells[2]) == "|":
			t.Errorf("there is no reason why a value is missing: %s", line)
		case here == "same":
			first := from[0][1]
			for _, f := range from {
				name := f[1]
				if strings.HasPrefix(name, ".") { // It is in the group of the first.
					name = first[:strings.LastIndex(first, ".")] + name
				}
				if !exists(strings.TrimPrefix(name, "global.")) {
					t.Errorf("%s is not the same here: %s", name, line)
				}
			}
		case here != "none":
			for _, f := range quoted.FindAllStringSubmatch(here, -1) {
				if !exists(f[1]) {
					t.Errorf("%s does not exist: %s", f[1], line)
				}
			}
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows were found", rows)
	}
}
