package presence

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// modulePath is the module path of common.
const modulePath = "github.com/direct-secrets/direct-secrets/common"

// Version returns the version of common that this binary was built with; empty if it is not known, as in tests of
// common itself.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == modulePath {
			return d.Version // This includes a replaced module, as for work in this repository.
		}
	}
	return ""
}

// Skewed reports whether two operators cannot work on the same object, because one is built with a version of common that is
// not in the range of the other. An unknown version is in every range.
func Skewed(a, b Member) bool { return !a.worksWith(b.Version) || !b.worksWith(a.Version) }

func (m Member) worksWith(version string) bool {
	r := m.Common
	if r == nil {
		r = WorksWith(m.Version)
	}
	if r == nil {
		return true
	}
	is, from, before := parse(version), parse(r.From), parse(r.Before)
	unknown := is == nil || from == nil || before == nil
	return unknown || slices.Compare(is, from) >= 0 && slices.Compare(is, before) < 0
}

// WorksWith returns the versions of common with which one version works: those of its minor version, of the one before and
// of the one after. It returns nil if the version is not known.
func WorksWith(version string) *Range {
	v := parse(version)
	if v == nil {
		return nil
	}
	return &Range{From: fmt.Sprintf("v%d.%d.0", v[0], max(v[1]-1, 0)), Before: fmt.Sprintf("v%d.%d.0", v[0], v[1]+2)}
}

// parse returns the major and the minor number of a semantic version as used by Go modules; nil if it is not one. See
// https://go.dev/ref/mod#versions.
func parse(v string) []int {
	v, ok := strings.CutPrefix(v, "v")
	parts := strings.SplitN(v, ".", 3)
	if !ok || len(parts) < 3 || strings.HasPrefix(v, "0.0.0-") { // Before the first release, all versions start like this.
		return nil
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return nil
	}
	return []int{major, minor}
}
