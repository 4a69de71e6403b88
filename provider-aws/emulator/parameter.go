package emulator

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// These are the types and tiers of parameters.
const (
	typeString       = "String"
	typeStringList   = "StringList"
	typeSecureString = "SecureString"

	tierStandard    = "Standard"
	tierAdvanced    = "Advanced"
	tierIntelligent = "Intelligent-Tiering"
)

// maxParameterVersions is how many versions a parameter keeps. The oldest is removed first.
const maxParameterVersions = 100

// A parameter is protected by the emulator's lock.
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
	versions    []*parameterVersion // sorted by number
}

// A parameterVersion never changes, except for its labels.
type parameterVersion struct {
	number   int64
	value    string
	labels   []string
	modified time.Time
}

func (p *parameter) current() *parameterVersion { return p.versions[len(p.versions)-1] }

// pick returns the version with the number or label of a selector, or the current version if it is empty.
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

// put adds a version.
func (p *parameter) put(value string, now time.Time) {
	p.last++
	p.versions = append(p.versions[max(0, len(p.versions)+1-maxParameterVersions):], &parameterVersion{number: p.last, value: value, modified: now})
}

// parameterARN returns the ARN of a parameter. A leading slash of the name is the slash of the ARN.
func (e *Emulator) parameterARN(name string) string {
	return "arn:aws:ssm:" + e.region + ":" + e.account + ":parameter" + slashed(name)
}

func slashed(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// selected splits an id, which is a name or an ARN, into the parameter's name and the selector after it. An ARN
// does not show whether the name starts with a slash, so a parameter without one is tried first.
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
