package emulator

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// maxBody is the maximum size of a request.
const maxBody = 64 << 20

// Name is what published tables of results call this server.
const Name = "AWS emulator of this project"

// An Emulator is an http.Handler that emulates Secrets Manager, Parameter Store, SQS, the container registries
// and STS. It is safe for concurrent use. Start creates one.
type Emulator struct {
	config
	fake.CallLog[Call]
	fake.Faults[Fault]

	mu         sync.RWMutex // guards the secrets and parameters
	secrets    map[string]*secret
	order      []*secret // in order of creation
	seq        uint64
	parameters map[string]*parameter
	// occupied are the regions that have a secret of every name, so that replication fails.
	occupied map[string]bool

	queuesMu sync.Mutex
	queues   map[string]*Queue

	identities identities
}

// build returns an Emulator. It accepts the access key "test" with the secret
// key "test", unless WithCredentials says otherwise.
func build(c config) *Emulator {
	e := &Emulator{config: c, secrets: map[string]*secret{}, parameters: map[string]*parameter{}}
	for _, cred := range c.credentials {
		e.AddCredential(cred)
	}
	for _, r := range c.roles {
		e.AddRole(r)
	}
	return e
}

// A request is one call of the AWS API in progress.
type request struct {
	ctx       context.Context
	http      *http.Request
	body      []byte
	service   service
	operation string
	caller    *principal
	fault     Fault
}

// A service decodes and encodes one of the AWS protocols.
type service interface {
	// name is the service's name in the credential scope.
	name() string
	// prepare decodes the request. It returns the ids that the call names, and the function to run once the
	// caller is authorized.
	prepare(*Emulator, *request) (ids []string, run func() (any, error), err error)
	// public operations need no signature.
	public(operation string) bool
	encode(operation, requestID string, out any) (contentType string, body []byte, err error)
	encodeError(requestID string, err *apiError) (contentType string, body []byte)
}

// ServeHTTP implements http.Handler.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, controlPrefix); ok {
		e.control(w, r, name)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	q := &request{ctx: r.Context(), http: r, body: body}
	q.service, q.operation = route(r, body)

	out, err := e.serve(q)
	if q.ctx.Err() != nil {
		return // the client no longer waits for an answer
	}
	reply(w, q, out, err)
}

// serve counts the call, applies injected faults, authorizes the call and runs it, in that order: a call that
// fails is counted, too.
func (e *Emulator) serve(q *request) (any, error) {
	ids, run, err := q.service.prepare(e, q)
	e.Record(Call{
		Time:        e.now(),
		Service:     q.service.name(),
		Operation:   q.operation,
		SecretIDs:   ids,
		AccessKeyID: accessKeyOf(q.http),
	})
	if err != nil {
		return nil, err
	}
	if err := e.applyFault(q, ids); err != nil {
		return nil, err
	}
	if !q.service.public(q.operation) {
		if q.caller, err = e.authenticate(q); err != nil {
			return nil, err
		}
	}
	out, err := run()
	if err != nil {
		return nil, err
	}
	e.notify(q, out)
	if p, ok := out.(page); ok && q.fault.Page != "" {
		p.cut(q.fault.Page, q.fault.KeepEntries)
	}
	return out, nil
}

// A Call is one request to the AWS API. It contains no value.
type Call struct {
	Time        time.Time
	Service     string // secretsmanager, ssm, sqs, ecr, ecr-public or sts
	Operation   string
	SecretIDs   []string // as named in the request
	AccessKeyID string
}

// CallName returns the operation.
func (c Call) CallName() string { return c.Operation }

// Reset clears the calls and the recorded sessions. Secrets, roles, credentials and faults stay, and the
// credentials of sessions remain valid.
func (e *Emulator) Reset() {
	e.CallLog.Reset()
	e.identities.mu.Lock()
	e.identities.sessions = nil
	e.identities.mu.Unlock()
}
