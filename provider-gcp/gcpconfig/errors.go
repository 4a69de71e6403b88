package gcpconfig

import (
	"regexp"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Meaning explains an error of Google: its class, what is wrong, and how to fix it. Google's own text is
// never shown.
type Meaning struct {
	Class provider.Class
	Text  string
}

// Meanings are the errors of a service that mean something else than those of Secret Manager, by their reason, or by the name of
// their code.
type Meanings map[string]Meaning

// These are reasons that Google gives only in the text of an error; see textReasonOf.
const (
	disabled  = "DISABLED"
	destroyed = "DESTROYED"
	noKey     = "NO_KEY"
	// Missing is the reason of a NotFound that is about the secret, or a version or an alias of it.
	Missing = "MISSING"
	// Elsewhere is the reason of a NotFound that is about the project or the location.
	Elsewhere = "NOT_A_SECRET"
	// Expired is the reason of an error that is about expired receipts of messages.
	Expired = "EXPIRED"
)

// textReasons are the meanings of these reasons. A reason that Google sends as such is never one of them.
var textReasons = map[string]Meaning{
	Elsewhere: {provider.Invalid, "spec.projectID, spec.location: the project or location does not exist at Google"},
	Expired:   {provider.Unavailable, "the receipts of messages have expired; the messages come again"},
	disabled:  {provider.Invalid, "is disabled; enable it, or add a version"},
	destroyed: {provider.NotFound, "is destroyed"},
	Missing:   {provider.NotFound, "does not exist"},
	noKey:     {provider.Invalid, "its KMS key does not exist; restore the key, or add a version with another one"},
}

// reasons are more precise than codes. They are those of https://cloud.google.com/apis/design/errors and
// package googleapis/api/error_reason.proto. An error of the project does not mean that a secret is missing.
var reasons = map[string]Meaning{
	"SERVICE_DISABLED":                {provider.Invalid, "spec.projectID: the Secret Manager API is not enabled in the project; enable secretmanager.googleapis.com"},
	"API_NOT_ACTIVATED":               {provider.Invalid, "spec.projectID: the Secret Manager API is not enabled in the project; enable secretmanager.googleapis.com"},
	"CONSUMER_INVALID":                {provider.Invalid, "spec.projectID: the project does not exist, or the caller has no access to it"},
	"RESOURCE_PROJECT_INVALID":        {provider.Invalid, "spec.projectID: the project does not exist, or the caller has no access to it"},
	"USER_PROJECT_DENIED":             {provider.Denied, "spec.projectID: the caller has no permission to use services of the project; grant it roles/serviceusage.serviceUsageConsumer"},
	"CONSUMER_SUSPENDED":              {provider.Invalid, "spec.projectID: the project is suspended"},
	"BILLING_DISABLED":                {provider.Invalid, "spec.projectID: billing is not enabled in the project"},
	"LOCATION_POLICY_VIOLATED":        {provider.Invalid, "spec.location: the organization does not allow the location"},
	"ACCESS_TOKEN_SCOPE_INSUFFICIENT": {provider.Denied, "the access token is not for Secret Manager"},
	"ACCOUNT_STATE_INVALID":           {provider.Denied, "the caller's account is disabled or deleted"},
	"RATE_LIMIT_EXCEEDED":             {provider.Throttled, throttled},
	"RESOURCE_QUOTA_EXCEEDED":         {provider.Throttled, throttled},
}

// byCode applies to errors without a reason in the tables above. Any other code is Unavailable. A code alone is never NotFound: Google
// passes on that of other services, such as Cloud KMS.
var byCode = map[codes.Code]Meaning{
	codes.NotFound:           {provider.Unavailable, "Google does not find something other than the secret"},
	codes.PermissionDenied:   {provider.Denied, denied},
	codes.Unauthenticated:    {provider.Denied, "Google does not accept the access token of the identity in spec.auth"},
	codes.ResourceExhausted:  {provider.Throttled, throttled},
	codes.InvalidArgument:    {provider.Invalid, "Google rejects the request as invalid; check the spec"},
	codes.OutOfRange:         {provider.Invalid, "Google rejects the request as invalid; check the spec"},
	codes.AlreadyExists:      {provider.Conflict, "exists already"},
	codes.Aborted:            {provider.Unavailable, "Google aborted the call; retrying"},
	codes.FailedPrecondition: {provider.Unavailable, "Google refuses the call in the current state of the secret"},
	codes.Unimplemented:      {provider.Unavailable, "the response is not from Secret Manager; check spec.endpoint"},
	codes.DeadlineExceeded:   {provider.Unavailable, "Google did not answer in time"},
	codes.Canceled:           {provider.Unavailable, "Google did not answer in time"},
	codes.Internal:           {provider.Unavailable, "Google has an internal error"},
	codes.DataLoss:           {provider.Unavailable, "the response of Google is damaged"},
}

const (
	denied    = "access denied"
	throttled = "Google throttles the calls; retrying with back-off"
)

// Explain turns the error of a call into a provider.Error. what names the object of the call, such as a secret.
// Google's text is not used: it can contain what was sent or received.
func Explain(err error, what string) *provider.Error { return Meanings(nil).Explain(err, what) }

// Explain is Explain for the calls of a service.
func (m Meanings) Explain(err error, what string) *provider.Error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	e := m.explain(err)
	if what != "" {
		e.Message = what + ": " + e.Message
	}
	return e
}

