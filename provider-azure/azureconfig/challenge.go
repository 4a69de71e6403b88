package azureconfig

import "net/http"

const challengeHeader = "Www-Authenticate"

// challenges sends requests to a vault. Azure's library sends each request of a new client without a token, until an answer names where
// tokens come from. Only one of them is sent at a time, and after the first challenge that is accepted none: the others get the same challenge.
type challenges struct {
	client doer
	// accepts reports whether a challenge can be used, so that it is kept.
	accepts func(header string) bool
	// slot holds the challenge, and is empty while a request without a token is sent. Its header is nil until it is known.
	slot chan http.Header
}

// A doer sends requests.
type doer interface {
	Do(r *http.Request) (*http.Response, error)
}

func newChallenges(client doer, accepts func(header string) bool) *challenges {
	c := &challenges{client: client, accepts: accepts, slot: make(chan http.Header, 1)}
	c.slot <- nil
	return c
}

// Do sends a request, or answers it with the known challenge.
func (c *challenges) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return c.client.Do(r)
	}
	var known http.Header
	select {
	case known = <-c.slot:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	defer func() { c.slot <- known }()
	if known != nil {
		return &http.Response{
			Status: "401 Unauthorized", StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: known.Clone(), Body: http.NoBody, Request: r,
		}, nil
	}
	resp, err := c.client.Do(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && c.accepts(resp.Header.Get(challengeHeader)) {
		known = http.Header{challengeHeader: {resp.Header.Get(challengeHeader)}}
	}
	return resp, err
}
