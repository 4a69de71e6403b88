package awsconfig

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Explain turns an error of the SDK into one of package store. what names the thing that was asked
// for, such as a secret; codes are those of the service at hand. The text of the SDK is not used: it
// may hold what was sent or received.
func (c *Config) Explain(err error, what string, codes Codes) *provider.Error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	e := c.explain(err, codes)
	var l *loginError
	switch {
	case errors.As(err, &l):
		e.Message = l.Error() + ": " + e.Message
	case what != "":
		e.Message = what + ": " + e.Message
	}
	return e
}

// ExplainCode does the same for an error that came inside an answer.
func (c *Config) ExplainCode(code, message, what string, codes Codes) *provider.Error {
	return c.Explain(&smithy.GenericAPIError{Code: code, Message: message}, what, codes)
}

func (c *Config) explain(err error, codes Codes) *provider.Error {
	var api smithy.APIError
	var undecodable *smithy.DeserializationError
	var dns *net.DNSError
	status, certificate := statusOf(err), provider.CertificateFaultOf(err)
	switch {
	case errors.As(err, &api):
		if m, ok := codes.meaning(api.ErrorCode()); ok {
			return c.tell(m, api, err)
		}
		if status == http.StatusTooManyRequests {
			return throttled(err)
		}
		return provider.NewError(provider.Unavailable, "AWS answers with %s", nameOf(api.ErrorCode(), status))
	case status == http.StatusTooManyRequests:
		return throttled(err)
	case status >= http.StatusMultipleChoices:
		return provider.NewError(provider.Unavailable, "AWS answers with status %d", status)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return provider.NewError(provider.Unavailable, "AWS did not answer in time")
	case certificate != "":
		return provider.NewError(provider.Unavailable, "the certificate of AWS's address %s; check spec.endpoint and the operator's trusted certificates", certificate)
	case errors.As(err, &dns):
		return provider.NewError(provider.Unavailable, "cannot resolve the name of AWS's address %q; check spec.endpoint, spec.region and DNS", dns.Name)
	case errors.As(err, &undecodable):
		return provider.NewError(provider.Unavailable, "the answer of AWS is cut off or damaged")
	}
	return provider.Safe(err)
}

func (c *Config) tell(m Meaning, api smithy.APIError, err error) *provider.Error {
	var l *loginError
	e := provider.NewError(m.Class, "%s", m.Text)
	switch {
	case m.Class == provider.Throttled:
		e.RetryAfter = retryAfter(err)
	case m.Text == denied && errors.As(err, &l):
		e.Message = "the caller may not assume it; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)"
	case m.Text == denied:
		e.Message = deniedBy(api.ErrorMessage())
	case m.part != noPart && c.blame[m.part] != "":
		e.Message = c.blame[m.part] + ": " + m.Text
	}
	return e
}

func throttled(err error) *provider.Error {
	e := provider.NewError(provider.Throttled, "AWS asks for fewer calls")
	e.RetryAfter = retryAfter(err)
	return e
}

var notAuthorized = regexp.MustCompile(`User: (arn:[\w+=,.@:/-]+) is not authorized to perform: ([\w:*-]+)`)

// Bounds of what is shown of AWS's text, in bytes.
const (
	maxUser   = 304
	maxAction = 100
)

// deniedBy keeps who was denied what of AWS's text.
func deniedBy(message string) string {
	if m := notAuthorized.FindStringSubmatch(message); m != nil && len(m[1]) <= maxUser {
		return m[1] + " may not " + m[2][:min(len(m[2]), maxAction)] + "; allow it in a policy"
	}
	if strings.Contains(strings.ToUpper(message), "KMS") {
		return "the KMS key of the secret may not be used; allow kms:Decrypt in a policy and in the key's"
	}
	return denied
}

var plainCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// nameOf shows an unknown code only if it looks like one.
func nameOf(code string, status int) string {
	if plainCode.MatchString(code) && code != "UnknownError" {
		return "the error " + code
	}
	return "status " + strconv.Itoa(status)
}

func statusOf(err error) int {
	var r *smithyhttp.ResponseError
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// retryAfter is how long AWS asks to wait; 0 if it does not say.
func retryAfter(err error) time.Duration {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil {
		return 0
	}
	return provider.RetryAfterHeader(r.Response.Header)
}

// CodeOf returns the error code with which the store's own service, not the login before it,
// refused a call; empty if it did not.
func CodeOf(err error) string {
	var l *loginError
	var api smithy.APIError
	if errors.As(err, &l) || !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// IsAccessDenied reports whether a code says that a permission is missing, and not that the login
// failed.
func IsAccessDenied(code string) bool {
	m, ok := commonCodes[code]
	return ok && m.Class == provider.Denied && m.Text == denied
}

// IsExpired reports whether a code says that a session has ended.
func IsExpired(code string) bool { return code != "" && commonCodes[code].Text == expired }
