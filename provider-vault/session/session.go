package session

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Session is the result of a login.
type Session struct {
	// Secrets is the client for the namespace of the secrets, Tokens for that of the auth method.
	Secrets, Tokens *api.Client

	server *server
	token  token
	since  time.Time
	// own is set for a token that was created for this session, and is revoked with it.
	own bool

	// ends is when the token expires, in nanoseconds since 1970, as far as is known; 0 means never.
	ends atomic.Int64
	// used is set once credentials depend on the token, which must therefore outlive the session.
	used atomic.Bool
	// worked is set once Vault has accepted the token.
	worked atomic.Bool
	// proven is when Vault last confirmed the token, in nanoseconds since 1970.
	proven atomic.Int64
}

// A token holds Vault's description of a token.
type token struct {
	accessor string // empty for a batch token
	// lease is the remaining validity; 0 means that the token does not expire.
	lease     time.Duration
	renewable bool
	// uses is the remaining number of uses; 0 means unlimited.
	uses int64
}

// An Answer is Vault's answer to a successful request, or to one for a path where nothing is stored.
type Answer struct {
	Auth *Grant `json:"auth"`

	LeaseID string `json:"lease_id"`       // empty if there is no lease
	Lease   int64  `json:"lease_duration"` // seconds

	// Raw is the complete answer.
	Raw json.RawMessage `json:"-"`
}

var errNoData = errors.New("the response of Vault has no data")

// Data decodes the data of an answer, and returns an error if there is none. It makes no intermediate copy,
// because the data can be large.
func Data[T any](a Answer) (data T, _ error) {
	var all struct {
		Data *T `json:"data"`
	}
	if err := json.Unmarshal(a.Raw, &all); err != nil {
		return data, err
	}
	if all.Data == nil {
		return data, errNoData
	}
	return *all.Data, nil
}

// A Grant is the part of an answer that contains a token.
type Grant struct {
	Token     string `json:"client_token"`
	Accessor  string `json:"accessor"`
	Lease     int64  `json:"lease_duration"` // seconds; 0 means that the token does not expire
	Renewable bool   `json:"renewable"`
	Uses      int64  `json:"num_uses"`
	// Orphan is set for a token that does not depend on the token that created it.
	Orphan bool `json:"orphan"`
}

func (g *Grant) of() token {
	return token{accessor: g.Accessor, lease: seconds(g.Lease), renewable: g.Renewable, uses: g.Uses}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Send sends one request, and its retries, with a method of the SDK that returns the server's answer.
func Send(ctx context.Context, request func(context.Context) (*api.Response, error)) (Answer, error) {
	ctx, lastError := provider.KeepLastError(ctx)
	a, err := decode(request(ctx))
	return a, lastError.Or(err)
}

// Read sends a GET to a path below v1/.
func Read(ctx context.Context, c *api.Client, path string, query url.Values) (Answer, error) {
	return Send(ctx, func(ctx context.Context) (*api.Response, error) {
		return c.Logical().ReadRawWithDataWithContext(ctx, path, query)
	})
}

// Write sends a JSON object to a path below v1/.
func Write(ctx context.Context, c *api.Client, path string, body any) (Answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return Answer{}, err
	}
	return Send(ctx, func(ctx context.Context) (*api.Response, error) {
		return c.Logical().WriteRawWithContext(ctx, path, raw)
	})
}

// decode turns the SDK's result into an Answer. It also decodes error answers, because a 404 for a deleted
// version contains data.
func decode(resp *api.Response, err error) (a Answer, _ error) {
	if resp == nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }() // The needed part has been read.
	raw, readErr := io.ReadAll(resp.Body)
	if readErr != nil {
		return a, readErr
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		a.Raw = raw
		return a, refusalOf(resp.StatusCode, resp.Header, raw)
	}
	if err != nil {
		return a, err
	}
	if len(raw) == 0 {
		return a, nil
	}
	if json.Unmarshal(raw, &a) != nil {
		return Answer{}, provider.NewError(provider.Unavailable, "the response of Vault is incomplete or damaged; check that spec.server is the address of Vault itself")
	}
	a.Raw = raw
	return a, nil
}

// newSession returns a session with a token.
func (s *server) newSession(text string, t token) (*Session, error) {
	secrets, err := s.client(s.config, s.namespace, text)
	if err != nil {
		return nil, err
	}
	tokens, err := s.client(s.config, s.authNamespace, text)
	if err != nil {
		return nil, err
	}
	made := &Session{Secrets: secrets, Tokens: tokens, server: s, since: time.Now()}
	made.learn(t, made.since)
	return made, nil
}

// learn stores Vault's description of the token at a time.
func (s *Session) learn(t token, at time.Time) {
	s.token = t
	s.prolonged(t.lease, at)
}

// prolonged stores how long the token is valid from a time on.
func (s *Session) prolonged(lease time.Duration, from time.Time) {
	if lease > 0 {
		s.ends.Store(from.Add(lease).UnixNano())
	}
}

// Once returns a client like Secrets that repeats a request only if the server has certainly not handled it.
func (s *Session) Once() (*api.Client, error) {
	return s.server.client(s.server.once, s.server.namespace, s.Secrets.Token())
}

// Accessor returns the accessor of the token; empty for a batch token, which has none.
func (s *Session) Accessor() string { return s.token.accessor }

// Uses returns the remaining number of uses of the token; 0 means unlimited.
func (s *Session) Uses() int64 { return s.token.uses }

// Ends returns when the token expires if it is not renewed; zero if it does not expire.
func (s *Session) Ends() time.Time {
	if n := s.ends.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// fresh reports whether at least half of the token's time is left.
func (s *Session) fresh() bool {
	ends := s.Ends()
	return ends.IsZero() || time.Until(ends) >= s.token.lease/2
}

// proof is how long a confirmed token is not looked up again.
const proof = 5 * time.Second

// lookup asks Vault for the properties of the token itself.
func (s *Session) lookup(ctx context.Context) (token, error) {
	a, err := Read(ctx, s.Tokens, "auth/token/lookup-self", nil)
	if err != nil {
		return token{}, err
	}
	t, err := Data[struct {
		Accessor  string `json:"accessor"`
		TTL       int64  `json:"ttl"`
		Renewable bool   `json:"renewable"`
		Uses      int64  `json:"num_uses"`
	}](a)
	if err != nil {
		return token{}, provider.NewError(provider.Unavailable, "the response of Vault does not describe the token")
	}
	s.worked.Store(true)
	s.proven.Store(time.Now().UnixNano())
	return token{accessor: t.Accessor, lease: seconds(t.TTL), renewable: t.Renewable, uses: t.Uses}, nil
}

func (s *Session) provenLately() bool {
	return time.Since(time.Unix(0, s.proven.Load())) < proof
}

// renew extends the validity of the token, and returns its properties.
func (s *Session) renew(ctx context.Context) (token, error) {
	start := time.Now()
	a, err := Write(ctx, s.Tokens, "auth/token/renew-self", struct{}{})
	if err != nil {
		return token{}, err
	}
	if a.Auth == nil {
		return token{}, provider.NewError(provider.Unavailable, "the response of Vault does not describe the token")
	}
	t := a.Auth.of()
	s.worked.Store(true)
	s.prolonged(t.lease, start)
	return t, nil
}

// revoke revokes the token.
func (s *Session) revoke(ctx context.Context) error {
	_, err := Write(ctx, s.Tokens, "auth/token/revoke-self", struct{}{})
	return err
}
