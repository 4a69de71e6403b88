package emulator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// These are the names of the logins in Call.Method and Fault.Method.
const (
	// MethodToken returns an access token for an assertion signed with the key of a service account.
	MethodToken = "Token"
	// MethodExchange returns an access token for a token of another issuer.
	MethodExchange = "ExchangeToken"
	// MethodImpersonate returns an access token of a service account.
	MethodImpersonate = "GenerateAccessToken"
	// MethodMetadata returns the access token of the machine, like the metadata server.
	MethodMetadata = "MetadataToken"

	tokenPath       = "/token"
	tokenLifetime   = time.Hour
	maxForm         = 1 << 20
	maxAssertion    = time.Hour + time.Minute
	grantJWT        = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	typeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	scopeAll        = "https://www.googleapis.com/auth/cloud-platform"
)

// A refusal is the error of a login.
type refusal struct {
	status            int
	code, description string
	google            bool // in the format of Google's APIs, not of OAuth
}

func (r *refusal) body() any {
	if r.google {
		return map[string]any{"error": map[string]any{"code": r.status, "message": r.description, "status": r.code}}
	}
	return map[string]string{"error": r.code, "error_description": r.description}
}

func grant(code, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, code: code, description: fmt.Sprintf(format, args...)}
}

func (s *Server) logins() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+tokenPath, s.login(MethodToken, s.token))
	mux.Handle("POST /v1/token", s.login(MethodExchange, s.exchange))
	mux.Handle("POST /v1/projects/-/serviceAccounts/{account}", s.login(MethodImpersonate, s.impersonate))
	mux.Handle("GET /computeMetadata/v1/instance/service-accounts/default/token", s.login(MethodMetadata, s.metadata))
	return mux
}

// login counts a login, applies injected faults, and answers it.
func (s *Server) login(method string, give func(*http.Request) (map[string]any, *refusal)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Record(Call{Time: s.now(), Method: method, Name: r.PathValue("account")})
		fault, err := s.suffer(r.Context(), method, "")
		if err != nil {
			s.fail(r.Context(), w, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		answer, no := give(r)
		if no != nil {
			write(w, no.status, no.body())
			return
		}
		if fault.Body == BodyNoExpiry {
			delete(answer, "expires_in")
			delete(answer, "expireTime")
		}
		write(w, http.StatusOK, answer)
	})
}

// httpStatus follows https://cloud.google.com/apis/design/errors.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:   http.StatusBadRequest,
	codes.Unauthenticated:   http.StatusUnauthorized,
	codes.PermissionDenied:  http.StatusForbidden,
	codes.NotFound:          http.StatusNotFound,
	codes.ResourceExhausted: http.StatusTooManyRequests,
	codes.Unavailable:       http.StatusServiceUnavailable,
	codes.DeadlineExceeded:  http.StatusGatewayTimeout,
}

func (s *Server) fail(ctx context.Context, w http.ResponseWriter, err error) {
	if ctx.Err() != nil {
		return // the client no longer waits for an answer
	}
	answer, ok := httpStatus[status.Code(err)]
	if !ok {
		answer = http.StatusInternalServerError
	}
	no := refusal{status: answer, code: code.Code(status.Code(err)).String(), description: status.Convert(err).Message(), google: true}
	write(w, answer, no.body())
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have closed the connection
}

// give issues an access token.
func (s *Server) give(caller string, lifetime time.Duration, scopes []string) (token string, expires time.Time) {
	token, expires = "ya29."+rand.Text(), s.now().Add(lifetime)
	s.AddToken(token, caller, expires, scopes...)
	return token, expires
}

func (s *Server) granted(caller string, scopes []string) map[string]any {
	token, _ := s.give(caller, tokenLifetime, scopes)
	return map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLifetime.Seconds())}
}

// known reports whether the list is not empty and Google has all these scopes.
func known(scopes []string) bool {
	return len(scopes) > 0 && !slices.ContainsFunc(scopes, func(s string) bool {
		return !strings.HasPrefix(s, "https://www.googleapis.com/auth/") && s != "openid" && s != "email" && s != "profile"
	})
}

