package provider

import (
	"context"
	"io"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
)

const (
	// MaxAnswer bounds the answer to a request for one secret, in bytes as they arrive. A Secret holds 1 MiB, and an
	// encoding such as base64 adds a third.
	MaxAnswer = 3 << 19
	// MaxListing bounds the answer to a request for many secrets, or for their names.
	MaxListing = 8 << 20
)

// decoded is how often the bytes of an answer are there while it is decoded.
const decoded = 2

// LimitAnswer returns a body that fails with an Error of class Unavailable once more than most bytes were read of it, or more
// than the operator has room for beside the answers of other requests. The transport of a provider puts every answer into one,
// since a server can send without end. ctx is that of the request.
func LimitAnswer(ctx context.Context, body io.ReadCloser, most int64) io.ReadCloser {
	return &limited{ReadCloser: body, most: most, left: most, share: budget.Of(ctx)}
}

type limited struct {
	io.ReadCloser

	most, left int64
	// share has counted bytes of it.
	share   *budget.Share
	counted int64
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
	if more := decoded*(l.most-l.left-budget.Uncounted) - l.counted; l.share != nil && more > 0 {
		if !l.share.Take(more, decoded*l.most) {
			return n, ErrNoRoom
		}
		l.counted += more
	}
	return n, err
}

// Close implements io.Closer.
func (l *limited) Close() error {
	if l.share != nil {
		l.share.Add(-l.counted)
		l.share.Spend(time.Now(), l.most-l.left)
		l.share = nil
	}
	return l.ReadCloser.Close()
}

// ErrNoRoom is the error of an answer for which there is no room.
var ErrNoRoom = NewError(Unavailable, "large answers, of this store or of others, fill the memory that is set aside for them; it is tried again")

func (l *limited) tooLarge() error {
	return NewError(Unavailable, "the provider's answer is larger than %d KiB; check the address, and store a smaller value", l.most>>10)
}