func (m Meanings) explain(err error) *provider.Error {
	code := codeOf(err)
	if IsTooLarge(err) {
		return provider.NewError(provider.Unavailable, "the response of Google is too large, or damaged; check spec.endpoint")
	}
	if code == codes.OK || code == codes.Unavailable {
		return explainTransport(err)
	}
	s := status.Convert(err)
	info := infoOf(s)
	is, ok := m.of(reasonOf(s, info), code)
	if !ok {
		return provider.NewError(provider.Unavailable, "Google returned the error %s", code)
	}
	e := provider.NewError(is.Class, "%s", is.Text)
	switch {
	case is.Class == provider.Throttled:
		e.RetryAfter = retryAfter(err)
	case is.Text == denied:
		e.Message = deniedBy(s, info)
	}
	return e
}

// of returns the meaning of a reason, or else of a code.
func (m Meanings) of(reason string, code codes.Code) (is Meaning, ok bool) {
	if is, ok = m[reason]; ok {
		return is, true
	}
	if is, ok = reasons[reason]; ok {
		return is, true
	}
	if is, ok = textReasons[reason]; ok {
		return is, true
	}
	if is, ok = m[code.String()]; ok {
		return is, true
	}
	is, ok = byCode[code]
	return is, ok
}

// IsTooLarge reports whether gRPC itself, not a server, rejected an answer beyond provider.MaxAnswer. gRPC uses
// the code of an exhausted quota for that, also for noise that it takes for a large answer.
func IsTooLarge(err error) bool {
	return codeOf(err) == codes.ResourceExhausted && strings.HasPrefix(status.Convert(err).Message(), "grpc: received message larger than max")
}

// explainTransport explains calls without an answer. It uses the text only to find the kind of failure.
func explainTransport(err error) *provider.Error {
	text, certificate := err.Error(), provider.CertificateFaultOf(err)
	switch {
	case isEndOfTime(err):
		return provider.NewError(provider.Unavailable, "Google did not answer in time")
	case certificate != "":
		return provider.NewError(provider.Unavailable, "the TLS certificate of Google %s; check spec.endpoint and the operator's trusted certificates", certificate)
	case codeOf(err) != codes.Unavailable:
		return provider.Safe(err)
	case strings.Contains(text, "lookup ") || strings.Contains(text, "produced zero addresses"):
		return provider.NewError(provider.Unavailable, "cannot resolve the host name of Google; check spec.endpoint, spec.location and DNS")
	case strings.Contains(text, "connection refused"):
		return provider.NewError(provider.Unavailable, "cannot reach Google: the connection is refused")
	}
	return provider.NewError(provider.Unavailable, "Google is not available")
}

