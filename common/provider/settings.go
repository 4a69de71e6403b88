package provider

import (
	"maps"
	"slices"
	"strings"
)

// Reserved is the start of the names of settings that only the operator writes, such as the mark of a Writer.
const Reserved = "direct-secrets.io"

// CheckSettings checks the entries of a map in the metadata of a Target. check returns what is wrong with an entry; empty if it is valid.
// No entry may have a reserved name.
func CheckSettings(field string, m map[string]string, check func(name, value string) (wrong string)) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		wrong := check(name, m[name])
		if strings.HasPrefix(strings.ToLower(name), Reserved) {
			wrong = "is reserved for the operator; choose another name"
		}
		if wrong != "" {
			return NewError(Invalid, "metadata.%s: %s %s", field, Quoted(name), wrong)
		}
	}
	return nil
}

// Differing returns the entries of a map in the metadata of a Target that a secret does not have, as names for Observed.Drift.
func Differing(field string, want, has map[string]string) (drift []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is, ok := has[name]; !ok || is != want[name] {
			drift = append(drift, field+"."+name)
		}
	}
	return drift
}

// Merged returns the entries of a map with those of another one over them.
func Merged(under, over map[string]string) map[string]string {
	m := make(map[string]string, len(under)+len(over))
	maps.Copy(m, under)
	maps.Copy(m, over)
	return m
}
