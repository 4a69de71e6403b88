package ststoken

import (
	"strings"

	"github.com/aws/smithy-go"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	needsRole = "spec.role: not set, and AWS gives session tokens to the access key of a user only, not to temporary credentials; set the role whose access keys are to be made"
	badCode   = "spec.requestParameters: AWS takes this MFA device and code for this user not, or not any more: a tokenCode works once, and for about a minute; check serialNumber and write a new tokenCode"
	spentCode = "spec.requestParameters.tokenCode: is used up, as it works once; write a new one"
)

// codes are what errors mean here and not elsewhere. Those of STS are common to all services.
var codes = awsconfig.Codes{
	"ValidationError": {Class: provider.Invalid, Text: "AWS rejects spec.requestParameters.sessionDuration, or another field of the request; a session of a role lasts at most as long as the role allows, and an hour if the caller is a role itself"},
}

// isBadCode reports whether an error says that the MFA device or its code was refused.
func isBadCode(err error) bool { return says(err, "MultiFactorAuthentication failed") }

// says reports whether AWS denies access with such words. It has one code for all reasons.
func says(err error, words string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && awsconfig.IsAccessDenied(api.ErrorCode()) && strings.Contains(api.ErrorMessage(), words)
}

func (g *Generator) explain(err error) error {
	switch {
	case isBadCode(err):
		return provider.NewError(provider.Denied, badCode)
	case says(err, "Cannot call GetSessionToken with session credentials"):
		return provider.NewError(provider.Denied, needsRole)
	}
	return g.config.Explain(err, "", codes)
}
