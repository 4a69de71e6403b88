package emulator

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// route returns the service that a request calls. JSON services name their operation in a header, STS in the
// form.
func route(r *http.Request, body []byte) (service, string) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		for _, s := range []*jsonService{secretsManager, systemsManager, privateRegistry, publicRegistry, queueService} {
			if operation, ok := strings.CutPrefix(target, s.target); ok {
				return s, operation
			}
		}
		return secretsManager, target
	}
	form := parseForm(r, body)
	return sts{form: form}, form.Get("Action")
}

// reply writes the result of the call, damaged if a fault is injected.
func reply(w http.ResponseWriter, q *request, out any, failure error) {
	if q.fault.Body == BodyNone {
		panic(http.ErrAbortHandler)
	}
	requestID := newUUID()
	status, contentType, body := http.StatusOK, "", []byte(nil)
	if failure == nil {
		contentType, body, failure = q.service.encode(q.operation, requestID, out)
	}
	h := w.Header()
	if failure != nil {
		err := asAPIError(failure)
		status = err.Status
		if err.RetryAfter > 0 {
			h.Set("Retry-After", strconv.Itoa(int(math.Ceil(err.RetryAfter.Seconds()))))
		}
		if err.Code != "" {
			contentType, body = q.service.encodeError(requestID, err)
			if s, ok := q.service.(*jsonService); ok && s.queryError(err) != "" {
				h.Set(queryErrorHeader, s.queryError(err))
			}
		}
	}
	if q.fault.Body == BodyTruncated {
		body = body[:len(body)/2]
	}
	h.Set("X-Amzn-Requestid", requestID)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	if q.fault.Body == BodyAborted {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body) // the client may have closed the connection
}

// epoch is a date in AWS JSON: seconds with milliseconds.
type epoch time.Time

func (t epoch) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Time(t).UnixMilli())/1000, 'f', -1, 64), nil
}

// date returns nil for the zero time, which is then left out of the answer.
func date(t time.Time) *epoch {
	if t.IsZero() {
		return nil
	}
	return (*epoch)(&t)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never returns an error
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
