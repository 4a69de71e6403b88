package emulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const (
	signatureAlgorithm = "AWS4-HMAC-SHA256"
	amzDate            = "20060102T150405Z"

	// maxSkew is the maximum difference between the time of a signature and the present time.
	maxSkew = 5 * time.Minute
)

// A signature is the parsed Authorization header of Signature Version 4.
type signature struct {
	accessKeyID string
	region      string
	service     string
	headers     []string
	signature   string
}

// parseSignature returns the zero signature for another header.
func parseSignature(header string) (s signature) {
	rest, _ := strings.CutPrefix(header, signatureAlgorithm)
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			if scope := strings.Split(value, "/"); len(scope) == 5 {
				s.accessKeyID, s.region, s.service = scope[0], scope[2], scope[3]
			}
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.signature = value
		}
	}
	return s
}

func accessKeyOf(r *http.Request) string {
	return parseSignature(r.Header.Get("Authorization")).accessKeyID
}

// authError is an error before the request reaches the service. Its code differs between JSON services and query services.
func authError(s service, query, json, message string) *apiError {
	if _, ok := s.(*jsonService); ok {
		return badRequest(json, "%s", message)
	}
	return &apiError{Status: http.StatusForbidden, Code: query, Message: message}
}

// authenticate returns the principal that signed a request. It signs the request again with the key of that
// principal, and compares the signatures. A missing or wrong session token is an unknown client.
func (e *Emulator) authenticate(q *request) (*principal, error) {
	h := q.http.Header
	s := parseSignature(h.Get("Authorization"))
	p := e.identities.principal(s.accessKeyID)
	if p == nil || subtle.ConstantTimeCompare([]byte(p.sessionToken), []byte(h.Get("X-Amz-Security-Token"))) == 0 {
		return nil, authError(q.service, "InvalidClientTokenId", "UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	if p.expired(e.now()) {
		return nil, authError(q.service, "ExpiredToken", "ExpiredTokenException", "The security token included in the request is expired")
	}
	at, err := time.Parse(amzDate, h.Get("X-Amz-Date"))
	valid := err == nil && time.Since(at).Abs() <= maxSkew && s.service == q.service.name()
	if !valid || subtle.ConstantTimeCompare([]byte(p.sign(q, s, at)), []byte(s.signature)) == 0 {
		return nil, authError(q.service, "SignatureDoesNotMatch", "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return p, nil
}

// canonical removes redundant slashes and relative parts of a path, as AWS does for all services but S3; see
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. Vault, for
// example, signs / and sends the request to //.
func canonical(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// sign returns the signature that the request should have.
func (p *principal) sign(q *request, s signature, at time.Time) string {
	again := &http.Request{
		Method: q.http.Method,
		Host:   q.http.Host,
		URL: &url.URL{
			Scheme: "http", Host: q.http.Host,
			Path: canonical(q.http.URL.Path), RawPath: canonical(q.http.URL.RawPath), RawQuery: q.http.URL.RawQuery,
		},
		Header: http.Header{},
	}
	for _, name := range s.headers {
		switch name {
		case "host":
		case "content-length":
			n, err := strconv.ParseInt(q.http.Header.Get("Content-Length"), 10, 64)
			if err != nil {
				n = q.http.ContentLength
			}
			again.ContentLength = n
		default:
			again.Header[http.CanonicalHeaderKey(name)] = q.http.Header.Values(name)
		}
	}
	credentials := aws.Credentials{AccessKeyID: s.accessKeyID, SecretAccessKey: p.secretAccessKey, SessionToken: p.sessionToken}
	hash := sha256.Sum256(q.body)
	if err := p.signer.SignHTTP(q.ctx, credentials, again, hex.EncodeToString(hash[:]), s.service, s.region, at); err != nil {
		return ""
	}
	return parseSignature(again.Header.Get("Authorization")).signature
}
