package emulator

import (
	"net/http"
	"time"
)

// AWS checks signatures before a request reaches the service. The error codes differ between JSON services and
// query services.
var queryCodes = map[string]string{
	"ExpiredToken":          "ExpiredTokenException",
	"IncompleteSignature":   "IncompleteSignatureException",
	"InvalidClientTokenId":  "UnrecognizedClientException",
	"MissingAuthentication": "MissingAuthenticationTokenException",
	"SignatureDoesNotMatch": "InvalidSignatureException",
}

// codeFor translates an error code of the query protocol into that of a service.
func codeFor(s service, code string) string {
	if _, ok := s.(*jsonService); ok {
		return queryCodes[code]
	}
	if code == "MissingAuthentication" {
		return "MissingAuthenticationToken"
	}
	return code
}

func authError(s service, code, message string) *apiError {
	e := &apiError{Status: http.StatusForbidden, Code: codeFor(s, code), Message: message}
	if _, ok := s.(*jsonService); ok {
		e.Status = http.StatusBadRequest
	}
	return e
}

func missingAuthentication(s service) *apiError {
	return authError(s, "MissingAuthentication", "Request is missing Authentication Token")
}

// unknownClient is also the error for temporary credentials with a missing or wrong session token.
func unknownClient(s service) *apiError {
	return authError(s, "InvalidClientTokenId", "The security token included in the request is invalid.")
}

func expiredSession(s service) *apiError {
	return authError(s, "ExpiredToken", "The security token included in the request is expired")
}

func wrongSignature(s service) *apiError {
	return authError(s, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. "+
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
}

func staleSignature(s service, at time.Time) *apiError {
	return authError(s, "SignatureDoesNotMatch", "Signature expired: "+at.Format(amzDate)+
		" is not within 5 minutes of "+time.Now().UTC().Format(amzDate))
}
