package emulator

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"

// sts is the service with the AWS query protocol.
type sts struct{ form url.Values }

var _ service = sts{}

// parseForm decodes the parameters of a query request, from the body or, for clients that use GET, from the
// URL.
func parseForm(r *http.Request, body []byte) url.Values {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form) == 0 {
		return r.URL.Query()
	}
	return form
}

func (sts) name() string { return "sts" }

func (sts) public(operation string) bool { return operation == "AssumeRoleWithWebIdentity" }

func (s sts) prepare(e *Emulator, q *request) ([]string, func() (any, error), error) {
	run, ok := map[string]func(*request, url.Values) (any, error){
		"AssumeRole":                e.assumeRole,
		"AssumeRoleWithWebIdentity": e.assumeRoleWithWebIdentity,
		"GetCallerIdentity":         e.getCallerIdentity,
		"GetSessionToken":           e.getSessionToken,
	}[q.operation]
	if !ok {
		return nil, nil, badRequest("InvalidAction", "Could not find operation %s for version %s", q.operation, s.form.Get("Version"))
	}
	return nil, func() (any, error) { return run(q, s.form) }, nil
}

type queryResponse struct {
	XMLName   xml.Name
	Namespace string `xml:"xmlns,attr"`
	Result    any
	RequestID string `xml:"ResponseMetadata>RequestId"`
}

func (sts) encode(operation, requestID string, out any) (string, []byte, error) {
	b, err := xml.Marshal(queryResponse{
		XMLName: xml.Name{Local: operation + "Response"}, Namespace: stsNamespace, Result: out, RequestID: requestID,
	})
	return "text/xml", b, err
}

type queryError struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Namespace string   `xml:"xmlns,attr"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

func (sts) encodeError(requestID string, err *apiError) (string, []byte) {
	fault := "Sender"
	if err.Status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	b, xmlErr := xml.Marshal(queryError{Namespace: stsNamespace, Type: fault, Code: err.Code, Message: err.Message, RequestID: requestID})
	if xmlErr != nil {
		return "", nil
	}
	return "text/xml", b
}

type getCallerIdentityResult struct {
	XMLName xml.Name `xml:"GetCallerIdentityResult"`
	Arn     string
	UserID  string `xml:"UserId"`
	Account string
}

func (e *Emulator) getCallerIdentity(q *request, _ url.Values) (any, error) {
	return &getCallerIdentityResult{Arn: q.caller.arn, UserID: q.caller.userID, Account: e.account}, nil
}

// members decodes a list of the query protocol: name.1, name.2 and so on, each with the given fields.
func members(form url.Values, name string, fields ...string) [][]string {
	var list [][]string
	for n := 1; ; n++ {
		prefix := name + ".member." + strconv.Itoa(n)
		var item []string
		present := false
		for _, f := range fields {
			present = present || form.Has(prefix+f)
			item = append(item, form.Get(prefix+f))
		}
		if !present {
			return list
		}
		list = append(list, item)
	}
}

func iso8601(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