var (
	inState   = regexp.MustCompile(`^Secret Version \[[^\]]*\] is in (DISABLED|DESTROYED) state\b`)
	ofSecret  = regexp.MustCompile(`^Secret (|Version |Version alias )\[`)
	ofKey     = regexp.MustCompile(`^(CryptoKey|CryptoKeyVersion|KeyRing)\b`)
	ofReceipt = regexp.MustCompile(`^Some acknowledgement ids\b`)
	resource  = regexp.MustCompile(`\[[^\]]*\]|\([^)]*\)|\bSecret Manager\b`)
	notOfIt   = regexp.MustCompile(`(?i)\b(project|location|region|consumer|service)\b`)
)

// reasonOf returns Google's reason, or one that it derives from Google's text.
func reasonOf(s *status.Status, info *errdetails.ErrorInfo) string {
	if _, known := reasons[info.GetReason()]; known {
		return info.GetReason()
	}
	return textReasonOf(s)
}

// textReasonOf returns the reason that the text of an error gives. Only a text that begins with the missing secret, version or alias
// says that it does not exist.
func textReasonOf(s *status.Status) string {
	text := s.Message()
	switch s.Code() {
	case codes.FailedPrecondition:
		if m := inState.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	case codes.InvalidArgument:
		if ofReceipt.MatchString(text) {
			return Expired
		}
	case codes.NotFound:
		switch {
		case ofSecret.MatchString(text):
			return Missing
		case ofKey.MatchString(text):
			return noKey
		case notOfIt.MatchString(resource.ReplaceAllString(text, "")):
			return Elsewhere
		}
	}
	return ""
}

func infoOf(s *status.Status) *errdetails.ErrorInfo {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

var permission = regexp.MustCompile(`\b(secretmanager\.[a-zA-Z]{1,40}\.[a-zA-Z]{1,40})\b`)

// deniedBy extracts the missing permission from Google's text.
func deniedBy(s *status.Status, info *errdetails.ErrorInfo) string {
	for _, text := range []string{info.GetMetadata()["permission"], resource.ReplaceAllString(s.Message(), "")} {
		if m := permission.FindString(text); m != "" && m != "secretmanager.googleapis.com" {
			return denied + ": the caller lacks " + m + "; grant it " + roleFor(m)
		}
	}
	return denied
}

// roleFor returns the smallest predefined role of Google that contains a permission.
func roleFor(permission string) string {
	switch permission {
	case "secretmanager.secrets.create", "secretmanager.secrets.update", "secretmanager.secrets.delete":
		return "roles/secretmanager.admin, or a custom role with it"
	case "secretmanager.versions.add":
		return "roles/secretmanager.secretVersionAdder"
	}
	return "roles/secretmanager.secretAccessor, or roles/secretmanager.viewer for lists and metadata"
}

// retryAfter returns how long Google asks to wait, or 0 if it does not say.
func retryAfter(err error) time.Duration {
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return 0
	}
	for _, d := range s.GRPCStatus().Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			return min(max(0, r.GetRetryDelay().AsDuration()), provider.MaxRetryAfter)
		}
	}
	return 0
}

// IsDisabled reports whether the call was for the value of a disabled version.
func IsDisabled(err error) bool {
	s := status.Convert(err)
	return !isOwn(err) && codeOf(err) == codes.FailedPrecondition && reasonOf(s, infoOf(s)) == disabled
}

// IsChanged reports whether a change was rejected because the object is not in the state that the caller
// expected: the etag does not match, or another writer changes it at the same time.
func IsChanged(err error) bool {
	s := status.Convert(err)
	code := codeOf(err)
	return !isOwn(err) && (code == codes.FailedPrecondition || code == codes.Aborted) && reasonOf(s, infoOf(s)) == ""
}

// IsPermissionMissing reports whether the login works, but a permission is missing.
func IsPermissionMissing(err error) bool {
	return codeOf(err) == codes.PermissionDenied && !isOwn(err) && strings.HasPrefix(Explain(err, "").Message, denied)
}

// IsExpired reports whether a call was rejected because receipts of messages have expired. Pub/Sub does so only with exactly-once
// delivery.
func IsExpired(err error) bool { return !isOwn(err) && textReasonOf(status.Convert(err)) == Expired }

func isOwn(err error) bool {
	var own *provider.Error
	return errors.As(err, &own)
}
