package provider

import "io"

const (
	// MaxAnswer bounds the answer to a request for one secret, in bytes as they arrive. A Secret holds 1 MiB, and an
	// encoding such as base64 adds a third.
	MaxAnswer = 3 << 19
	// MaxListing bounds the answer to a request for many secrets, or for their names.
	MaxListing = 16 << 20
)

// LimitAnswer returns a body that fails with an Error of class Unavailable once more than most bytes were read of it.
// The transport of a provider puts every answer into one, since a server can send without end.
func LimitAnswer(body io.ReadCloser, most int64) io.ReadCloser {
	return &limited{body, most, most}
}

type limited struct {
	io.ReadCloser

	most, left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, l.tooLarge()
	}
	// One more than is left shows that there is more.
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, l.tooLarge()
	}
	return n, err
}

func (l *limited) tooLarge() error {
	return NewError(Unavailable, "the provider's answer is larger than %d KiB; check the address, and store a smaller value", l.most>>10)
}
