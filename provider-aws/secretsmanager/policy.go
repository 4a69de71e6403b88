package secretsmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// policyDrift is the name of the policy in Observed.Drift.
	policyDrift = "resourcePolicy"
	// maxPolicy is the maximum size of a policy, in bytes:
	// https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
	maxPolicy = 20480
)

// A resourcePolicy is a policy as JSON: an object, or a text with one. nil leaves the policy of the secret unchanged.
type resourcePolicy json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (p *resourcePolicy) UnmarshalJSON(b []byte) error {
	*p = nil
	if !bytes.Equal(b, []byte("null")) {
		*p = bytes.Clone(b)
	}
	return nil
}

// document returns the policy as a JSON object.
func (p resourcePolicy) document() (string, error) {
	raw := []byte(p)
	if bytes.HasPrefix(raw, []byte(`"`)) {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
		raw = []byte(text)
	}
	b := bytes.Buffer{}
	err := json.Compact(&b, raw)
	return b.String(), err
}

// check rejects a policy that AWS would reject in any case. Its errors do not show the policy.
func (p resourcePolicy) check() error {
	if p == nil {
		return nil
	}
	text, err := p.document()
	var fields map[string]json.RawMessage
	switch {
	case err != nil || json.Unmarshal([]byte(text), &fields) != nil || fields == nil:
		return provider.NewError(provider.Invalid, "metadata.resourcePolicy: is not a policy; write it as a JSON object, or as a text with one")
	case fields["Statement"] == nil:
		return provider.NewError(provider.Invalid, "metadata.resourcePolicy: has no Statement; add one, or remove the field to leave the policy of the secret unchanged")
	case len(text) > maxPolicy:
		return provider.NewError(provider.Invalid, "metadata.resourcePolicy: has %d bytes, and AWS allows at most %d; shorten it", len(text), maxPolicy)
	}
	return nil
}

// equals reports whether a policy means the same. AWS does not return a policy in the form in which it was written.
func (p resourcePolicy) equals(other string) bool {
	own, err := p.document()
	var a, b any
	if err != nil || json.Unmarshal([]byte(own), &a) != nil || json.Unmarshal([]byte(other), &b) != nil {
		return false
	}
	return reflect.DeepEqual(canonical(a), canonical(b))
}

var rootOfAccount = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::([0-9]{12}):root$`)

// canonical returns a part of a policy without the differences that mean nothing: the order of texts in a list, a list of
// one item, and an account that is named by its root user.
func canonical(v any) any {
	switch v := v.(type) {
	case string:
		if m := rootOfAccount.FindStringSubmatch(v); m != nil {
			return m[1]
		}
		return v
	case map[string]any:
		out := map[string]any{}
		for k, item := range v {
			out[k] = canonical(item)
		}
		return out
	case []any:
		return canonicalList(v)
	}
	return v
}

func canonicalList(list []any) any {
	var items []any
	var sorted []string
	for _, item := range list {
		c := canonical(item)
		items = append(items, c)
		if s, ok := c.(string); ok {
			sorted = append(sorted, s)
		}
	}
	switch {
	case len(items) == 1:
		return items[0]
	case len(sorted) == len(items):
		slices.Sort(sorted)
		return sorted
	}
	return items
}

// putPolicy replaces the policy of a secret, unless it gives access to everyone.
func (c *Client) putPolicy(ctx context.Context, key string, id *string, p resourcePolicy) error {
	if p == nil {
		return nil
	}
	text, err := p.document()
	if err != nil {
		return p.check()
	}
	in := &secretsmanager.PutResourcePolicyInput{SecretId: id, ResourcePolicy: &text, BlockPublicPolicy: aws.Bool(true)}
	_, err = do(ctx, c, c.api.PutResourcePolicy, in, "PutResourcePolicy", key)
	return err
}
