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

func parseSignature(header string) (signature, bool) {
	rest, ok := strings.CutPrefix(header, signatureAlgorithm)
	if !ok {
		return signature{}, false
	}
	var s signature
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			scope := strings.Split(value, "/")
			if len(scope) != 5 {
				return signature{}, false
			}
			s.accessKeyID, s.region, s.service = scope[0], scope[2], scope[3]
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.signature = value
		}
	}
	return s, s.accessKeyID != "" && len(s.headers) > 0 && s.signature != ""
}

func accessKeyOf(r *http.Request) string {
	s, _ := parseSignature(r.Header.Get("Authorization"))
	return s.accessKeyID
}

// authenticate returns the principal that signed a request. It signs the request again with the key of that
// principal, and compares the signatures.
func (e *Emulator) authenticate(q *request) (*principal, error) {
	h := q.http.Header
	if h.Get("Authorization") == "" {
		return nil, missingAuthentication(q.service)
	}
	s, ok := parseSignature(h.Get("Authorization"))
	if !ok {
		return nil, badRequest(codeFor(q.service, "IncompleteSignature"), "The request signature does not conform to AWS standards.")
	}
	p := e.identities.principal(s.accessKeyID)
	if p == nil || subtle.ConstantTimeCompare([]byte(p.sessionToken), []byte(h.Get("X-Amz-Security-Token"))) == 0 {
		return nil, unknownClient(q.service)
	}
	if p.expired(e.now()) {
		return nil, expiredSession(q.service)
	}
	at, err := time.Parse(amzDate, h.Get("X-Amz-Date"))
	if err != nil || s.service != q.service.name() {
		return nil, wrongSignature(q.service)
	}
	if d := time.Since(at); d > maxSkew || d < -maxSkew {
		return nil, staleSignature(q.service, at)
	}
	want, err := p.sign(q, s, at)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(want), []byte(s.signature)) == 0 {
		return nil, wrongSignature(q.service)
	}
	return p, nil
}

// canonical removes redundant slashes and relative parts of a path, as AWS does for all services but S3; see
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. Vault, for
// example, signs / and sends the request to //.
func canonical(p string) string {
	c := path.Clean(p)
	switch {
	case p == "":
		return ""
	case c != "/" && strings.HasSuffix(p, "/"):
		return c + "/"
	}
	return c
}

// sign returns the signature that the request should have.
func (p *principal) sign(q *request, s signature, at time.Time) (string, error) {
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
		return "", err
	}
	signed, _ := parseSignature(again.Header.Get("Authorization"))
	return signed.signature, nil
}
