package presence

import (
	"fmt"
	"runtime/debug"
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
	is, ok := parse(version)
	from, ok2 := parse(r.From)
	before, ok3 := parse(r.Before)
	return !ok || !ok2 || !ok3 || !is.less(from) && is.less(before)
}

// WorksWith returns the versions of common with which one version works: those of its minor version, of the one before and
// of the one after. It returns nil if the version is not known.
func WorksWith(version string) *Range {
	v, ok := parse(version)
	if !ok {
		return nil
	}
	return &Range{From: fmt.Sprintf("v%d.%d.0", v.major, max(v.minor-1, 0)), Before: fmt.Sprintf("v%d.%d.0", v.major, v.minor+2)}
}

// A minor is a minor version of common.
type minor struct{ major, minor int }

func (m minor) less(than minor) bool {
	return m.major < than.major || m.major == than.major && m.minor < than.minor
}

// parse parses a semantic version as used by Go modules; see https://go.dev/ref/mod#versions.
func parse(v string) (m minor, ok bool) {
	v, ok = strings.CutPrefix(v, "v")
	if !ok || strings.HasPrefix(v, "0.0.0-") { // Before the first release, all versions start like this.
		return minor{}, false
	}
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 3 {
		return minor{}, false
	}
	var err, err2 error
	m.major, err = strconv.Atoi(parts[0])
	m.minor, err2 = strconv.Atoi(parts[1])
	return m, err == nil && err2 == nil
}
