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
type pageToken[P any] struct {
	Query    string
	Position P
}

func encodeToken[P any](query string, position P) string {
	return base64.RawURLEncoding.EncodeToString(marshal(pageToken[P]{query, position}))
}

// decodeToken decodes the position in a token. Without a token it is the zero value.
func decodeToken[P any](token, query string) (position P, err error) {
	var t pageToken[P]
	b, err := base64.RawURLEncoding.DecodeString(token)
	if token != "" && (err != nil || json.Unmarshal(b, &t) != nil || t.Query != query) {
		return position, badRequest("InvalidNextTokenException", "Invalid NextToken.")
	}
	return t.Position, nil
}

// fingerprint identifies a query, so that a token need not contain it.
func fingerprint(query any) string { return hashString(marshal(query)) }
