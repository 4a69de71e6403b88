package emulator

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// Name is what published tables of results call this server.
const Name = "Azure emulator of this project"

// A Server is a vault with its login endpoints, on a port. Create one with Start.
type Server struct {
	config
	fake.CallLog[Call]
	fake.Faults[Fault]

	*vault
	keyring
	*identities
	*registry
	*fake.Listener
}

// Start listens on a loopback address and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	c := config{tenant: DefaultTenant, resources: []string{Resource, RegistryResource}, pageSize: 25, now: time.Now}
	for _, o := range opts {
		o(&c)
	}
	clock := c.now
	c.advanced = &atomic.Int64{}
	c.now = func() time.Time { return clock().Add(time.Duration(c.advanced.Load())) }
	v := &vault{config: c, secrets: map[string]*secret{}, keys: map[string]*secret{}}
	i := &identities{config: c, apps: map[string]App{}, tokens: map[string]accessToken{}}
	s := &Server{config: c, vault: v, keyring: keyring{v}, identities: i, registry: &registry{identities: i, key: []byte(rand.Text())}}
	var err error
	s.Listener, err = fake.Listen("127.0.0.1:0", c.tls, s.handler())
	return s, err
}

// Advance moves the clock of the server forward.
func (s *Server) Advance(d time.Duration) { s.advanced.Add(int64(d)) }

// self returns the URL of this server with https, whatever it serves, because Azure's libraries accept no other.
func (s *Server) self() string { return "https://" + s.Address() }

// An operation answers one kind of request with an object, or with a failure.
type operation func(r *http.Request) (any, *failure)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	vault := func(pattern, call string, do operation) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, call, do) })
	}
	vault("GET /secrets", CallList, s.list)
	vault("GET /secrets/{name}/versions", CallVersions, s.versions)
	vault("GET /secrets/{name}/{$}", CallGet, s.get)
	vault("GET /secrets/{name}", CallGet, s.get)
	vault("GET /secrets/{name}/{version}", CallGet, s.get)
	vault("GET /keys/{name}/{$}", CallGetKey, s.getKey)
	vault("GET /keys/{name}", CallGetKey, s.getKey)
	vault("GET /keys/{name}/{version}", CallGetKey, s.getKey)
	vault("PUT /secrets/{name}", CallSet, s.set)
	vault("PATCH /secrets/{name}/{$}", CallUpdate, s.update)
	vault("PATCH /secrets/{name}/{version}", CallUpdate, s.update)
	vault("DELETE /secrets/{name}", CallDelete, s.remove)
	vault("GET /deletedsecrets/{name}", CallDeleted, s.deleted)
	vault("POST /deletedsecrets/{name}/recover", CallRecover, s.recover)
	vault("DELETE /deletedsecrets/{name}", CallPurge, s.purge)
	vault("/", callOther, func(*http.Request) (any, *failure) {
		return nil, &failure{status: http.StatusNotFound, code: "NotFound", message: "No such resource."}
	})
	mux.HandleFunc("GET /{tenant}/v2.0/.well-known/openid-configuration", s.login(CallDiscovery, s.discovery))
	mux.HandleFunc("POST /{tenant}/oauth2/v2.0/token", s.login(CallToken, s.token))
	mux.HandleFunc("POST /oauth2/exchange", s.grant(CallExchange, s.exchange))
	mux.HandleFunc("POST /oauth2/token", s.grant(CallAccess, s.access))
	mux.HandleFunc("GET "+machinePath, s.login(CallMachine, s.machine))
	return mux
}

// answer counts a call, applies injected faults, authorizes the call and runs it, in that order: a call that fails is counted, too.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call string, do operation) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		call = CallChallenge
	}
	caller, known := s.lookupToken(token, s.resources[0], s.now())
	fault, ok := s.begin(w, r, call, caller)
	if !ok {
		return
	}
	if !known {
		authority := s.authority
		if authority == "" {
			authority = s.self()
		}
		w.Header().Set("WWW-Authenticate", `Bearer authorization="`+authority+"/"+s.tenant+`", resource="`+s.resources[0]+`"`)
		(&failure{status: http.StatusUnauthorized, code: "Unauthorized", message: "AKV10000: Request is missing a Bearer or PoP token."}).write(w)
		return
	}
	if r.URL.Query().Get("api-version") == "" {
		badParameter("api-version must be specified").write(w)
		return
	}
	out, failed := do(r)
	switch {
	case failed != nil:
		failed.write(w)
	case fault.Body == BodyLost:
		panic(http.ErrAbortHandler)
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		damage(out, fault.Body)
		respond(w, http.StatusOK, out)
	}
}

// login answers a request for a token, like answer.
func (s *Server) login(call string, do func(r *http.Request) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.begin(w, r, call, ""); !ok {
			return
		}
		out, refused := do(r)
		if refused != nil {
			respond(w, refused.status, map[string]any{"error": refused.code, "error_description": "AADSTS: the login failed.", "error_codes": []int{refused.number}})
			return
		}
		respond(w, http.StatusOK, out)
	}
}

// grant answers a request for a token of the registry, like answer.
func (s *Server) grant(call string, do func(r *http.Request) (*grant, *registryError)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fault, ok := s.begin(w, r, call, "")
		if !ok {
			return
		}
		out, refused := do(r)
		switch {
		case refused != nil:
			respond(w, refused.status, map[string]any{"errors": []map[string]string{{"code": refused.code, "message": refused.message}}})
		case fault.Body == BodyLost:
			panic(http.ErrAbortHandler)
		default:
			out.damage(fault.Body)
			respond(w, http.StatusOK, out)
		}
	}
}

// begin counts a call and applies a fault. It returns false if the call has been answered.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, call, caller string) (Fault, bool) {
	s.Record(Call{Time: s.now(), Method: call, Host: r.Host, Path: r.URL.Path, Caller: caller})
	f, err := s.Suffer(r.Context(), func(f Fault) bool { return f.matches(call, r.PathValue("name")) })
	if err == nil && f.Status != 0 {
		(&failure{f.Status, f.Code, f.Inner, f.Message, f.RetryAfter}).write(w)
	}
	return f, err == nil && f.Status == 0
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // The client might have closed the connection.
}

func damage(out any, f BodyFault) {
	switch o := out.(type) {
	case *keyBundle:
		o.damage(f)
	case *bundle:
		switch f {
		case BodyNoValue:
			o.Value = nil
		case BodyNoVersion:
			o.ID = o.ID[:strings.LastIndex(o.ID, "/")]
		case BodyOtherName:
			o.ID = strings.Replace(o.ID, "/secrets/", "/secrets/another-", 1)
		}
	case *page:
		switch f {
		case BodyNoValue:
			o.Value = nil
		case BodySamePage:
			o.NextLink = &o.self
		case BodyOtherHost:
			elsewhere := "https://elsewhere.example/secrets?api-version=7.5&$skiptoken=1"
			o.NextLink = &elsewhere
		}
	}
}
