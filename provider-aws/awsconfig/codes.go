package awsconfig

import (
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Meaning explains an error code of AWS: its class, what is wrong, and how to fix it. AWS's own text is never
// shown.
type Meaning struct {
	Class provider.Class
	Text  string

	// part is the part of the credentials that the user must fix.
	part part
}

// Codes maps error codes to their meanings.
type Codes map[string]Meaning

// part is a part of an access key.
type part int

const (
	noPart part = iota
	keyID
	secretKey
	sessionToken
)

// credentialsSource maps each part of the credentials to the field, or the place, that it came from.
type credentialsSource map[part]string

var (
	secretSource = credentialsSource{
		keyID:        "spec.auth.secretRef.accessKeyIDSecretRef",
		secretKey:    "spec.auth.secretRef.secretAccessKeySecretRef",
		sessionToken: "spec.auth.secretRef.sessionTokenSecretRef",
	}
	serviceAccountSource = sourceOf(accountField)
	ownSource            = sourceOf(ownField)
	ambientSource        = sourceOf("the operator's own identity")
)

// sourceOf returns the source of credentials that all come from one place.
func sourceOf(place string) credentialsSource {
	return credentialsSource{keyID: place, secretKey: place, sessionToken: place}
}

// commonCodes are the error codes that all AWS services share, STS included. Sources:
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html and
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
var commonCodes = Codes{
	"AccessDenied":            {Class: provider.Denied, Text: denied},
	"AccessDeniedException":   {Class: provider.Denied, Text: denied},
	"NotAuthorized":           {Class: provider.Denied, Text: denied},
	"UnauthorizedOperation":   {Class: provider.Denied, Text: denied},
	"OptInRequired":           {Class: provider.Denied, Text: "the AWS account is not subscribed to the service"},
	"RegionDisabledException": {Class: provider.Denied, Text: "STS is not active in this region; activate it, or correct spec.region"},

	"InvalidClientTokenId":        {provider.Denied, "AWS does not know the access key id", keyID},
	"InvalidAccessKeyId":          {provider.Denied, "AWS does not know the access key id", keyID},
	"UnrecognizedClientException": {provider.Denied, "AWS does not know the access key id, or a session token is missing or wrong", keyID},
	"InvalidSignatureException":   {provider.Denied, badSignature, secretKey},
	"SignatureDoesNotMatch":       {provider.Denied, badSignature, secretKey},
	"RequestExpired":              {provider.Denied, badSignature, secretKey},

	"IncompleteSignature":                 {provider.Denied, "the request has no valid signature", secretKey},
	"IncompleteSignatureException":        {provider.Denied, "the request has no valid signature", secretKey},
	"MissingAuthenticationToken":          {provider.Denied, "the request has no credentials", keyID},
	"MissingAuthenticationTokenException": {provider.Denied, "the request has no credentials", keyID},

	"ExpiredToken":          {provider.Denied, expired, sessionToken},
	"ExpiredTokenException": {provider.Denied, expired, sessionToken},

	"InvalidIdentityToken": {provider.Denied, "AWS does not accept the token: its issuer must be an identity provider of the account, with the audience of the token", sessionToken},
	"IDPRejectedClaim":     {provider.Denied, "the identity provider rejects the token", sessionToken},
	"IDPCommunicationError": {
		Class: provider.Unavailable, Text: "AWS cannot reach the identity provider of the token",
	},

	"ValidationError":           {Class: provider.Invalid, Text: rejected},
	"ValidationException":       {Class: provider.Invalid, Text: rejected},
	"InvalidParameterValue":     {Class: provider.Invalid, Text: rejected},
	"InvalidParameterException": {Class: provider.Invalid, Text: rejected},
	"PackedPolicyTooLarge":      {Class: provider.Invalid, Text: "the session tags are too large; shorten spec.sessionTags"},
	"MalformedPolicyDocument":   {Class: provider.Invalid, Text: rejected},
}

// CannotDecrypt is the text for a KMS error that a service passes on when it reads.
const CannotDecrypt = "KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"

// CannotEncrypt is the text for a KMS error that a service passes on when it writes.
const CannotEncrypt = "KMS cannot encrypt it; check that its KMS key is enabled and that kms:Encrypt, kms:GenerateDataKey and kms:Decrypt are allowed"

const (
	denied       = "access denied"
	rejected     = "AWS rejects the request as invalid; check the spec"
	badSignature = "the secret access key does not match the access key id, or the clock of the operator is wrong"
	expired      = "the session token has expired"
)

// meaning looks a code up, first among those of the service, then among the common ones.
func (c Codes) meaning(code string) (Meaning, bool) {
	if m, ok := c[code]; ok {
		return m, true
	}
	if m, ok := commonCodes[code]; ok {
		return m, true
	}
	if _, ok := retry.DefaultThrottleErrorCodes[code]; ok {
		return Meaning{Class: provider.Throttled, Text: "AWS throttles the calls; retrying with back-off"}, true
	}
	return Meaning{}, false
}
