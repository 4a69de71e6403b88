package kv

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// A session is what a login yields.
type session struct {
	// secrets acts in the namespace of the secrets, tokens in that of the auth method.
	secrets, tokens *api.Client
	since           time.Time
	// lease is how long the token lives; 0 for one that does not end.
	lease     time.Duration
	renewable bool
	// own is true for a token that was made for this session, and ends with it.
	own bool

	// worked is true once Vault has accepted the token.
	worked atomic.Bool
	// proven is when Vault last confirmed the token, in nanoseconds since 1970.
	proven atomic.Int64
}

// An answer is what Vault says to a request that it grants, and to one for what is not there.
type answer struct {
	Data json.RawMessage `json:"data"`
	Auth *grant          `json:"auth"`
}

// A grant is the part of an answer that holds a token.
type grant struct {
	Token     string `json:"client_token"`
	Lease     int64  `json:"lease_duration"` // seconds
	Renewable bool   `json:"renewable"`
}

func (g *grant) lease() time.Duration { return time.Duration(g.Lease) * time.Second }

// read asks Vault for what is at a path below v1/.
func read(ctx context.Context, c *api.Client, path string, query url.Values) (answer, error) {
	ctx, said := listen(ctx)
	resp, err := c.Logical().ReadRawWithDataWithContext(ctx, path, query)
	a, err := decode(resp, err)
	return a, said.or(err)
}

// write sends a JSON object there.
func write(ctx context.Context, c *api.Client, path string, body any) (answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	ctx, said := listen(ctx)
	resp, err := c.Logical().WriteRawWithContext(ctx, path, raw)
	a, err := decode(resp, err)
	return a, said.or(err)
}

// decode makes an answer of what the SDK returns. A refusal comes with the data that a 404 has for
// deleted versions.
func decode(resp *api.Response, err error) (a answer, _ error) {
	if resp == nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }() // All that matters has been read.
	raw, readErr := io.ReadAll(resp.Body)
	if readErr != nil {
		return a, readErr
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		_ = json.Unmarshal(raw, &a) // Proxies refuse in other formats.
		return a, refusalOf(resp.StatusCode, resp.Header, raw)
	}
	if err != nil {
		return a, err
	}
	if len(raw) == 0 {
		return a, nil
	}
	if json.Unmarshal(raw, &a) != nil {
		return answer{}, store.NewError(store.Unavailable, "the answer of Vault is cut off or damaged; check that spec.server is the address of Vault itself")
	}
	return a, nil
}

// newSession makes a session of a token.
func (s *server) newSession(token string) (*session, error) {
	secrets, err := s.client(s.namespace, token)
	if err != nil {
		return nil, err
	}
	tokens, err := s.client(s.authNamespace, token)
	if err != nil {
		return nil, err
	}
	return &session{secrets: secrets, tokens: tokens, since: time.Now()}, nil
}

// proof is how long a confirmed token is not asked about again.
const proof = 5 * time.Second

// lookup asks Vault about the token itself. It sets what is known of its life.
func (s *session) lookup(ctx context.Context) (grant, error) {
	a, err := read(ctx, s.tokens, "auth/token/lookup-self", nil)
	if err != nil {
		return grant{}, err
	}
	var t struct {
		TTL       int64 `json:"ttl"`
		Renewable bool  `json:"renewable"`
	}
	if json.Unmarshal(a.Data, &t) != nil {
		return grant{}, store.NewError(store.Unavailable, "the answer of Vault says nothing of the token")
	}
	s.worked.Store(true)
	s.proven.Store(time.Now().UnixNano())
	return grant{Lease: t.TTL, Renewable: t.Renewable}, nil
}

func (s *session) provenLately() bool {
	return time.Since(time.Unix(0, s.proven.Load())) < proof
}

// renew makes the token live longer.
func (s *session) renew(ctx context.Context) (grant, error) {
	a, err := write(ctx, s.tokens, "auth/token/renew-self", struct{}{})
	if err != nil {
		return grant{}, err
	}
	if a.Auth == nil {
		return grant{}, store.NewError(store.Unavailable, "the answer of Vault says nothing of the token")
	}
	return *a.Auth, nil
}

// revoke ends the token.
func (s *session) revoke(ctx context.Context) error {
	_, err := write(ctx, s.tokens, "auth/token/revoke-self", struct{}{})
	return err
}
