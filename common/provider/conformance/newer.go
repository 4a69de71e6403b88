package conformance

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// newer changes an answer into that of a later version of the server: it adds fields that today's clients do not
// know. It reports whether it has changed the answer.
func newer(r *http.Response) (changed bool, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return false, nil // For example an answer without a body.
	}
	var change func([]byte) ([]byte, error)
	switch kind {
	case "application/grpc", "application/grpc+proto":
		change = newerFrames
	case "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		change = newerJSON
	default:
		return false, nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil || len(raw) == 0 {
		return false, errors.Join(err, replace(r, raw))
	}
	body, err := change(raw)
	if err != nil {
		return false, err
	}
	return true, replace(r, body)
}

// replace sets another body. It updates the length if there is one.
func replace(r *http.Response, body []byte) error {
	err := r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get("Content-Length") != "" {
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return err
}

const (
	unknownMember = "addedByNewerServer"
	unknownValue  = `{"some":[1,{"thing":null}]}`
)

// newerJSON adds a member to an object, and to objects that are elements of a list in it, at any depth. Those objects
// are messages. Other objects might be maps, such as tags, where a member would be an entry. The value of a secret
// does not change. An answer can also be a list.
func newerJSON(raw []byte) ([]byte, error) {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return newerLists(raw)
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, errors.New("harness: an answer is not a JSON object")
	}
	for name, v := range o {
		var err error
		if o[name], err = newerLists(v); err != nil {
			return nil, err
		}
	}
	o[unknownMember] = json.RawMessage(unknownValue)
	return provider.EncodeJSON(o), nil
}

func newerLists(raw json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	var o map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &list) == nil && list != nil:
		for i, v := range list {
			if !bytes.HasPrefix(bytes.TrimSpace(v), []byte("{")) {
				continue
			}
			var err error
			if list[i], err = newerJSON(v); err != nil {
				return nil, err
			}
		}
		return provider.EncodeJSON(list), nil
	case json.Unmarshal(raw, &o) == nil && o != nil:
		if _, value := o[canary]; value {
			return raw, nil
		}
		for name, v := range o {
			var err error
			if o[name], err = newerLists(v); err != nil {
				return nil, err
			}
		}
		return provider.EncodeJSON(o), nil
	}
	return raw, nil
}

// frameHead is the length of the header of each gRPC message: a flag for compression, and the message's length. See
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
const frameHead = 5

// unknownField is a string field with a number that no message uses. Its encoding is that of
// https://protobuf.dev/programming-guides/encoding/.
var unknownField = func() []byte {
	const number, lengthPrefixed, text = 30000, 2, "added by a newer server"
	b := binary.AppendUvarint(nil, number<<3|lengthPrefixed)
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}()

// newerFrames adds a field to each gRPC message.
func newerFrames(raw []byte) ([]byte, error) {
	var out []byte
	for len(raw) > 0 {
		if len(raw) < frameHead || raw[0] != 0 {
			return nil, errors.New("harness: an answer of gRPC is cut off or compressed")
		}
		end := frameHead + int(binary.BigEndian.Uint32(raw[1:]))
		if len(raw) < end {
			return nil, errors.New("harness: an answer of gRPC is cut off")
		}
		out = append(out, 0)
		out = binary.BigEndian.AppendUint32(out, uint32(end-frameHead+len(unknownField)))
		out = append(append(out, raw[frameHead:end]...), unknownField...)
		raw = raw[end:]
	}
	return out, nil
}
