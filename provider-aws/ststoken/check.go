package ststoken

import (
	"regexp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// These are the bounds of spec.requestParameters.sessionDuration in seconds, by the references of
// GetSessionToken and AssumeRole. A session of chained roles lasts at most one hour, whatever the last role
// allows.
const (
	minDuration      = 900
	maxDuration      = 129600
	maxRoleDuration  = 43200
	maxChainDuration = 3600
)

var sixDigits = regexp.MustCompile(`^[0-9]{6}$`)

// check rejects settings with which no call could succeed. The API server already rejects all of them.
func check(spec *v1alpha1.AWSSpec, g *common.GeneratorSpec, asks v1alpha1.STSRequestParameters) error {
	temporary := spec.Auth != nil && spec.Auth.SecretRef != nil && spec.Auth.SecretRef.SessionTokenSecretRef != nil
	if temporary && spec.Role == "" {
		return provider.NewError(provider.Invalid, "spec.auth.secretRef.sessionTokenSecretRef: AWS creates no session tokens for a temporary access key; set spec.role, or name the access key of a user")
	}
	if err := checkDuration(spec, asks.SessionDuration); err != nil {
		return err
	}
	return checkMFA(spec, g, asks)
}

func checkDuration(spec *v1alpha1.AWSSpec, d int32) error {
	switch {
	case d != 0 && d < minDuration:
		return badField("sessionDuration", "must be at least 900 seconds")
	case d > maxDuration:
		return badField("sessionDuration", "must be at most 129600 seconds")
	case (spec.Role != "" || spec.Auth.ByToken()) && d > maxRoleDuration:
		return badField("sessionDuration", "must be at most 43200 seconds with a role")
	case len(spec.AdditionalRoles) > 0 && d > maxChainDuration:
		return badField("sessionDuration", "must be at most 3600 seconds with spec.additionalRoles")
	}
	return nil
}

func checkMFA(spec *v1alpha1.AWSSpec, g *common.GeneratorSpec, asks v1alpha1.STSRequestParameters) error {
	switch {
	case asks.SerialNumber == "" && asks.TokenCode == "":
		return nil
	case asks.TokenCode == "":
		return badField("tokenCode", "must be set with serialNumber")
	case asks.SerialNumber == "":
		return badField("serialNumber", "must be set with tokenCode")
	case !sixDigits.MatchString(asks.TokenCode):
		return badField("tokenCode", "must be the six digits that the MFA device shows")
	case len(spec.AdditionalRoles) > 0 || spec.Auth.ByToken():
		return badField("serialNumber", "is the MFA device of a user, and cannot be used with spec.additionalRoles or a ServiceAccount in spec.auth; remove it")
	case g.RotationInterval != "":
		return provider.NewError(provider.Invalid, "spec.rotationInterval: spec.requestParameters.tokenCode works only once, so a rotation would fail; remove rotationInterval")
	}
	return nil
}

func badField(name, text string) error {
	return provider.NewError(provider.Invalid, "spec.requestParameters.%s: %s", name, text)
}
