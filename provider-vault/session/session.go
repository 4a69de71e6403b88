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

// A Session is what a login yields.
type Session struct {
	// Secrets acts in the namespace of the secrets, Tokens in that of the auth method.
	Secrets, Tokens *api.Client

	server *server
	token  token
	since  time.Time
	// own is true for a token that was made for this session, and ends with it.
	own bool

	// ends is when the token does, in nanoseconds since 1970, as far as is known; 0 for never.
	ends atomic.Int64
	// used is true once something was made that dies with the token, which therefore outlives the session.
	used atomic.Bool
	// worked is true once Vault has accepted the token.
	worked atomic.Bool
	// proven is when Vault last confirmed the token, in nanoseconds since 1970.
	proven atomic.Int64
}

// A token is what Vault says of one.
type token struct {
	accessor string // none for a batch token
	// lease is how long it lives; 0 for one that does not end.
	lease     time.Duration
	renewable bool
	// uses is how often it can be used; 0 for any number of times.
	uses int64
}

// An Answer is what Vault says to a request that it grants, and to one for what is not there.
type Answer struct {
	Auth *Grant `json:"auth"`

	LeaseID string `json:"lease_id"`       // empty where there is no lease
	Lease   int64  `json:"lease_duration"` // seconds

	// Raw is all of it.
	Raw json.RawMessage `json:"-"`
}

var errNoData = errors.New("the answer of Vault has no data")

// Data decodes the data of an answer; it returns an error where there is none. It makes no copy of all of it first, since it
// can be large.
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

// A Grant is the part of an answer that holds a token.
type Grant struct {
	Token     string `json:"client_token"`
	Accessor  string `json:"accessor"`
	Lease     int64  `json:"lease_duration"` // seconds; 0 for a token that does not end
	Renewable bool   `json:"renewable"`
	Uses      int64  `json:"num_uses"`
	// Orphan is true for a token that does not end with the one by which it was made.
	Orphan bool `json:"orphan"`
}

func (g *Grant) of() token {
	return token{accessor: g.Accessor, lease: seconds(g.Lease), renewable: g.Renewable, uses: g.Uses}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Send makes one request, and its retries, by a method of the SDK that returns what the server sent.
func Send(ctx context.Context, request func(context.Context) (*api.Response, error)) (Answer, error) {
	ctx, said := listen(ctx)
	a, err := decode(request(ctx))
	return a, said.or(err)
}

// Read asks Vault for what is at a path below v1/.
func Read(ctx context.Context, c *api.Client, path string, query url.Values) (Answer, error) {
	return Send(ctx, func(ctx context.Context) (*api.Response, error) {
		return c.Logical().ReadRawWithDataWithContext(ctx, path, query)
	})
}

// Write sends a JSON object there.
func Write(ctx context.Context, c *api.Client, path string, body any) (Answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return Answer{}, err
	}
	return Send(ctx, func(ctx context.Context) (*api.Response, error) {
		return c.Logical().WriteRawWithContext(ctx, path, raw)
	})
}

// decode makes an answer of what the SDK returns. A refusal has its text as well, since a 404 has data for
// deleted versions.
func decode(resp *api.Response, err error) (a Answer, _ error) {
	if resp == nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }() // All that matters has been read.
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
		return Answer{}, provider.NewError(provider.Unavailable, "the answer of Vault is cut off or damaged; check that spec.server is the address of Vault itself")
	}
	a.Raw = raw
	return a, nil
}

// newSession makes a session of a token.
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

// learn notes what Vault said at a time of the token.
func (s *Session) learn(t token, at time.Time) {
	s.token = t
	s.prolonged(t.lease, at)
}

// prolonged notes how long the token lives from a time on.
func (s *Session) prolonged(lease time.Duration, from time.Time) {
	if lease > 0 {
		s.ends.Store(from.Add(lease).UnixNano())
	}
}

// Once returns a client that acts like Secrets, but sends a request again only where the server did
// surely nothing about it.
func (s *Session) Once() (*api.Client, error) {
	return s.server.client(s.server.once, s.server.namespace, s.Secrets.Token())
}

// Accessor names the token; empty for a batch token, which has none.
func (s *Session) Accessor() string { return s.token.accessor }

// Uses is how often the token can be used; 0 for any number of times.
func (s *Session) Uses() int64 { return s.token.uses }

// Ends is when the token does, if nobody renews it; zero if it does not.
func (s *Session) Ends() time.Time {
	if n := s.ends.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// fresh reports whether half of the token's time is left.
func (s *Session) fresh() bool {
	ends := s.Ends()
	return ends.IsZero() || time.Until(ends) >= s.token.lease/2
}

// proof is how long a confirmed token is not asked about again.
const proof = 5 * time.Second

// lookup asks Vault about the token itself.
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
		return token{}, provider.NewError(provider.Unavailable, "the answer of Vault says nothing of the token")
	}
	s.worked.Store(true)
	s.proven.Store(time.Now().UnixNano())
	return token{accessor: t.Accessor, lease: seconds(t.TTL), renewable: t.Renewable, uses: t.Uses}, nil
}

func (s *Session) provenLately() bool {
	return time.Since(time.Unix(0, s.proven.Load())) < proof
}

// renew makes the token live longer, and returns what is known of it then.
func (s *Session) renew(ctx context.Context) (token, error) {
	start := time.Now()
	a, err := Write(ctx, s.Tokens, "auth/token/renew-self", struct{}{})
	if err != nil {
		return token{}, err
	}
	if a.Auth == nil {
		return token{}, provider.NewError(provider.Unavailable, "the answer of Vault says nothing of the token")
	}
	t := a.Auth.of()
	s.worked.Store(true)
	s.prolonged(t.lease, start)
	return t, nil
}

// revoke ends the token.
func (s *Session) revoke(ctx context.Context) error {
	_, err := Write(ctx, s.Tokens, "auth/token/revoke-self", struct{}{})
	return err
}
