package awstest

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// A seen is what a fact and an answer of the emulator must have in common.
type seen struct {
	Status                 int
	Code, Text, QueryError string
}

// SeenIn returns what of an error a fact and the emulator must have in common. It is in the JSON protocol, or in that of STS, which is XML.
func SeenIn(status int, h http.Header, body []byte) any { return seenIn(status, h, body) }

func seenIn(status int, h http.Header, body []byte) seen {
	var b struct {
		Type    string `json:"__type"`
		Message string // The decoder also accepts message.
	}
	_ = json.Unmarshal(body, &b) // An answer without these fields has other differences.
	_, code, named := strings.Cut(b.Type, "#")
	if !named {
		code = b.Type
	}
	var x struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if xml.Unmarshal(body, &x) == nil {
		code, b.Message = x.Code, x.Message
	}
	return seen{status, code, b.Message, h.Get("X-Amzn-Query-Error")}
}

// RunFacts makes the operation of each fact, with a server that answers as recorded, and with an emulator in the state of the fact.
// call makes it with a client of an endpoint, and prepare brings an emulator into a state. The answers of the absent states say that
// a secret or version does not exist.
func RunFacts(t *testing.T, call func(t *testing.T, endpoint string, f conformance.Fact) error, prepare func(t *testing.T, srv *emulator.Server, state string), absent ...string) {
	t.Helper()
	conformance.RunFacts(t, conformance.FactHarness{
		Prepare: func(t *testing.T, f conformance.Fact) string {
			srv := Start(t)
			prepare(t, srv, f.State)
			return srv.URL()
		},
		Call: call, Seen: SeenIn, Absent: absent,
	})
}

// FaultOf returns the fault of an emulator that answers as recorded, for states that it does not have.
func FaultOf(f conformance.Fact) emulator.Fault {
	s := seenIn(f.Status, http.Header{}, f.Raw())
	return emulator.Fault{Code: s.Code, Message: s.Text, Status: s.Status}
}
