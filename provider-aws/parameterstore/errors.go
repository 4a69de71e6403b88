package parameterstore

import (
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// invalidKeyID is the code of a KMS key that is disabled or deleted. It names the key of the parameter,
// not the access key, and it passes when the key is enabled again.
const invalidKeyID = "InvalidKeyId"

const (
	parameterNotFound = "ParameterNotFound"
	invalidResource   = "InvalidResourceId"
)

// codes are the errors that Parameter Store has beside those common to AWS, as listed at
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html and at the
// other calls. What AWS does not have here, or has newly, is Unavailable.
var codes = awsconfig.Codes{
	parameterNotFound:          {Class: provider.NotFound, Text: "does not exist"},
	"ParameterVersionNotFound": {Class: provider.NotFound, Text: "does not have this version or label"},

	invalidKeyID:          {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"InternalServerError": {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"InvalidNextToken":    {Class: provider.Unavailable, Text: "AWS broke off the list"},
	"InvalidFilterKey":    {Class: provider.Invalid, Text: rejectedFilter},
	"InvalidFilterOption": {Class: provider.Invalid, Text: rejectedFilter},
	"InvalidFilterValue":  {Class: provider.Invalid, Text: rejectedFilter},
	invalidResource:       {Class: provider.Invalid, Text: noTags},
	"InvalidResourceType": {Class: provider.Invalid, Text: noTags},
	"TooManyUpdates":      {Class: provider.Throttled, Text: "AWS is still changing it"},
	"HierarchyLevelLimitExceededException": {
		Class: provider.Invalid, Text: "a hierarchy has at most fifteen levels",
	},
	"ParameterPatternMismatchException": {Class: provider.Invalid, Text: "AWS does not take this name, or the value does not match metadata.allowedPattern"},
	"InvalidAllowedPatternException":    {Class: provider.Invalid, Text: "metadata.allowedPattern is no regular expression that AWS takes; correct it"},
	"ParameterAlreadyExists":            {Class: provider.Conflict, Text: "exists already"},
	"ParameterLimitExceeded":            {Class: provider.Invalid, Text: "the account has as many parameters as its quota allows; remove some, or set metadata.tier: Advanced"},
	"ParameterMaxVersionLimitExceeded":  {Class: provider.Invalid, Text: "the oldest of its hundred versions has a label and cannot go; move the label in AWS"},
	"HierarchyTypeMismatchException":    {Class: provider.Invalid, Text: "AWS does not change the type of a parameter; delete it, or push to another key"},
	"TooManyTagsError":                  {Class: provider.Invalid, Text: "it would have more than fifty tags; remove some from metadata.tags, or in AWS"},
	"IncompatiblePolicyException":       {Class: provider.Invalid, Text: badPolicy},
	"InvalidPolicyTypeException":        {Class: provider.Invalid, Text: badPolicy},
	"InvalidPolicyAttributeException":   {Class: provider.Invalid, Text: badPolicy},
	"PoliciesLimitExceededException":    {Class: provider.Invalid, Text: badPolicy},
	"ParameterVersionLabelLimitExceeded": {
		Class: provider.Invalid, Text: "a version has at most ten labels",
	},
	"UnsupportedParameterType": {Class: provider.Invalid, Text: "AWS does not support the parameter's type"},
}

const (
	rejectedFilter = "AWS does not take path, name or tags as a filter"
	badPolicy      = "AWS does not take it with the policies that it has; mend them in AWS"
	noTags         = "AWS has no tags for it; those of a parameter of another account cannot be read"
)

// explain turns an error of the SDK into one of package store.
func (c *Client) explain(err error, what string) error { return c.config.Explain(err, what, codes) }
