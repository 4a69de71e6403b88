package presence

import (
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

// Skewed reports whether two versions of common are too far apart to work on the same object: by more than one minor
// version, or by a major one. An unknown version is never too far apart.
func Skewed(a, b string) bool {
	majorA, minorA, ok := parse(a)
	majorB, minorB, ok2 := parse(b)
	if !ok || !ok2 {
		return false
	}
	return majorA != majorB || minorA-minorB > 1 || minorB-minorA > 1
}

// parse parses a semantic version as used by Go modules; see https://go.dev/ref/mod#versions.
func parse(v string) (major, minor int, ok bool) {
	v, ok = strings.CutPrefix(v, "v")
	if !ok || strings.HasPrefix(v, "0.0.0-") { // Before the first release, all versions start like this.
		return 0, 0, false
	}
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 3 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(parts[1])
	return major, minor, err == nil
}
