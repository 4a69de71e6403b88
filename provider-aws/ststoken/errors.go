package ststoken

import (
	"strings"

	"github.com/aws/smithy-go"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	needsRole = "spec.role: not set, and AWS creates session tokens only for the access key of a user, not for temporary credentials; set the role to create access keys for"
	badCode   = "spec.requestParameters: AWS does not accept this MFA device and code for this user; a tokenCode works once, for about a minute; check serialNumber and write a new tokenCode"
	spentCode = "spec.requestParameters.tokenCode: was used already and works only once; write a new one"
)

// codes are the error codes with another meaning in this package. The other codes of STS are common to all
// services.
var codes = awsconfig.Codes{
	"ValidationError": {Class: provider.Invalid, Text: "AWS rejects spec.requestParameters.sessionDuration, or another field of the request; the maximum is that of the role, or one hour if the caller is a role itself"},
}

// isBadCode reports whether AWS rejected the MFA device or its code.
func isBadCode(err error) bool { return deniesWith(err, "MultiFactorAuthentication failed") }

// deniesWith reports whether AWS denies access with these words. It has only one code for all causes.
func deniesWith(err error, words string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && awsconfig.IsAccessDenied(api.ErrorCode()) && strings.Contains(api.ErrorMessage(), words)
}

func (g *Generator) explain(err error) error {
	switch {
	case isBadCode(err):
		return provider.NewError(provider.Denied, badCode)
	case deniesWith(err, "Cannot call GetSessionToken with session credentials"):
		return provider.NewError(provider.Denied, needsRole)
	}
	return g.config.Explain(err, "", codes)
}
