package emulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Policy is an IAM policy document. The emulator knows Allow with Action and Resource with *, the condition StringLike on
// aws:PrincipalTag, and the variable ${aws:PrincipalTag/key}. ParsePolicy rejects anything else, so that no part of a policy is ignored.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement is one statement of a Policy.
type Statement struct {
	Sid       string
	Effect    string
	Action    fake.OneOrMore
	Resource  fake.OneOrMore
	Condition struct{ StringLike map[string]fake.OneOrMore }
}

const principalTag = "aws:PrincipalTag/"

// ParsePolicy decodes a policy document. It panics if that is not possible, because documents are part of a test.
func ParsePolicy(document string) *Policy {
	p := &Policy{}
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		panic(err)
	}
	for i, s := range p.Statement {
		known := s.Effect == "Allow"
		for key := range s.Condition.StringLike {
			known = known && strings.HasPrefix(key, principalTag)
		}
		if !known {
			panic(fmt.Sprintf("statement %d is not emulated", i))
		}
	}
	return p
}

// allows reports whether a statement allows a call.
func (p *Policy) allows(action, resource string, tags map[string]string) bool {
	return slices.ContainsFunc(p.Statement, func(s Statement) bool { return s.matches(action, resource, tags) })
}

func (s Statement) matches(action, resource string, tags map[string]string) bool {
	like := func(patterns fake.OneOrMore, has string) bool {
		return slices.ContainsFunc(patterns, func(t string) bool {
			want, ok := expand(t, tags)
			return ok && glob(want, has)
		})
	}
	for key, wanted := range s.Condition.StringLike {
		if has, ok := tags[strings.TrimPrefix(key, principalTag)]; !ok || !like(wanted, has) {
			return false
		}
	}
	return like(s.Action, action) && like(s.Resource, resource)
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces the variables of a text; false if the session lacks one of the tags, so that the statement does not
// apply.
func expand(text string, tags map[string]string) (string, bool) {
	known := true
	text = variable.ReplaceAllStringFunc(text, func(v string) string {
		value, ok := tags[strings.TrimPrefix(v[2:len(v)-1], principalTag)]
		known = known && ok
		return value
	})
	return text, known
}

// policyAllows reports whether the policy of the caller's role, if there is one, allows an action.
func (e *Emulator) policyAllows(q *request, action, id string) bool {
	return q.caller.policy == nil || q.caller.policy.allows(action, e.resourceOf(q, id), q.caller.session.Tags)
}

// resourceOf returns the ARN of a secret or parameter, also of one that does not exist; * for a call that names none.
func (e *Emulator) resourceOf(q *request, id string) string {
	name := e.nameOf(id)
	switch {
	case id == "":
		return "*"
	case q.service.name() != "secretsmanager":
		return e.parameterARN(name)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if s := e.lookup(name); s != nil {
		return s.arn
	}
	return e.arnPrefix() + name + arnSuffix()
}
