package emulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Policy is an IAM policy document. The emulator knows Action and Resource with *, the conditions StringEquals and
// StringLike on aws:PrincipalTag, and the variable ${aws:PrincipalTag/key}. Anything else is an error when the document is
// decoded, so that no part of a policy is ignored.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement is one statement of a Policy.
type Statement struct {
	Sid       string `json:",omitempty"`
	Effect    string
	Action    OneOrMore
	Resource  OneOrMore
	Condition map[string]map[string]OneOrMore `json:",omitempty"`
}

// OneOrMore is one text or a list of them.
type OneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (m *OneOrMore) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*audience)(m)) }

const principalTag = "aws:PrincipalTag/"

// conditions compare a wanted text with that of the caller.
var conditions = map[string]func(want, has string) bool{
	"StringEquals": func(want, has string) bool { return want == has },
	"StringLike":   glob,
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Policy) UnmarshalJSON(b []byte) error {
	type plain Policy
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(p)); err != nil {
		return err
	}
	for i, s := range p.Statement {
		if err := s.check(); err != nil {
			return fmt.Errorf("statement %d: %w", i, err)
		}
	}
	return nil
}

func (s Statement) check() error {
	if s.Effect != "Allow" && s.Effect != "Deny" || len(s.Action) == 0 || len(s.Resource) == 0 {
		return fmt.Errorf("effect %q, action %q and resource %q: Effect must be Allow or Deny, and the others must be set", s.Effect, s.Action, s.Resource)
	}
	for operator, keys := range s.Condition {
		if conditions[operator] == nil {
			return fmt.Errorf("the condition %s is not emulated", operator)
		}
		for key := range keys {
			if !strings.HasPrefix(key, principalTag) {
				return fmt.Errorf("the condition key %s is not emulated", key)
			}
		}
	}
	return nil
}

// ParsePolicy decodes a policy document. It panics if that is not possible, because documents are part of a test.
func ParsePolicy(document string) *Policy {
	p := &Policy{}
	if err := json.Unmarshal([]byte(document), p); err != nil {
		panic(err)
	}
	return p
}

// allows reports whether a statement allows a call, and none denies it.
func (p *Policy) allows(action, resource string, tags map[string]string) bool {
	allowed := false
	for _, s := range p.Statement {
		if !s.matches(action, resource, tags) {
			continue
		}
		if s.Effect == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

func (s Statement) matches(action, resource string, tags map[string]string) bool {
	like := func(patterns OneOrMore, has string, equal func(want, has string) bool) bool {
		return slices.ContainsFunc(patterns, func(t string) bool {
			want, ok := expand(t, tags)
			return ok && equal(want, has)
		})
	}
	if !like(s.Action, action, glob) || !like(s.Resource, resource, glob) {
		return false
	}
	for operator, keys := range s.Condition {
		for key, wanted := range keys {
			has, ok := tags[strings.TrimPrefix(key, principalTag)]
			if !ok || !like(wanted, has, conditions[operator]) {
				return false
			}
		}
	}
	return true
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
	if q.caller.policy == nil {
		return true
	}
	return q.caller.policy.allows(action, e.resourceOf(q, id), q.caller.session.Tags)
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
