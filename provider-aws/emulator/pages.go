package emulator

import (
	"encoding/base64"
	"encoding/json"
)

// A page is an answer that can continue on a next page. cut damages it: it keeps the first entries and treats
// the rest as the fault specifies.
type page interface {
	cut(how PageFault, keep int)
}

// cutEntries returns the entries to keep, and the token for the page after them. rest returns the token for the
// page that starts at an index.
func cutEntries[T any](entries []T, how PageFault, keep int, rest func(int) string) ([]T, string) {
	keep = min(max(keep, 0), len(entries))
	token := ""
	switch how {
	case PageSplit:
		token = rest(keep)
	case PageLost:
		token = rest(len(entries))
	case PageCut:
	}
	return entries[:keep], token
}

// A pageToken is opaque to clients. It is valid only for the query that it continues, like a token of the
// service.
type pageToken struct {
	Query    string          `json:"q"`
	Position json.RawMessage `json:"p"`
}

func encodeToken(query string, position any) string {
	p, err := json.Marshal(position)
	if err != nil {
		panic(err) // a position has only numbers and strings
	}
	b, err := json.Marshal(pageToken{Query: query, Position: p})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeToken decodes the position in a token. Without a token the position stays unchanged.
func decodeToken(token, query string, position any) error {
	if token == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return invalidNextToken()
	}
	var t pageToken
	if err := json.Unmarshal(b, &t); err != nil || t.Query != query {
		return invalidNextToken()
	}
	if err := json.Unmarshal(t.Position, position); err != nil {
		return invalidNextToken()
	}
	return nil
}

// fingerprint identifies a query, so that a token need not contain it.
func fingerprint(query any) string {
	b, err := json.Marshal(query)
	if err != nil {
		panic(err) // a query was decoded from JSON, so it can be encoded
	}
	return hashString(b)
}
