package emulator

import (
	"encoding/base64"
	"encoding/json"
)

// A page is an answer that may go on in a next one. cut damages it: it keeps
// the first entries and treats the rest as the fault says.
type page interface {
	cut(how PageFault, keep int)
}

// cutEntries returns the entries that stay, and the token for a page behind
// them. rest names where the dropped entries begin.
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

// A token is opaque to clients. It is bound to the query that it continues,
// as a token of the service is.
type pageToken struct {
	Query    string          `json:"q"`
	Position json.RawMessage `json:"p"`
}

func encodeToken(query string, position any) string {
	p, err := json.Marshal(position)
	if err != nil {
		panic(err) // a position is made of numbers and strings
	}
	b, err := json.Marshal(pageToken{Query: query, Position: p})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeToken reads the position that a token holds. Without a token the
// position stays as it is.
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

// fingerprint tells queries apart without repeating them in a token.
func fingerprint(query any) string {
	b, err := json.Marshal(query)
	if err != nil {
		panic(err) // a query was decoded from JSON
	}
	return hashString(b)
}
