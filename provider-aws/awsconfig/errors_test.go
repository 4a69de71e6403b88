package awsconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// answer is an error as the SDK makes it of an HTTP answer.
func answer(status int, retryAfter string, err error) error {
	r := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}}
	return &smithy.OperationError{ServiceID: "Secrets Manager", OperationName: "GetSecretValue",
		Err: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: r}, Err: err}}
}

func coded(code, message string) error {
	return answer(http.StatusBadRequest, "", &smithy.GenericAPIError{Code: code, Message: message})
}

func TestExplain(t *testing.T) {
	const arn = "arn:aws:sts::000000000000:assumed-role/shop/session"
	cases := map[string]struct {
		reason string
		err    error
		want   *provider.Error
	}{
		"Own": {
			reason: "What was classified already stays as it is.",
			err:    errors.Wrap(provider.NewError(provider.Invalid, "auth: no such Secret"), canary),
			want:   provider.NewError(provider.Invalid, "auth: no such Secret"),
		},
		"Service": {
			reason: "A service's own codes are known.",
			err:    coded("ServiceCode", canary),
			want:   provider.NewError(provider.NotFound, "it: does not exist"),
		},
		"OtherService": {
			reason: "A code that no table has is never NotFound, whatever it is called.",
			err:    coded("NoSuchSecretNotFoundException", canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS answers with the error NoSuchSecretNotFoundException"),
		},
		"OddCode": {
			reason: "A code is shown only if it can be one.",
			err:    coded("code with "+canary, canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS answers with status 400"),
		},
		"DeniedAction": {
			reason: "Who was denied what is all that is needed to mend it.",
			err:    coded("AccessDeniedException", "User: "+arn+" is not authorized to perform: secretsmanager:GetSecretValue on resource: "+canary),
			want:   provider.NewError(provider.Denied, "it: "+arn+" may not secretsmanager:GetSecretValue; allow it in a policy"),
		},
		"DeniedKey": {
			reason: "The KMS key is a frequent cause that is not seen in the secret's policy.",
			err:    coded("AccessDeniedException", "Access to KMS is not allowed "+canary),
			want:   provider.NewError(provider.Denied, "it: the KMS key of the secret may not be used; allow kms:Decrypt in a policy and in the key's"),
		},
		"DeniedText": {
			reason: "A text of another form is not shown.",
			err:    coded("AccessDeniedException", canary),
			want:   provider.NewError(provider.Denied, "it: access denied"),
		},
		"KeyID": {
			reason: "The field of the key id is named.",
			err:    coded("UnrecognizedClientException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong"),
		},
		"Signature": {
			reason: "The field of the secret key is named.",
			err:    coded("InvalidSignatureException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.secretAccessKeySecretRef: "+badSignature),
		},
		"Expired": {
			reason: "The field of the session token is named.",
			err:    coded("ExpiredTokenException", canary),
			want:   provider.NewError(provider.Denied, "it: spec.auth.secretRef.sessionTokenSecretRef: the session token has expired"),
		},
		"Throttled": {
			reason: "Every code by which AWS throttles is known.",
			err:    coded("ThrottlingException", canary),
			want:   provider.NewError(provider.Throttled, "it: AWS asks for fewer calls"),
		},
		"ThrottledSeconds": {
			reason: "Where AWS says how long, that is passed on.",
			err:    answer(http.StatusBadRequest, "7", &smithy.GenericAPIError{Code: "TooManyRequestsException"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS asks for fewer calls", RetryAfter: 7 * time.Second},
		},
		"ThrottledHours": {
			reason: "One answer does not stop the store for a month.",
			err:    answer(http.StatusBadRequest, "2588400", &smithy.GenericAPIError{Code: "TooManyRequestsException"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS asks for fewer calls", RetryAfter: 5 * time.Minute},
		},
		"TooMany": {
			reason: "A load balancer throttles by status alone.",
			err:    answer(http.StatusTooManyRequests, "7", &smithy.GenericAPIError{Code: "UnknownError"}),
			want:   &provider.Error{Class: provider.Throttled, Message: "it: AWS asks for fewer calls", RetryAfter: 7 * time.Second},
		},
		"Past": {
			reason: "A date that has passed asks for no wait.",
			err:    answer(http.StatusTooManyRequests, "Mon, 02 Jan 2006 15:04:05 GMT", errors.New(canary)),
			want:   provider.NewError(provider.Throttled, "it: AWS asks for fewer calls"),
		},
		"Missing404": {
			reason: "A bare 404 comes from something in between, and says nothing of the secret.",
			err:    answer(http.StatusNotFound, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS answers with status 404"),
		},
		"Redirect": {
			reason: "A redirect is not followed, and no answer.",
			err:    answer(http.StatusFound, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS answers with status 302"),
		},
		"Status": {
			reason: "A failure of the service proves nothing.",
			err:    answer(http.StatusBadGateway, "", errors.New(canary)),
			want:   provider.NewError(provider.Unavailable, "it: AWS answers with status 502"),
		},
		"Damaged": {
			reason: "An answer that cannot be read proves nothing.",
			err:    answer(http.StatusOK, "", &smithy.DeserializationError{Err: errors.New(canary)}),
			want:   provider.NewError(provider.Unavailable, "it: the answer of AWS is cut off or damaged"),
		},
		"Deadline": {
			reason: "Neither does silence.",
			err:    errors.Wrap(context.DeadlineExceeded, canary),
			want:   provider.NewError(provider.Unavailable, "it: AWS did not answer in time"),
		},
		"Certificate": {
			reason: "A certificate that is not trusted has its own fix.",
			err:    errors.Wrap(&tls.CertificateVerificationError{Err: errors.New(canary)}, canary),
			want:   provider.NewError(provider.Unavailable, "it: the certificate of AWS's address cannot be verified; check spec.endpoint and the operator's trusted certificates"),
		},
		"Authority": {
			reason: "It is told apart from the others, where that is known.",
			err:    errors.Wrap(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, canary),
			want:   provider.NewError(provider.Unavailable, "it: the certificate of AWS's address is signed by an authority that is not trusted; check spec.endpoint and the operator's trusted certificates"),
		},
		"DNS": {
			reason: "So has a name that does not resolve, as with a region that does not exist.",
			err:    errors.Wrap(&net.DNSError{Name: "secretsmanager.eu-north-9.amazonaws.com", Err: canary}, canary),
			want:   provider.NewError(provider.Unavailable, `it: cannot resolve the name of AWS's address "secretsmanager.eu-north-9.amazonaws.com"; check spec.endpoint, spec.region and DNS`),
		},
		"Unknown": {
			reason: "Of any other error only the type is shown.",
			err:    &smithy.OperationError{Err: errors.New(canary)},
			want:   provider.NewError(provider.Unavailable, "it: the provider's answer could not be used (*smithy.OperationError)"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Config{blame: secretBlame}
			got := c.Explain(tc.err, "it", Codes{"ServiceCode": {Class: provider.NotFound, Text: "does not exist"}})
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
