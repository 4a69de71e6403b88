package render

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The decoding strategies. Unset means None.
const (
	decodeNone      = "None"
	decodeBase64    = "Base64"
	decodeBase64URL = "Base64URL"
	decodeAuto      = "Auto"
)

var decodings = []string{decodeNone, decodeBase64, decodeBase64URL, decodeAuto}

// The policies for null bytes. Unset means Ignore.
const nullsIgnore, nullsFail = "Ignore", "Fail"

// Decode decodes a value by a decodingStrategy. None returns it unchanged. Base64 and Base64URL use the alphabets of
// RFC 4648, with or without padding, on one or several lines. Auto decodes Base64 or Base64URL with correct padding,
// and returns anything else unchanged. It also decodes every word of four letters, because that is valid Base64.
func Decode(value []byte, strategy string) ([]byte, error) {
	std, url := base64.StdEncoding, base64.URLEncoding
	text := strings.TrimSpace(string(value))
	var tries []*base64.Encoding
	switch {
	case strategy == decodeBase64:
		tries = []*base64.Encoding{std, base64.RawStdEncoding}
	case strategy == decodeBase64URL:
		tries = []*base64.Encoding{url, base64.RawURLEncoding}
	case strategy == decodeAuto && text != "":
		tries = []*base64.Encoding{std, url}
	default:
		return value, nil
	}
	for _, e := range tries {
		if out, err := e.DecodeString(text); err == nil {
			return out, nil
		}
	}
	if strategy == decodeAuto {
		return value, nil
	}
	return nil, provider.NewError(provider.Invalid, "its value is not %s, as decodingStrategy requires; correct the value or the strategy", strategy)
}

// The conversion strategies. Unset means Default.
const (
	convertDefault = "Default"
	convertUnicode = "Unicode"
)

// ConvertKey replaces each character that is not allowed in a key of a Secret by "_". The strategy Unicode replaces
// it by _U, its code in four or more hexadecimal digits, and _.
func ConvertKey(key, strategy string) string {
	var b strings.Builder
	for _, c := range key {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			b.WriteRune(c)
		case strategy == convertUnicode:
			fmt.Fprintf(&b, "_U%04x_", c)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}
