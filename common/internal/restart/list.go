package restart

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ReadList calls a function for each item of the JSON text of a list, and returns the token of the next page; empty after the last
// one. At any time it has one item in memory, which is valid until the function returns. An error means that items are missing.
func ReadList(r io.Reader, item func(raw []byte)) (next string, err error) {
	d := json.NewDecoder(r)
	if err := expect(d, '{'); err != nil {
		return "", err
	}
	var metadata struct {
		Continue string `json:"continue"`
	}
	hasMetadata, hasItems := false, false
	for d.More() {
		name, err := d.Token()
		switch {
		case err != nil:
		case name == "items":
			hasItems, err = true, readItems(d, item)
		case name == "metadata":
			hasMetadata, err = true, d.Decode(&metadata)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return "", fmt.Errorf("cannot read %v of a list: %w", name, err)
		}
	}
	if err := expect(d, '}'); err != nil {
		return "", err
	}
	if !hasMetadata || !hasItems {
		return "", fmt.Errorf("the answer is not a list")
	}
	return metadata.Continue, nil
}

// readItems reads a list, or null.
func readItems(d *json.Decoder, item func(raw []byte)) error {
	if t, err := d.Token(); err != nil || t == nil {
		return err
	} else if t != json.Delim('[') {
		return fmt.Errorf("got %v, want a list", t)
	}
	for raw := (json.RawMessage{}); d.More(); {
		if err := d.Decode(&raw); err != nil {
			return err
		}
		item(raw)
	}
	return expect(d, ']')
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && t != want {
		err = fmt.Errorf("got %v, want %v", t, want)
	}
	return err
}
