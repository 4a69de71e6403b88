package awsconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// answer returns the error that the SDK makes from an HTTP answer.
func answer(status int, retryAfter string, err error) error {
	r := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}}
	return &smithy.OperationError{ServiceID: "Secrets Manager", OperationName: "GetSecretValue",
		Err: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: r}, Err: err}}
}

func coded(code, message string) error {
	return answer(http.StatusBadRequest, "", &smithy.GenericAPIError{Code: code, Message: message})
}

var serviceCodes = Codes{"ServiceCode": {Class: provider.NotFound, Text: "does not exist; create it"}}

func TestExplain(t *testing.T) {
	const arn = "arn:aws:sts::000000000000:assumed-role/shop/session"
	cases := map[string]struct {
		reason string
		err    error
		want   *provider.Error
	}{
		"Own": {
			reason: "An error that is already classified is unchanged.",
			err:    errors.Wrap(provider.NewError(provider.Invalid, "auth: no such Secret"), canary),
			want:   provider.NewError(provider.Invalid, "auth: no such Secret"),
		},
		"Service": {
			reason: "A service's own code is explained.",
			err:    coded("ServiceCode", canary),
			want:   provider.NewError(provider.NotFound, "it: does not exist in account 111122223333, region eu-north-1; create it"),
		},
		"OtherService": {
			reason: "An unknown code is never NotFound, whatever its name.",
			err:    coded("NoSuchSecretNotFoundException", canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS returned the error NoSuchSecretNotFoundException"),
		},
		"LoginMissing": {
			reason: "A login that misses something, such as a role of SSO, does not say that a secret does not exist.",
			err:    &loginError{login: &login{field: "spec.auth", doing: "the operator's own identity has no credentials"}, err: coded("ServiceCode", canary)},
			want:   provider.NewError(provider.Unavailable, "spec.auth: the operator's own identity has no credentials: AWS returned the error ServiceCode"),
		},
		"OddCode": {
			reason: "A text that does not look like a code is not shown.",
			err:    coded("code with "+canary, canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS returned status 400"),
		},
		"DeniedAction": {
			reason: "The message names the user and the denied action.",
			err:    coded("AccessDeniedException", "User: "+arn+" is not authorized to perform: secretsmanager:GetSecretValue on resource: "+canary),
			want:   provider.NewError(provider.Denied, "it: "+arn+" is not allowed to perform secretsmanager:GetSecretValue; allow it in a policy"),
		},
		"DeniedKey": {
			reason: "The message names the KMS permission, which is missing in the key's policy rather than in the secret's.",
			err:    coded("AccessDeniedException", "Access to KMS is not allowed "+canary),
			want:   provider.NewError(provider.Denied, "it: the caller is not allowed to use the KMS key of the secret; allow kms:Decrypt in a policy and in the key policy"),
		},
		"DeniedText": {
			reason: "AWS's text in another form is not shown.",
			err:    coded("AccessDeniedException", canary),
			want:   provider.NewError(provider.Denied, "it: access denied"),
		},
		"KeyID": {
			reason: "The message names the field of the access key id.",
			err:    coded("UnrecognizedClientException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong"),
		},
		"Signature": {
			reason: "The message names the field of the secret access key.",
			err:    coded("InvalidSignatureException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.secretAccessKeySecretRef: "+badSignature),
		},
		"Expired": {
			reason: "The message names the field of the session token.",
			err:    coded("ExpiredTokenException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.sessionTokenSecretRef: the session token has expired"),
		},
		"Throttled": {
			reason: "Each throttling code of AWS is Throttled.",
			err:    coded("ThrottlingException", canary),
			want:   provider.NewError(provider.Throttled, "it: AWS throttles the calls; retrying with back-off"),
		},
		"ThrottledSeconds": {
			reason: "The wait that AWS asks for is passed on.",
			err:    answer(http.StatusBadRequest, "7", &smithy.GenericAPIError{Code: "TooManyRequestsException"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS throttles the calls; retrying with back-off", RetryAfter: 7 * time.Second},
		},
		"ThrottledHours": {
			reason: "A very long wait is capped.",
			err:    answer(http.StatusBadRequest, "2588400", &smithy.GenericAPIError{Code: "TooManyRequestsException"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS throttles the calls; retrying with back-off", RetryAfter: 5 * time.Minute},
		},
		"TooMany": {
			reason: "The HTTP status is enough for Throttled, as a load balancer sends no code.",
			err:    answer(http.StatusTooManyRequests, "7", &smithy.GenericAPIError{Code: "UnknownError"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS throttles the calls; retrying with back-off", RetryAfter: 7 * time.Second},
		},
		"Past": {
			reason: "A date in the past means no wait.",
			err:    answer(http.StatusTooManyRequests, "Mon, 02 Jan 2006 15:04:05 GMT", errors.New(canary)),
			want:   provider.NewError(provider.Throttled, "it: AWS throttles the calls; retrying with back-off"),
		},
		"Missing404": {
			reason: "A 404 without a code is not NotFound, because a proxy can send it.",
			err:    answer(http.StatusNotFound, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS returned status 404"),
		},
		"Redirect": {
			reason: "A redirect is an error and is not followed.",
			err:    answer(http.StatusFound, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS returned status 302"),
		},
		"Status": {
			reason: "A server error is Unavailable.",
			err:    answer(http.StatusBadGateway, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS returned status 502"),
		},
		"Damaged": {
			reason: "An unreadable answer is Unavailable.",
			err:    answer(http.StatusOK, "", &smithy.DeserializationError{Err: errors.New(canary)}),
			want:   provider.NewError(provider.Unavailable, "it: the response of AWS is incomplete or damaged"),
		},
		"Deadline": {
			reason: "A timeout is Unavailable.",
			err:    errors.Wrap(context.DeadlineExceeded, canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS did not answer in time"),
		},
		"Certificate": {
			reason: "An untrusted certificate has its own message.",
			err:    errors.Wrap(&tls.CertificateVerificationError{Err: errors.New(canary)}, canary),
			want:   provider.NewError(provider.Unavailable, "it: the TLS certificate of AWS cannot be verified; check spec.endpoint and the operator's trusted certificates"),
		},
		"Authority": {
			reason: "An unknown authority is named, if the cause is known.",
			err:    errors.Wrap(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, canary),
			want:   provider.NewError(provider.Unavailable, "it: the TLS certificate of AWS is signed by an authority that is not trusted; check spec.endpoint and the operator's trusted certificates"),
		},
		"DNS": {
			reason: "A name that does not resolve has its own message, for example with a wrong region.",
			err:    errors.Wrap(&net.DNSError{Name: "secretsmanager.eu-north-9.amazonaws.com", Err: canary}, canary),
			want:   provider.NewError(provider.Unavailable, `it: cannot resolve the host name "secretsmanager.eu-north-9.amazonaws.com" of AWS; check spec.endpoint, spec.region and DNS`),
		},
		"Unknown": {
			reason: "Only the type of any other error is shown.",
			err:    &smithy.OperationError{Err: errors.New(canary)},
			want:   provider.NewError(provider.Unavailable, "it: the provider's response could not be used (*smithy.OperationError)"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Config{credentialsSource: secretSource, AWS: aws.Config{Region: "eu-north-1"}, role: "arn:aws:iam::111122223333:role/a/b"}
			got := c.Explain(tc.err, "it", serviceCodes)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nExplain(...): -want, +got:\n%s", tc.reason, diff)
			}
			if strings.Contains(got.Error(), canary) {
				t.Errorf("%s\nExplain(...) shows the text of the error: %s", tc.reason, got)
			}
		})
	}
}

func TestCommonCodes(t *testing.T) {
	for code, m := range commonCodes {
		if m.Class == provider.NotFound || m.Class == "" {
			t.Errorf("%s: a code that every service has cannot say that a secret does not exist; class %q", code, m.Class)
		}
		if m.Text == "" {
			t.Errorf("%s: no text", code)
		}
	}
}

// TestExplainAfterCalls checks that a message does not depend on earlier calls. A process that has just started would otherwise
// report the same failure with another text, and write it to the status.
func TestExplainAfterCalls(t *testing.T) {
	c := &Config{AWS: aws.Config{Region: "eu-north-1"}, account: &atomic.Pointer[string]{}}
	failure := coded("ServiceCode", canary)
	before := c.Explain(failure, "it", serviceCodes)
	c.account.Store(aws.String("111122223333"))
	if after := c.Explain(failure, "it", serviceCodes); after.Message != before.Message {
		t.Errorf("the message is %q before the account is known, and then %q", before.Message, after.Message)
	}
}
