package parameterstore

import (
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// invalidKeyID is the code for a KMS key that is disabled or deleted. It means the key of the parameter, not
// the access key. The error ends when the key is enabled again.
const invalidKeyID = "InvalidKeyId"

const (
	parameterNotFound = "ParameterNotFound"
	invalidResource   = "InvalidResourceId"
)

// codes are the error codes of Parameter Store in addition to the common ones of AWS, as listed at
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html and at the other calls.
// Any other code is Unavailable.
var codes = awsconfig.Codes{
	parameterNotFound:          {Class: provider.NotFound, Text: "does not exist; create it, correct the key, or use find.path for the parameters below it"},
	"ParameterVersionNotFound": {Class: provider.NotFound, Text: "does not have this version or label"},

	invalidKeyID:          {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"InternalServerError": {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"InvalidNextToken":    {Class: provider.Unavailable, Text: "AWS returned an incomplete list"},
	"InvalidFilterKey":    {Class: provider.Invalid, Text: rejectedFilter},
	"InvalidFilterOption": {Class: provider.Invalid, Text: rejectedFilter},
	"InvalidFilterValue":  {Class: provider.Invalid, Text: rejectedFilter},
	invalidResource:       {Class: provider.Invalid, Text: noTags},
	"InvalidResourceType": {Class: provider.Invalid, Text: noTags},
	"TooManyUpdates":      {Class: provider.Throttled, Text: "AWS is still processing an earlier change; retrying"},
	"HierarchyLevelLimitExceededException": {
		Class: provider.Invalid, Text: "a hierarchy has at most fifteen levels",
	},
	"ParameterPatternMismatchException": {Class: provider.Invalid, Text: "AWS does not accept this name, or the value does not match metadata.allowedPattern"},
	"InvalidAllowedPatternException":    {Class: provider.Invalid, Text: "metadata.allowedPattern is not a regular expression that AWS accepts; correct it"},
	"ParameterAlreadyExists":            {Class: provider.Conflict, Text: "exists already"},
	"ParameterLimitExceeded":            {Class: provider.Invalid, Text: "the account has reached its quota of parameters; remove some, or set metadata.tier: Advanced"},
	"ParameterMaxVersionLimitExceeded":  {Class: provider.Invalid, Text: "it has 100 versions, and the oldest cannot be deleted because it has a label; move the label in AWS"},
	"HierarchyTypeMismatchException":    {Class: provider.Invalid, Text: "AWS does not change the type of a parameter; delete it, or push to another key"},
	"TooManyTagsError":                  {Class: provider.Invalid, Text: "it would have more than 50 tags; remove some from metadata.tags, or in AWS"},
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
	rejectedFilter = "AWS does not accept path, name or tags as a filter"
	badPolicy      = "AWS rejects the write because of the parameter's policies; correct them in AWS"
	noTags         = "AWS has no tags for it; those of a parameter of another account cannot be read"
)

// explain turns an error of the SDK into a provider.Error.
func (c *Client) explain(err error, what string) error { return c.config.Explain(err, what, codes) }
