package cryptofuncs

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRC2 checks those vectors of RFC 2268, section 5, whose key bits are all effective.
func TestRC2(t *testing.T) {
	cases := map[string]struct {
		reason               string
		key, plain, expected []byte
	}{
		"Ones": {
			reason:   "64 bits.",
			key:      bytes.Repeat([]byte{0xff}, 8),
			plain:    bytes.Repeat([]byte{0xff}, 8),
			expected: []byte{0x27, 0x8b, 0x27, 0xe4, 0x2e, 0x2f, 0x0d, 0x49},
		},
		"Byte": {
			reason:   "64 bits.",
			key:      []byte{0x30, 0, 0, 0, 0, 0, 0, 0},
			plain:    []byte{0x10, 0, 0, 0, 0, 0, 0, 0x01},
			expected: []byte{0x30, 0x64, 0x9e, 0xdf, 0x9b, 0xe7, 0xd2, 0xc2},
		},
		"Long": {
			reason:   "128 bits.",
			key:      []byte{0x88, 0xbc, 0xa9, 0x0e, 0x90, 0x87, 0x5a, 0x7f, 0x0f, 0x79, 0xc3, 0x84, 0x62, 0x7b, 0xaf, 0xb2},
			plain:    make([]byte, 8),
			expected: []byte{0x22, 0x69, 0x55, 0x2a, 0xb0, 0xf8, 0x5c, 0xa6},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, got := newRC2(tc.key), make([]byte, 8)
			c.Encrypt(got, tc.plain)
			if diff := cmp.Diff(tc.expected, got); diff != "" {
				t.Errorf("%s\nEncrypt(...): -want, +got:\n%s", tc.reason, diff)
			}
			c.Decrypt(got, got)
			if diff := cmp.Diff(tc.plain, got); diff != "" {
				t.Errorf("%s\nDecrypt(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
