package provider

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
)

const (
	// MaxAnswer limits the answer to a request for one secret, in bytes as they arrive. A Secret holds 1 MiB, and an
	// encoding such as base64 adds a third.
	MaxAnswer = 3 << 19
	// MaxListing limits the answer to a request for many secrets, or for their names, in bytes.
	MaxListing = 8 << 20
)

// decoded is how many times the bytes of an answer are in memory during decoding.
const decoded = 2

// LimitAnswer returns a body that fails with an Error of class Unavailable after most bytes, or when the answers of
// all requests together exceed the operator's memory limits. A provider's transport must wrap every answer with it,
// because a server can send without end. ctx is the context of the request.
func LimitAnswer(ctx context.Context, body io.ReadCloser, most int64) io.ReadCloser {
	l := &limited{ReadCloser: body, most: most, left: most, share: budget.Of(ctx)}
	if l.share != nil {
		l.share.Open(l)
	}
	return l
}

// Reserve waits for room for a whole answer of at most most bytes before it arrives, for a transport that cannot wrap its body.
// The caller must call release. The error is ErrNoRoom if ctx ends before.
func Reserve(ctx context.Context, most int64) (release func(), err error) {
	share := budget.Of(ctx)
	if share == nil {
		return func() {}, nil
	}
	for !share.Take(most, 0) {
		if !waitForRoom(ctx, share, most, 0) {
			return nil, ErrNoRoom
		}
	}
	return func() { share.Add(-most) }, nil
}

type limited struct {
	io.ReadCloser

	most, left int64
	// share counts bytes of this body; nil if there is none.
	share   *budget.Share
	counted atomic.Int64
	aborted atomic.Bool
}

// Size implements budget.Answer.
func (l *limited) Size() int64 { return l.counted.Load() }

// Abort implements budget.Answer.
func (l *limited) Abort() {
	l.aborted.Store(true)
	_ = l.ReadCloser.Close() // Read then returns an error.
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, l.tooLarge()
	}
	// Reading one byte more than is left shows whether there is more.
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, l.tooLarge()
	}
	if l.aborted.Load() {
		return n, ErrNoRoom
	}
	if more := decoded*(l.most-l.left-budget.Uncounted) - l.counted.Load(); l.share != nil && more > 0 {
		if !l.share.Take(more, decoded*l.most) {
			return n, ErrNoRoom
		}
		l.counted.Add(more)
	}
	return n, err
}

// Close implements io.Closer.
func (l *limited) Close() error {
	if l.share != nil {
		l.share.Close(l)
		l.share.Add(-l.counted.Load())
		l.share.Spend(time.Now(), l.most-l.left)
		l.share = nil
	}
	return l.ReadCloser.Close()
}

// ErrNoRoom is the error of an answer that exceeds the memory for answers.
var ErrNoRoom = NewError(Unavailable, "large responses of this store or of others fill the memory limit for responses; retrying")

// larger is the start of the message for an answer that is too large.
const larger = "the provider's response is larger than "

// IsTooLarge reports whether an answer was larger than its limit, so that a provider can ask for less.
func IsTooLarge(err error) bool {
	var e *Error
	return errors.As(err, &e) && e != nil && strings.HasPrefix(e.Message, larger)
}

func (l *limited) tooLarge() error {
	return NewError(Unavailable, larger+"%d KiB; check the address, or store a smaller value", l.most>>10)
}
