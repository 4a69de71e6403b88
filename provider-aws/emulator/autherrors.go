package emulator

import (
	"net/http"
	"time"
)

// The front end in front of each service checks signatures. It answers JSON
// services and query services with different codes.
var queryCodes = map[string]string{
	"ExpiredToken":          "ExpiredTokenException",
	"IncompleteSignature":   "IncompleteSignatureException",
	"InvalidClientTokenId":  "UnrecognizedClientException",
	"MissingAuthentication": "MissingAuthenticationTokenException",
	"SignatureDoesNotMatch": "InvalidSignatureException",
}

// codeFor translates a code of the query protocol for the service at hand.
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

// unknownClient is also what temporary credentials without their session
// token, or with another one, are told.
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
