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

// codes are the error codes of Secrets Manager in addition to the common ones of AWS, as listed at
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html and at the other
// calls. Any other code is Unavailable.
var codes = awsconfig.Codes{
	"ResourceNotFoundException": {Class: provider.NotFound, Text: "does not exist"},
	invalidRequest:              {Class: provider.Invalid, Text: "AWS rejects the request in the current state of the secret"},
	hasReplicas:                 {Class: provider.Unavailable, Text: "AWS has not removed its replicas yet; retrying"},
	scheduledForDeletion:        {Class: provider.NotFound, Text: "is scheduled for deletion; restore it, or correct the key"},
	"DecryptionFailure":         {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"DecryptionFailureException": {
		Class: provider.Denied, Text: awsconfig.CannotDecrypt,
	},
	"EncryptionFailure":                {Class: provider.Denied, Text: awsconfig.CannotEncrypt},
	"ResourceExistsException":          {Class: provider.Conflict, Text: "exists already"},
	"LimitExceededException":           {Class: provider.Invalid, Text: "a limit of AWS is reached, such as the number of new versions of a secret within a day; write less often, or raise the quota"},
	"MalformedPolicyDocumentException": {Class: provider.Invalid, Text: "AWS does not accept metadata.resourcePolicy as a policy; correct it"},
	"PublicPolicyException":            {Class: provider.Invalid, Text: "metadata.resourcePolicy gives access to everyone; name the principals"},
	"PreconditionNotMetException":      {Class: provider.Invalid, Text: "AWS rejects the request in the current state of the secret"},

	"InternalServiceError":      {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"InvalidNextTokenException": {Class: provider.Unavailable, Text: "AWS returned an incomplete list"},
}

// scheduledForDeletion is not a code of AWS. It stands for an InvalidRequestException with this text.
const scheduledForDeletion = "scheduled for deletion"

// hasReplicas is not a code of AWS either. It stands for an InvalidRequestException about replica regions.
const hasReplicas = "replica regions"

// explain turns an error of the SDK into a provider.Error.
func (c *Client) explain(err error, what string) error {
	var api smithy.APIError
	if awsconfig.CodeOf(err) != "" && errors.As(err, &api) && codeOf(api) != api.ErrorCode() {
		return c.config.ExplainCode(codeOf(api), "", what, codes)
	}
	return c.config.Explain(err, what, codes)
}

// codeOf returns the code of an error. It distinguishes errors for which AWS has only one code.
func codeOf(api smithy.APIError) string {
	text := api.ErrorMessage()
	if api.ErrorCode() == invalidRequest && (strings.Contains(text, "marked for deletion") || strings.Contains(text, "scheduled for deletion")) {
		return scheduledForDeletion
	}
	if api.ErrorCode() == invalidRequest && strings.Contains(text, hasReplicas) {
		return hasReplicas
	}
	return api.ErrorCode()
}

// isReplicated reports whether AWS refuses to delete a secret because it has replicas.
func isReplicated(err error) bool {
	var api smithy.APIError
	return awsconfig.CodeOf(err) != "" && errors.As(err, &api) && codeOf(api) == hasReplicas
}

// about describes a ref in messages.
func about(ref provider.Ref) string { return ref.About("secret") }

// about is like the function about, and shows the name in AWS if the store has a prefix.
func (c *Client) about(ref provider.Ref) string {
	if id := c.config.ID(ref.Key); id != ref.Key {
		return fmt.Sprintf("%s (%q)", about(ref), id)
	}
	return about(ref)
}
