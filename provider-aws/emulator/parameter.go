package emulator

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The types and tiers of parameters.
const (
	typeString       = "String"
	typeStringList   = "StringList"
	typeSecureString = "SecureString"

	tierStandard    = "Standard"
	tierAdvanced    = "Advanced"
	tierIntelligent = "Intelligent-Tiering"
)

const (
	maxParameterVersions = 100
	maxParameterLabels   = 10
)

// A parameter is guarded by the emulator's lock.
type parameter struct {
	name        string
	kind        string
	tier        string
	dataType    string
	description string
	keyID       string
	pattern     string
	tags        []tag
	last        int64
	versions    []*parameterVersion // by number
}

// A parameterVersion never changes but for its labels.
type parameterVersion struct {
	number   int64
	value    string
	labels   []string
	modified time.Time
}

func (p *parameter) current() *parameterVersion { return p.versions[len(p.versions)-1] }

// pick finds a version by the number or label of a selector; an empty one
// is the current version.
func (p *parameter) pick(selector string) *parameterVersion {
	if selector == "" {
		return p.current()
	}
	i := slices.IndexFunc(p.versions, func(v *parameterVersion) bool {
		return strconv.FormatInt(v.number, 10) == selector || slices.Contains(v.labels, selector)
	})
	if i < 0 {
		return nil
	}
	return p.versions[i]
}

// put adds a version. The oldest makes room for it, unless a label keeps it.
func (p *parameter) put(value string, now time.Time) error {
	if len(p.versions) == maxParameterVersions {
		if len(p.versions[0].labels) > 0 {
			return badRequest("ParameterMaxVersionLimitExceeded", "You attempted to create a new version of %s by calling the PutParameter API. "+
				"Version %d, the oldest version, can't be deleted because it has a label associated with it. Move the label to another version of the parameter, and try again.",
				p.name, p.versions[0].number)
		}
		p.versions = p.versions[1:]
	}
	p.last++
	p.versions = append(p.versions, &parameterVersion{number: p.last, value: value, modified: now})
	return nil
}

// parameterARN has no slash but the one that a name may begin with.
func (e *Emulator) parameterARN(name string) string {
	return "arn:aws:ssm:" + e.region + ":" + e.account + ":parameter" + slashed(name)
}

func slashed(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// selected splits an id, which is a name or an ARN, into the parameter's name
// and the selector behind it. An ARN does not tell whether the name begins
// with a slash; a parameter without one is looked for first.
func (e *Emulator) selected(id string) (name, selector string) {
	rest, isARN := strings.CutPrefix(id, e.parameterARN(""))
	name, selector, _ = strings.Cut(rest, ":")
	if isARN && !strings.Contains(strings.TrimPrefix(name, "/"), "/") {
		e.mu.RLock()
		defer e.mu.RUnlock()
		if plain := strings.TrimPrefix(name, "/"); e.parameters[plain] != nil {
			name = plain
		}
	}
	return name, selector
}
