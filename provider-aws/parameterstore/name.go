package parameterstore

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// The patterns for names and versions follow
// https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-parameter-name-constraints.html. Names
// below /aws/reference/secretsmanager/ are those of secrets: they allow more characters, and their versions are
// UUIDs or stages. AWS ignores spaces around a name. They are rejected here, so that a parameter has only one
// name.
var (
	plainName = regexp.MustCompile(`^[\w.\-/@+=!]+$`)
	arn       = regexp.MustCompile(`^arn:[\w-]+:ssm:[\w-]*:\d*:parameter/[\w.\-/@+=!]+$`)
	selector  = regexp.MustCompile(`^[\w.\-]{1,100}$`)
)

// id returns the name or ARN for a ref, followed by a colon and the number or label of its version, if any. A
// key can contain a version, as in External Secrets Operator. The ref must then have no other version, because
// one of the two would be ignored.
func (c *Client) id(ref provider.Ref) (string, error) {
	if err := c.config.CheckKey(ref.Key); err != nil {
		return "", err
	}
	name, version, inKey := cutSelector(c.config.ID(ref.Key))
	switch {
	case inKey && ref.Version != "":
		return "", provider.NewError(provider.Invalid, "parameter %q: the key already ends in a version; remove it there, or remove remoteRef.version", ref.Key)
	case !plainName.MatchString(name) && !arn.MatchString(name):
		return "", provider.NewError(provider.Invalid, "parameter %q: is neither the name of a parameter, which has letters, digits and . _ - / only, nor its ARN", ref.Key)
	case !inKey && ref.Version == "":
		return name, nil
	case !inKey:
		version = ref.Version
	}
	if !selector.MatchString(version) {
		return "", provider.NewError(provider.Invalid, "%s: a version is a number or a label", c.about(ref))
	}
	return name + ":" + version, nil
}

// cutSelector splits an id before the colon of its version. An ARN contains five more colons.
func cutSelector(id string) (name, version string, ok bool) {
	colons := 0
	if awsconfig.IsARN(id) {
		colons = 5
	}
	parts := strings.SplitN(id, ":", colons+2)
	if len(parts) < colons+2 {
		return id, "", false
	}
	return strings.Join(parts[:colons+1], ":"), parts[colons+1], true
}

// about describes a ref in messages.
func about(ref provider.Ref) string { return ref.About("parameter") }

// about is like the function about, and shows the name in AWS if the store has a prefix.
func (c *Client) about(ref provider.Ref) string {
	if id := c.config.ID(ref.Key); id != ref.Key {
		return fmt.Sprintf("%s (%q)", about(ref), id)
	}
	return about(ref)
}
