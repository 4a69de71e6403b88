package emulator

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPolicyAllows(t *testing.T) {
	const (
		tagged = `{"Effect":"Allow","Action":"secretsmanager:GetSecretValue","Resource":"arn:x:${aws:PrincipalTag/ns}/*"}`
		all    = `{"Effect":"Allow","Action":["*"],"Resource":["*"]}`
		only   = `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:PrincipalTag/ns":["shop","bank"]}}}`
		like   = `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringLike":{"aws:PrincipalTag/ns":"sh*"}}}`
		prefix = `{"Effect":"Allow","Action":"*","Resource":"arn:x:${aws:PrincipalTag/ns}*"}`
		every  = `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringLike":{"aws:PrincipalTag/ns":"*"}}}`
		deny   = `{"Effect":"Deny","Action":"*","Resource":"arn:x:shop/secret"}`
	)
	shop := map[string]string{"ns": "shop"}
	cases := map[string]struct {
		reason     string
		statements []string
		tags       map[string]string
		want       bool
	}{
		"Empty":      {"A policy without statements allows nothing.", nil, shop, false},
		"Variable":   {"The variable stands for the tag of the session.", []string{tagged}, shop, true},
		"OtherValue": {"Another tag names other resources.", []string{tagged}, map[string]string{"ns": "bank"}, false},
		"NoTag":      {"A statement with a variable does not apply to a session without the tag.", []string{tagged}, nil, false},
		"Condition":  {"A condition lists the values of the tag.", []string{only}, shop, true},
		"NotListed":  {"Another value is not allowed.", []string{only}, map[string]string{"ns": "west"}, false},
		"Untagged":   {"A session without the tag does not meet the condition.", []string{only}, nil, false},
		"Like":       {"StringLike compares with a pattern.", []string{like}, shop, true},
		"NoPrefix":   {"A missing tag is not an empty text.", []string{prefix}, nil, false},
		"Any":        {"Even * requires that the session has the tag.", []string{every}, nil, false},
		"Deny":       {"A denial wins over a permission.", []string{all, deny}, shop, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := ParsePolicy(`{"Version":"2012-10-17","Statement":[` + strings.Join(tc.statements, ",") + `]}`)
			if got := p.allows("secretsmanager:GetSecretValue", "arn:x:shop/secret", tc.tags); got != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPolicyUnknown checks that a document with parts that are not emulated is rejected.
func TestPolicyUnknown(t *testing.T) {
	for name, document := range map[string]string{
		"Operator": `{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"Bool":{"aws:PrincipalTag/ns":"a"}}}]}`,
		"Key":      `{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:SourceIp":"a"}}}]}`,
		"Field":    `{"Statement":[{"Effect":"Allow","NotAction":"*","Resource":"*"}]}`,
		"Effect":   `{"Statement":[{"Effect":"allow","Action":"*","Resource":"*"}]}`,
		"Resource": `{"Statement":[{"Effect":"Allow","Action":"*"}]}`,
	} {
		if err := json.Unmarshal([]byte(document), &Policy{}); err == nil {
			t.Errorf("%s: a policy that is not emulated completely must be rejected", name)
		}
	}
}
