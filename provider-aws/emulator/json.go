package emulator

import (
	"encoding/json"
	"strings"
)

const jsonContentType = "application/x-amz-json-1.1"

// A jsonService is a service with the protocol AWS JSON 1.1.
type jsonService struct {
	scope      string // the name in the credential scope
	target     string // the prefix of its operations in the header
	operations map[string]operation
	// queryErrors are the codes of errors in the query protocol, by name, if the service also sends these.
	queryErrors map[string]string
}

var _ service = &jsonService{}

func (s *jsonService) name() string { return s.scope }

func (*jsonService) public(string) bool { return false }

func (s *jsonService) prepare(e *Emulator, q *request) ([]string, func() (any, error), error) {
	op, ok := s.operations[q.operation]
	if !ok {
		return nil, nil, badRequest("UnknownOperationException", "")
	}
	return op(e, q)
}

func (*jsonService) encode(_, _ string, out any) (string, []byte, error) {
	b, err := json.Marshal(out)
	return jsonContentType, b, err
}

// queryErrorHeader is the header with the code of an error in the query protocol.
const queryErrorHeader = "X-Amzn-Query-Error"

// queryError returns the value of that header, or "".
func (s *jsonService) queryError(err *apiError) string {
	code := s.queryErrors[err.Code]
	if code == "" {
		return ""
	}
	return code + ";Sender"
}

func (*jsonService) encodeError(_ string, err *apiError) (string, []byte) {
	return jsonContentType, marshal(map[string]string{"__type": err.Code, messageKey(err.Code): err.Message})
}

// marshal encodes what can always be encoded, such as texts and numbers.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// frontEndErrors are the errors that occur before a request reaches the service. Their JSON is spelled
// differently from the service's own errors.
var frontEndErrors = map[string]bool{
	"ExpiredTokenException":       true,
	"InvalidSignatureException":   true,
	"ThrottlingException":         true,
	"UnrecognizedClientException": true,
	"ValidationException":         true,
}

func messageKey(code string) string {
	if frontEndErrors[code] {
		return "message"
	}
	return "Message"
}

// An input is a decoded request that lists the secrets or parameters it names.
type input interface {
	secretIDs() []string
}

// A nameless request names no secret.
type nameless struct{}

func (nameless) secretIDs() []string { return nil }

type operation func(*Emulator, *request) ([]string, func() (any, error), error)

// decoded is what a typed method takes.
type decoded[In any] interface {
	*In
	input
}

// handle turns a typed method into an operation. The caller needs the permission for each secret that the request names.
func handle[In any, P decoded[In]](run func(*Emulator, *request, P) (any, error)) operation {
	return func(e *Emulator, q *request) ([]string, func() (any, error), error) {
		in := P(new(In))
		if err := json.Unmarshal(q.body, in); err != nil {
			// The decoder's text can quote the request, so it is not passed on.
			return nil, nil, badRequest("SerializationException", "The request is not valid JSON for %s.", q.operation)
		}
		ids := in.secretIDs()
		return ids, func() (any, error) {
			if len(ids) == 0 || q.operation == batchOperation {
				ids = []string{""}
			}
			for _, id := range ids {
				if err := e.allow(q, q.operation, id); err != nil {
					return nil, err
				}
			}
			return run(e, q, in)
		}, nil
	}
}

// onSecret turns a typed method on one secret into an operation. find finds it, and the method holds the lock.
func onSecret[In any, P decoded[In]](find func(*Emulator, string) (*secret, error), run func(*Emulator, *secret, P) (any, error)) operation {
	return handle(func(e *Emulator, _ *request, in P) (any, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		s, err := find(e, in.secretIDs()[0])
		if err != nil {
			return nil, err
		}
		return run(e, s, in)
	})
}

// allow checks a permission of the caller on one secret, or without one.
func (e *Emulator) allow(q *request, operation, id string) error {
	action, resource := q.service.name()+":"+operation, id
	if q.caller.denies(action, e.nameOf(id)) || !e.policyAllows(q, action, id) {
		if q.service.name() == "sqs" {
			action, resource = strings.ToLower(action), "arn:aws:sqs:"+e.region+":"+e.account+":"+id
		}
		return accessDenied(q.caller, action, resource)
	}
	return nil
}

// nameOf returns the name of the secret or parameter for an id: the id itself without a version, or the name in
// an ARN. It cuts the random suffix of an ARN only if a secret has that ARN, because a name can end like one.
func (e *Emulator) nameOf(id string) string {
	if strings.HasPrefix(id, e.parameterARN("")) {
		name, _ := e.selected(id)
		return name
	}
	if !strings.HasPrefix(id, "arn:") {
		name, _, _ := strings.Cut(id, ":") // a name cannot contain a colon
		return name
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if s := e.lookup(id); s != nil {
		return s.name
	}
	return strings.TrimPrefix(id, e.arnPrefix())
}
