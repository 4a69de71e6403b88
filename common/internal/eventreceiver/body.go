package eventreceiver

import (
	"encoding/json"
	"mime"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/internal/exactjson"
)

const (
	// maxKeys is the maximum number of keys in one report, and maxKeyLength that of bytes in one key.
	maxKeys, maxKeyLength = 100, 2048

	// cloudEvent is the media type of an event in structured mode; see
	// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md. In binary mode the body is the
	// data of the event. The headers are not used, because they are not signed.
	cloudEvent = "application/cloudevents+json"

	// expected is the answer to a request with a right signature whose body has another form.
	expected = `The body must be {"keys": ["KEY"]} with 1 to 100 keys, or a CloudEvent in JSON with that as data or with the key as subject.` + "\n"
)

// keysOf returns the keys that a body names; none if it has another form.
func keysOf(contentType string, body []byte) []string {
	if exactjson.Check(body) != nil {
		return nil
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != cloudEvent {
		return keysIn(body)
	}
	var event map[string]json.RawMessage // Names of fields of a struct would match in any case.
	if json.Unmarshal(body, &event) != nil || event["specversion"] == nil {
		return nil
	}
	if keys := keysIn(event["data"]); keys != nil {
		return keys
	}
	var subject string
	if event["subject"] == nil || json.Unmarshal(event["subject"], &subject) != nil {
		return nil
	}
	return valid([]string{subject})
}

// keysIn returns the keys of {"keys": [...]}; none if data has another form.
func keysIn(data []byte) []string {
	var members map[string]json.RawMessage
	var keys []string
	if json.Unmarshal(data, &members) != nil || len(members) != 1 || json.Unmarshal(members["keys"], &keys) != nil {
		return nil
	}
	return valid(keys)
}

// valid returns each key once; none if there are too few or too many, or if one is empty or too long.
func valid(keys []string) []string {
	if len(keys) == 0 || len(keys) > maxKeys || slices.ContainsFunc(keys, func(k string) bool { return k == "" || len(k) > maxKeyLength }) {
		return nil
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
