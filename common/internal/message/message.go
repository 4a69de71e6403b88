// Package message bounds what loops write into conditions, statuses and events.
package message

import "strings"

// Cut shortens a text to a number of bytes, at least three, and shows that it did.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}
