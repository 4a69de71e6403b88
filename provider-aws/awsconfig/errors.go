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

// Explain turns an error of the SDK into a provider.Error. what names the object of the call, such as a secret.
// codes are the error codes of the called service. The SDK's text is not used: it can contain what was sent or
// received.
func (c *Config) Explain(err error, what string, codes Codes) *provider.Error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	e := c.explain(err, codes)
	if e.Class == provider.NotFound && !strings.Contains(what, `"arn:`) { // An ARN has its own region and account.
		text, fix, named := strings.Cut(e.Message, "; ")
		if e.Message = text + " in " + c.where(); named {
			e.Message += "; " + fix
		}
	}
	var l *loginError
	switch {
	case errors.As(err, &l):
		e.Message = l.Error() + ": " + e.Message
	case what != "":
		e.Message = what + ": " + e.Message
	}
	return e
}

// ExplainCode explains an error code inside an otherwise successful answer; see Explain.
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
		// The codes of STSSessionToken are those of a login, too. But no login says that a secret does not exist.
		if m, ok := codes.meaning(api.ErrorCode()); ok && (m.Class != provider.NotFound || CodeOf(err) != "") {
			return c.errorFor(m, api, err)
		}
		if status == http.StatusTooManyRequests {
			return throttled(err)
		}
		return provider.NewError(provider.Unavailable, "AWS returned %s", nameOf(api.ErrorCode(), status))
	case status == http.StatusTooManyRequests:
		return throttled(err)
	case status >= http.StatusMultipleChoices:
		return provider.NewError(provider.Unavailable, "AWS returned status %d", status)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return provider.NewError(provider.Unavailable, "AWS did not answer in time")
	case certificate != "":
		return provider.NewError(provider.Unavailable, "the TLS certificate of AWS %s; check spec.endpoint and the operator's trusted certificates", certificate)
	case errors.As(err, &dns):
		return provider.NewError(provider.Unavailable, "cannot resolve the host name %q of AWS; check spec.endpoint, spec.region and DNS", dns.Name)
	case errors.As(err, &undecodable):
		return provider.NewError(provider.Unavailable, "the response of AWS is incomplete or damaged")
	}
	return provider.Safe(err)
}

// tagSession is the permission to pass session tags.
const tagSession = "sts:TagSession"

func (c *Config) errorFor(m Meaning, api smithy.APIError, err error) *provider.Error {
	var l *loginError
	e := provider.NewError(m.Class, "%s", m.Text)
	switch {
	case m.Class == provider.Throttled:
		e.RetryAfter = retryAfter(err)
	case m.Text == denied && errors.As(err, &l) && l.deniedTags != "" && strings.Contains(api.ErrorMessage(), tagSession):
		e.Message = l.deniedTags
	case m.Text == denied && errors.As(err, &l) && l.denied != "":
		e.Message = l.denied
	case m.Text == denied:
		e.Message = deniedBy(api.ErrorMessage())
	case m.part != noPart && c.credentialsSource[m.part] != "":
		e.Message = c.credentialsSource[m.part] + ": " + m.Text
	}
	return e
}

// where returns the region of the store, and its account if the role names it. It does not depend on earlier calls, because
// a message that changes after each start is written to the status each time.
func (c *Config) where() string {
	region := "region " + c.AWS.Region
	if m := roleAccount.FindStringSubmatch(c.role); m != nil && c.Endpoint == nil {
		return "account " + m[1] + ", " + region
	}
	return region
}

// roleAccount extracts the account from the ARN of a role.
var roleAccount = regexp.MustCompile(`^arn:[\w-]+:iam::([0-9]{12}):role/`)

func throttled(err error) *provider.Error {
	e := provider.NewError(provider.Throttled, "AWS throttles the calls; retrying with back-off")
	e.RetryAfter = retryAfter(err)
	return e
}

var notAuthorized = regexp.MustCompile(`User: (arn:[\w+=,.@:/-]+) is not authorized to perform: ([\w:*-]+)`)

// These are the longest parts of AWS's text that a message shows, in bytes.
const (
	maxUser   = 304
	maxAction = 100
)

// deniedBy extracts from AWS's text which user was denied which action.
func deniedBy(message string) string {
	if m := notAuthorized.FindStringSubmatch(message); m != nil && len(m[1]) <= maxUser {
		return m[1] + " is not allowed to perform " + m[2][:min(len(m[2]), maxAction)] + "; allow it in a policy"
	}
	if strings.Contains(strings.ToUpper(message), "KMS") {
		return "the caller is not allowed to use the KMS key of the secret; allow kms:Decrypt in a policy and in the key policy"
	}
	return denied
}

var plainCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// nameOf returns an unknown code only if it has the form of a code, and otherwise the HTTP status.
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

// retryAfter returns how long AWS asks to wait, or 0 if it does not say.
func retryAfter(err error) time.Duration {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil {
		return 0
	}
	return provider.RetryAfterHeader(r.Response.Header)
}

// CodeOf returns the error code with which the store's own service rejected a call. It is empty for other
// errors, such as those of the login.
func CodeOf(err error) string {
	var l *loginError
	var api smithy.APIError
	if errors.As(err, &l) || !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// IsAccessDenied reports whether a code means a missing permission rather than a failed login.
func IsAccessDenied(code string) bool {
	m, ok := commonCodes[code]
	return ok && m.Class == provider.Denied && m.Text == denied
}

// IsExpired reports whether a code means that a session has expired.
func IsExpired(code string) bool { return code != "" && commonCodes[code].Text == expired }
