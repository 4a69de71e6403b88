package keyvault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

const vaultAddress = "https://shop.vault.azure.net"

// An exchange is the request of an operation, and how the client makes it. The state of the emulator is a live secret db, unless
// prepare changes it.
type exchange struct {
	method, path string
	do           func(context.Context, *Client, provider.Observed) error
	// absent reports whether do needs a vault without the secret.
	absent bool
}

var exchanges = map[string]exchange{
	"GetSecret": {http.MethodGet, "/secrets/db/", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.Get(ctx, provider.Ref{Key: "db"})
		return err
	}, false},
	"GetKey": {http.MethodGet, "/keys/db/", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.Get(ctx, provider.Ref{Key: "key/db"})
		return err
	}, false},
	"Challenge": {http.MethodGet, "/secrets/db/", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.Get(ctx, provider.Ref{Key: "db"})
		return err
	}, false},
	"ListSecrets": {http.MethodGet, "/secrets", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.list(ctx, provider.Query{})
		return err
	}, false},
	"ListVersions": {http.MethodGet, "/secrets/db/versions", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.versions(ctx, remote{Target: target(""), name: "db"})
		return err
	}, false},
	"SetSecret": {http.MethodPut, "/secrets/db", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.Create(ctx, target(""), []byte("x"), mark)
		return err
	}, true},
	"UpdateSecret": {http.MethodPatch, "/secrets/db/" + firstVersion, func(ctx context.Context, c *Client, o provider.Observed) error {
		return c.Mark(ctx, target(""), o, "other")
	}, false},
	"DeleteSecret": {http.MethodDelete, "/secrets/db", func(ctx context.Context, c *Client, o provider.Observed) error {
		return c.Delete(ctx, target(""), o)
	}, false},
	"GetDeletedSecret": {http.MethodGet, "/deletedsecrets/db", func(ctx context.Context, c *Client, _ provider.Observed) error {
		return c.unrecovered(ctx, remote{Target: target(""), name: "db"}, provider.NewError(provider.Denied, "denied"))
	}, false},
	"RecoverDeletedSecret": {http.MethodPost, "/deletedsecrets/db/recover", func(ctx context.Context, c *Client, _ provider.Observed) error {
		return c.restore(ctx, remote{Target: target(""), name: "db"})
	}, true},
	"PurgeDeletedSecret": {http.MethodDelete, "/deletedsecrets/db", nil, false}, // The client never purges.
	"Token": {http.MethodPost, "/" + emulator.DefaultTenant + "/oauth2/v2.0/token", func(ctx context.Context, c *Client, _ provider.Observed) error {
		_, err := c.Get(ctx, provider.Ref{Key: "db"})
		return err
	}, false},
}

const firstVersion = "00000000000000000000000000000001"

// A replay answers the requests of an operation with a fact, once it is set. Other requests reach the emulator.
type replay struct {
	next http.RoundTripper
	fact *conformance.Fact
}

