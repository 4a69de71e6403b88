package secretsmanager

import (
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const invalidRequest = "InvalidRequestException"

// codes are the errors that Secrets Manager has beside those common to AWS, as listed at
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html and at the other
// calls.
// What AWS does not have here, or has newly, is Unavailable.
var codes = awsconfig.Codes{
	"ResourceNotFoundException": {Class: provider.NotFound, Text: "does not exist"},
	invalidRequest:              {Class: provider.Invalid, Text: "AWS rejects the request in the secret's present state"},
	scheduledForDeletion:        {Class: provider.NotFound, Text: "is scheduled for deletion"},
	"DecryptionFailure":         {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"DecryptionFailureException": {
		Class: provider.Denied, Text: awsconfig.CannotDecrypt,
	},
	"EncryptionFailure":                {Class: provider.Denied, Text: awsconfig.CannotEncrypt},
	"ResourceExistsException":          {Class: provider.Conflict, Text: "exists already"},
	"LimitExceededException":           {Class: provider.Invalid, Text: "a limit of AWS is reached, such as that of the versions that a secret makes within a day; write less often, or raise the quota"},
	"MalformedPolicyDocumentException": {Class: provider.Invalid, Text: awsconfig.BadPolicy},
	"PublicPolicyException":            {Class: provider.Invalid, Text: awsconfig.BadPolicy},
	"PreconditionNotMetException":      {Class: provider.Invalid, Text: "AWS rejects the request in the secret's present state"},

	"InternalServiceError":      {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"InvalidNextTokenException": {Class: provider.Unavailable, Text: "AWS broke off the list"},
}

// scheduledForDeletion is no code of AWS: it is an InvalidRequestException that says so only in its
// text.
const scheduledForDeletion = "scheduled for deletion"

// explain turns an error of the SDK into one of package store.
func (c *Client) explain(err error, what string) error {
	var api smithy.APIError
	if errors.As(err, &api) && codeOf(api) != api.ErrorCode() {
		return c.config.ExplainCode(codeOf(api), "", what, codes)
	}
	return c.config.Explain(err, what, codes)
}

// codeOf is the code of an error, told apart where AWS does not.
func codeOf(api smithy.APIError) string {
	text := api.ErrorMessage()
	if api.ErrorCode() == invalidRequest && (strings.Contains(text, "marked for deletion") || strings.Contains(text, "scheduled for deletion")) {
		return scheduledForDeletion
	}
	return api.ErrorCode()
}

// about names what a ref asks for.
func about(ref provider.Ref) string {
	if ref.Version != "" {
		return fmt.Sprintf("secret %q version %q", ref.Key, ref.Version)
	}
	return fmt.Sprintf("secret %q", ref.Key)
}
