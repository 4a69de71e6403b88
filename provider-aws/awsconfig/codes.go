package awsconfig

import (
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Meaning is what an error code of AWS says: its class, and in words what is wrong and how to mend
// it. AWS's own text is never shown.
type Meaning struct {
	Class provider.Class
	Text  string

	// part of the credentials that is to be mended.
	part part
}

// Codes says what error codes mean.
type Codes map[string]Meaning

// part is a part of an access key.
type part int

const (
	noPart part = iota
	keyID
	secretKey
	sessionToken
)

// blame names the field, or the place, of each part of the credentials.
type blame map[part]string

var (
	secretBlame = blame{
		keyID:        "spec.auth.secretRef.accessKeyIDSecretRef",
		secretKey:    "spec.auth.secretRef.secretAccessKeySecretRef",
		sessionToken: "spec.auth.secretRef.sessionTokenSecretRef",
	}
	serviceAccountBlame = blame{
		keyID:        "spec.auth.serviceAccountRef",
		secretKey:    "spec.auth.serviceAccountRef",
		sessionToken: "spec.auth.serviceAccountRef",
	}
	ambientBlame = blame{
		keyID:        "the operator's own identity",
		secretKey:    "the operator's own identity",
		sessionToken: "the operator's own identity",
	}
)

// commonCodes are the codes that every service of AWS has, STS included. They are those of
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html and
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html.
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

	"IncompleteSignature":                 {provider.Denied, "the request lacks a valid signature", secretKey},
	"IncompleteSignatureException":        {provider.Denied, "the request lacks a valid signature", secretKey},
	"MissingAuthenticationToken":          {provider.Denied, "the request lacks credentials", keyID},
	"MissingAuthenticationTokenException": {provider.Denied, "the request lacks credentials", keyID},

	"ExpiredToken":          {provider.Denied, expired, sessionToken},
	"ExpiredTokenException": {provider.Denied, expired, sessionToken},

	"InvalidIdentityToken": {provider.Denied, "AWS does not accept the token: its issuer must be an identity provider of the account, and know its audience", sessionToken},
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

// CannotDecrypt is what an error code of KMS says, as the services pass it on.
const CannotDecrypt = "KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"

// CannotEncrypt is what an error code of KMS says of a write.
const CannotEncrypt = "KMS cannot encrypt it; check that its KMS key is enabled and that kms:Encrypt, kms:GenerateDataKey and kms:Decrypt are allowed"

// BadPolicy is what error codes of policies say.
const BadPolicy = "AWS does not accept the policy of the secret; mend it in AWS"

const (
	denied       = "access denied"
	rejected     = "AWS rejects the request as not valid"
	badSignature = "the secret access key does not belong to the access key id, or the operator's clock is wrong"
	expired      = "the session token has expired"
)

// meaning looks a code up: first what the service says of it, then what is common.
func (c Codes) meaning(code string) (Meaning, bool) {
	if m, ok := c[code]; ok {
		return m, true
	}
	if m, ok := commonCodes[code]; ok {
		return m, true
	}
	if _, ok := retry.DefaultThrottleErrorCodes[code]; ok {
		return Meaning{Class: provider.Throttled, Text: "AWS asks for fewer calls"}, true
	}
	return Meaning{}, false
}