// RoundTrip implements http.RoundTripper.
func (p *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.fact == nil || r.Method != exchanges[p.fact.Operation].method || r.URL.Path != exchanges[p.fact.Operation].path ||
		r.URL.Query().Has("$skiptoken") || p.fact.Operation == "Challenge" && r.Header.Get("Authorization") != "" {
		return p.next.RoundTrip(r)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for k, v := range p.fact.Header {
		header.Set(k, v)
	}
	return &http.Response{StatusCode: p.fact.Status, Header: header, Body: io.NopCloser(bytes.NewReader(p.fact.Body)), Request: r}, nil
}

// TestRecorded feeds recorded answers to the client. Only an answer that a secret or key does not exist is NotFound.
func TestRecorded(t *testing.T) {
	for _, f := range conformance.Facts(t, "recorded.json") {
		e, ok := exchanges[f.Operation]
		if !ok {
			t.Fatalf("%s has no exchange", f.Operation)
		}
		if e.do == nil {
			continue
		}
		t.Run(f.Operation+"/"+f.State, func(t *testing.T) {
			srv := startNamed(t)
			p := &replay{}
			if f.Operation == "Token" || f.Operation == "Challenge" {
				p.fact = &f // The first login gets it.
			}
			c := client(t, srv, func(s *testStore) {
				named(srv, vaultAddress, func() {})(s)
				wrap := s.Network.Wrap
				s.Network.Wrap = func(next http.RoundTripper) http.RoundTripper { p.next = wrap(next); return p }
				s.sleep = func(context.Context, time.Duration) bool { return false }
			})
			var o provider.Observed
			if !e.absent {
				put(t, srv, "db", "x")
				if p.fact == nil {
					o = observe(t, c, "")
				}
			}
			p.fact = &f
			err := e.do(soon(t), c, o)
			got := provider.Class("")
			if err != nil {
				got = provider.ClassOf(err)
			}
			if diff := cmp.Diff(f.Want, got); diff != "" {
				t.Errorf("%s answers %d %s (%s, %s): %v, class: -want, +got:\n%s", f.Operation, f.Status, f.Code, f.Source, f.Date, err, diff)
			}
			if got == provider.NotFound && !slices.Contains([]string{"SecretNotFound", "KeyNotFound"}, f.Code) {
				t.Errorf("%s %s is not the answer that nothing exists: %v", f.Operation, f.State, err)
			}
		})
	}
}

// states are what the emulator needs for the state of a fact, and the query of the request, if it is not a live secret db.
var states = map[string]struct {
	prepare func(*testing.T, *emulator.Server, sending)
	query   string
}{
	"no such secret": {prepare: func(_ *testing.T, srv *emulator.Server, _ sending) { srv.Delete("db") }},
	"no such secret to list": {prepare: func(_ *testing.T, srv *emulator.Server, _ sending) {
		srv.Delete("db")
	}},
	"name is free": {prepare: func(_ *testing.T, srv *emulator.Server, _ sending) { srv.Delete("db") }},
	"disabled": {prepare: func(t *testing.T, srv *emulator.Server, _ sending) {
		put(t, srv, "db", "x", emulator.Disabled())
	}},
	"not valid yet": {prepare: func(t *testing.T, srv *emulator.Server, _ sending) {
		put(t, srv, "db", "x", emulator.NotBefore(time.Now().Add(time.Hour)))
	}},
	"empty value":               {prepare: func(t *testing.T, srv *emulator.Server, _ sending) { put(t, srv, "db", "") }},
	"first page":                {prepare: more, query: "?maxresults=1"},
	"first page of versions":    {prepare: more, query: "?maxresults=1"},
	"empty page with a link":    {prepare: more, query: "?maxresults=1&$skiptoken=1.1"},
	"changed tags":              {},
	"recovery in progress":      {prepare: recovering(0)},
	"settling after a recovery": {prepare: recovering(emulator.RecoveryTime)},
	"deletion in progress": {prepare: func(_ *testing.T, _ *emulator.Server, send sending) {
		send(http.MethodDelete, "/secrets/db", "")
	}},
	"deleted": {prepare: func(_ *testing.T, srv *emulator.Server, send sending) {
		send(http.MethodDelete, "/secrets/db", "")
		srv.Advance(emulator.DeletionTime)
	}},
}

// more adds a version and another secret.
func more(t *testing.T, srv *emulator.Server, _ sending) {
	t.Helper()
	put(t, srv, "db", "y")
	put(t, srv, "other", "x")
}

// recovering deletes the secret and recovers it, for some time.
func recovering(since time.Duration) func(*testing.T, *emulator.Server, sending) {
	return func(_ *testing.T, srv *emulator.Server, send sending) {
		send(http.MethodDelete, "/secrets/db", "")
		srv.Advance(emulator.DeletionTime)
		send(http.MethodPost, "/deletedsecrets/db/recover", "")
		srv.Advance(since)
	}
}

// TestRecordedEmulator sends the same requests to the emulator. It answers as recorded, but for the differences with a reason.
func TestRecordedEmulator(t *testing.T) {
	for _, f := range conformance.Facts(t, "recorded.json") {
		t.Run(f.Operation+"/"+f.State, func(t *testing.T) {
			srv := startNamed(t)
			put(t, srv, "db", "x")
			var send sending
			c := client(t, srv, func(s *testStore) {
				named(srv, vaultAddress, func() {})(s)
				wrap := s.Network.Wrap
				s.Network.Wrap = func(next http.RoundTripper) http.RoundTripper {
					d := wrap(next)
					send = sender(t, d)
					return d
				}
			})
			token, err := c.config.Token(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			authorized := func(method, path, body string) (int, []byte) { return send(method+" "+token, path, body) }
			if s := states[f.State]; s.prepare != nil {
				s.prepare(t, srv, authorized)
			}
			e := exchanges[f.Operation]
			request := authorized
			if f.Operation == "Challenge" || f.Operation == "Token" {
				request = send
			}
			status, raw := request(e.method, e.path+states[f.State].query, map[string]string{http.MethodPut: `{"value":"x"}`, http.MethodPatch: `{"tags":{"team":"shop"}}`}[e.method])
			diff := cmp.Diff(shape(f.Status, f.Body), shape(status, raw))
			if (diff != "") != (f.Differs != "") {
				t.Errorf("%s of %s: the reason is %q, -recorded, +emulator:\n%s", f.State, f.Source, f.Differs, diff)
			}
		})
	}
}

// sending is a function that sends a request and returns the status and the body of the answer.
type sending func(method, path, body string) (int, []byte)

// sender sends requests to the vault. The method can be followed by a token.
func sender(t *testing.T, to http.RoundTripper) sending {
	return func(method, path, body string) (int, []byte) {
		method, token, _ := strings.Cut(method, " ")
		version := "?api-version=7.3"
		if strings.Contains(path, "?") {
			version = strings.Replace(version, "?", "&", 1)
		}
		r, err := http.NewRequestWithContext(soon(t), method, vaultAddress+path+version, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := to.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, raw
	}
}

// shape returns what of an answer must be as recorded: status, names of fields, codes, the beginning of texts, and the port of a link.
func shape(status int, raw []byte) (lines []string) {
	lines = append(lines, fmt.Sprintf("status %d", status))
	var body struct {
		Error    json.RawMessage
		NextLink *string
		Numbers  []int `json:"error_codes"`
		Value    json.RawMessage
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(raw, &fields) != nil {
		return append(lines, fmt.Sprintf("no object: %v", len(raw) > 0))
	}
	lines = append(lines, "fields "+strings.Join(slices.Sorted(maps.Keys(fields)), " "))
	var failed struct {
		Code, Message string
		Inner         struct{ Code string } `json:"innererror"`
	}
	if json.Unmarshal(body.Error, &failed) == nil {
		text, _, _ := strings.Cut(failed.Message, ".")
		lines = append(lines, failed.Code, failed.Inner.Code, text)
	}
	for _, n := range body.Numbers {
		lines = append(lines, fmt.Sprint("number ", n))
	}
	if body.NextLink != nil {
		lines = append(lines, "link with port", fmt.Sprint(strings.HasPrefix(*body.NextLink, vaultAddress+":443/")))
	}
	var entries []json.RawMessage
	if json.Unmarshal(body.Value, &entries) == nil {
		lines = append(lines, fmt.Sprintf("entries %v", len(entries) > 0))
	}
	return lines
}
