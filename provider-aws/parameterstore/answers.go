package parameterstore

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// A fit is how a batch's answer fits a requested id.
type fit int

const (
	// missing: no parameter fits.
	missing fit = iota
	// fits: one parameter fits.
	fits
	// unclear: a parameter fits this id, and another one that asks for another version.
	unclear
	// shared: several parameters have the name, in different accounts.
	shared
)

// answers matches the parameters of a batch with the requested ids.
type answers struct {
	ids        []string
	parameters []types.Parameter
	// invalid are the ids that AWS has no parameter for.
	invalid []string
}

func answersOf(ids []string, out *ssm.GetParametersOutput) answers {
	return answers{ids: ids, parameters: out.Parameters, invalid: out.InvalidParameters}
}

// find returns the parameter for an id. AWS repeats the requested version in Selector; a parameter without one is the
// current version, or comes from a server that omits it.
func (a answers) find(id string) (*types.Parameter, fit) {
	name, version, _ := cutSelector(id)
	found, how := a.exact(name, version)
	if how == missing && isNumber(version) {
		// A parameter that was selected by a label also has a number. A value never changes under its number.
		i := slices.IndexFunc(a.parameters, func(p types.Parameter) bool { return has(&p, name) && numberOf(&p) == version })
		if i < 0 {
			return nil, missing
		}
		found, how = &a.parameters[i], fits
	}
	if how == fits && selectorOf(found) == "" && a.fitsAnother(version, found) {
		return nil, unclear
	}
	return found, how
}

// exact returns the parameter with a name and a Selector.
func (a answers) exact(name, version string) (found *types.Parameter, how fit) {
	for i := range a.parameters {
		p := &a.parameters[i]
		switch {
		case !has(p, name) || selectorOf(p) != version:
		case found == nil:
			found, how = p, fits
		case aws.ToString(p.ARN) != aws.ToString(found.ARN):
			return nil, shared
		case p.Version != found.Version:
			return nil, unclear
		}
	}
	return found, how
}

// fitsAnother reports whether a parameter without a Selector can be the answer to a request for another version.
func (a answers) fitsAnother(version string, p *types.Parameter) bool {
	return slices.ContainsFunc(a.ids, func(id string) bool {
		name, other, _ := cutSelector(id)
		switch {
		case other == version, !has(p, name), slices.Contains(a.invalid, id):
			return false
		case isNumber(other) && other != numberOf(p):
			return false
		case other == "":
			return true
		}
		_, how := a.exact(name, other)
		return how == missing
	})
}

func has(p *types.Parameter, name string) bool {
	return name != "" && (aws.ToString(p.Name) == name || aws.ToString(p.ARN) == name)
}

// selectorOf returns the version that was requested, without the colon or the name before it.
func selectorOf(p *types.Parameter) string {
	s := aws.ToString(p.Selector)
	return s[strings.LastIndex(s, ":")+1:]
}

func numberOf(p *types.Parameter) string { return strconv.FormatInt(p.Version, 10) }

var digits = regexp.MustCompile(`^[0-9]+$`)

// isNumber reports whether a version is a number. A label does not begin with one.
func isNumber(version string) bool { return digits.MatchString(version) }