func (s *Server) token(r *http.Request) (map[string]any, *refusal) {
	if r.PostFormValue("grant_type") != grantJWT {
		return nil, grant("unsupported_grant_type", "Invalid grant_type: %s", r.PostFormValue("grant_type"))
	}
	assertion := r.PostFormValue("assertion")
	c, ok := fake.ParseToken(assertion)
	if !ok {
		return nil, grant("invalid_grant", "Invalid JWT: Failed audience check. The right format is three base64url parts")
	}
	account, key := s.identities.hasKey(c.Issuer, c.KeyID)
	issued, expires := time.Unix(int64(c.Issued), 0), time.Unix(int64(c.Expires), 0)
	switch {
	case !account:
		return nil, grant("invalid_grant", "Invalid grant: account not found")
	case !key || !signed(assertion):
		return nil, grant("invalid_grant", "Invalid JWT Signature.")
	case !slices.Contains(c.Audience, s.URL()+tokenPath):
		return nil, grant("invalid_grant", "Invalid JWT: Failed audience check")
	case !s.now().Before(expires) || expires.Sub(issued) > maxAssertion:
		return nil, grant("invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.")
	case !known(strings.Fields(c.Scope)):
		return nil, grant("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
	}
	return s.granted(c.Issuer, strings.Fields(c.Scope)), nil
}

func (s *Server) exchange(r *http.Request) (map[string]any, *refusal) {
	kind, scopes := r.PostFormValue("subject_token_type"), strings.Fields(r.PostFormValue("scope"))
	switch {
	case r.PostFormValue("grant_type") != grantExchange:
		return nil, grant("unsupported_grant_type", "Invalid grant_type: %s", r.PostFormValue("grant_type"))
	case r.PostFormValue("requested_token_type") != typeAccessToken || kind != typeJWT && kind != typeIDToken:
		return nil, grant("invalid_request", "The token types are not supported")
	case !known(scopes):
		return nil, grant("invalid_scope", "A scope that exists is required")
	}
	p, ok := s.identities.provider(r.PostFormValue("audience"))
	if !ok {
		return nil, grant("invalid_target", `The target service indicated by the "audience" parameters is invalid. This might either be because the pool or provider is disabled or deleted or because it doesn't exist.`)
	}
	subject := r.PostFormValue("subject_token")
	c, ok := fake.ParseToken(subject)
	switch {
	case !ok || s.verifyToken != nil && s.verifyToken(subject) != nil:
		return nil, grant("invalid_grant", "Error connecting to the given credential's issuer.")
	case s.now().Unix() >= int64(c.Expires):
		return nil, grant("invalid_grant", "ID Token issued at %s is stale to sign-in.", strconv.FormatInt(int64(c.Issued), 10))
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(p.TokenAudiences, a) }):
		return nil, grant("invalid_grant", "The audience in ID Token [%s] does not match the expected audience.", strings.Join(c.Audience, ","))
	case p.Subjects != nil && !slices.ContainsFunc(p.Subjects, func(g string) bool { return matches(g, c.Subject) }):
		return nil, grant("unauthorized_client", "The given credential is rejected by the attribute condition.")
	}
	answer := s.granted(c.Subject, scopes)
	answer["issued_token_type"] = typeAccessToken
	return answer, nil
}

func (s *Server) impersonate(r *http.Request) (map[string]any, *refusal) {
	email, ok := strings.CutSuffix(r.PathValue("account"), ":generateAccessToken")
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	holder, isToken := s.identities.lookupToken(token, s.now())
	exists, allowed := s.identities.mayImpersonate(holder.caller, email)
	var in struct {
		Scope    []string `json:"scope"`
		Lifetime string   `json:"lifetime"`
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	lifetime, notDuration := time.ParseDuration(in.Lifetime)
	switch {
	case !ok:
		return nil, &refusal{http.StatusNotFound, "NOT_FOUND", "Method not found.", true}
	case !isToken:
		return nil, &refusal{http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.", true}
	case !holder.forAll():
		return nil, &refusal{http.StatusForbidden, "PERMISSION_DENIED", "Request had insufficient authentication scopes.", true}
	case err != nil || notDuration != nil || !known(in.Scope) || lifetime <= 0 || lifetime > time.Hour:
		return nil, &refusal{http.StatusBadRequest, "INVALID_ARGUMENT", "Request contains an invalid argument.", true}
	case !exists:
		return nil, &refusal{http.StatusNotFound, "NOT_FOUND", "Not found; Gaia id not found for email " + email, true}
	case !allowed:
		return nil, &refusal{http.StatusForbidden, "PERMISSION_DENIED", "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).", true}
	}
	given, expires := s.give(email, min(lifetime, tokenLifetime), in.Scope)
	return map[string]any{"accessToken": given, "expireTime": expires.UTC().Format(time.RFC3339)}, nil
}
