package provider

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const (
	// MaxAnswer limits the answer to a request for one secret, in bytes as they arrive. A Secret holds 1 MiB, and an
	// encoding such as base64 adds a third.
	//limit:reads Answer of a provider for a secret | unit=bytes | `Unavailable`; the answer is not read.
	MaxAnswer = 3 << 19
	// MaxListing limits the answer to a request for many secrets, or for their names, in bytes.
	//limit:reads Answer of a provider for a list or a batch | unit=bytes | `Unavailable`; the answer is not read.
	MaxListing = 8 << 20
)

// decoded is how many times the bytes of an answer are in memory during decoding.
const decoded = 2

// LimitAnswer returns a body that fails with an Error of class Unavailable after most bytes. While the answers of all requests together
// take the operator's memory for them, it waits. A provider's transport must wrap every answer with it, because a server can send without
// end. ctx is the context of the request.
func LimitAnswer(ctx context.Context, body io.ReadCloser, most int64) io.ReadCloser {
	return limitAnswer(ctx, body, most, func(bytes int64) { quota.Of(ctx).Spend(time.Now(), bytes) })
}

// limitAnswer is LimitAnswer with a function that is called when the body is closed, with the bytes that were read.
func limitAnswer(ctx context.Context, body io.ReadCloser, most int64, end func(bytes int64)) *limited {
	ctx, cancel := context.WithCancel(ctx)
	l := &limited{ReadCloser: body, ctx: ctx, most: most, left: most}
	l.held = quota.Of(ctx).Holder(func() {
		l.aborted.Store(true)
		cancel()         // It does not wait for more room.
		_ = body.Close() // Read then returns an error.
	})
	l.end = sync.OnceFunc(func() {
		cancel()
		l.held.Release()
		end(l.most - l.left)
	})
	return l
}

// BeginCall waits until the tenant may make one more request, for a transport that is not that of NewHTTPClient. The caller must call end.
// The error is ErrBusy if ctx ends before.
func BeginCall(ctx context.Context) (end func(), err error) {
	ended, err := quota.Of(ctx).Call(ctx)
	if err != nil {
		return nil, ErrBusy
	}
	return func() { ended(0) }, nil
}

// Reserve waits until a whole answer of at most most bytes may arrive, for a transport that cannot wrap its body. The caller must call
// release. The error is ErrNoRoom if ctx ends before.
func Reserve(ctx context.Context, most int64) (release func(), err error) {
	held := quota.Of(ctx).Holder(nil)
	if err := held.Grow(ctx, most, most); err != nil {
		return nil, ErrNoRoom
	}
	return held.Release, nil
}

type limited struct {
	io.ReadCloser

	ctx        context.Context //nolint:containedctx // It is that of the request.
	most, left int64
	held       *quota.Held
	aborted    atomic.Bool
	end        func()
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
	if err != nil && l.aborted.Load() {
		return n, ErrNoRoom
	}
	if l.held.Grow(l.ctx, decoded*(l.most-l.left-quota.Uncounted), decoded*l.most) != nil {
		return n, ErrNoRoom
	}
	return n, err
}

// Close implements io.Closer.
func (l *limited) Close() error {
	l.end()
	return l.ReadCloser.Close()
}

// ErrNoRoom is the error of an answer that exceeds the memory for answers.
var ErrNoRoom = NewError(Unavailable, "large responses of this store or of others fill the memory limit for responses; retrying")

// ErrBusy is the error of a request that was not made, because its tenant has too many in progress.
var ErrBusy = NewError(Unavailable, "the stores of this namespace, or this cluster store, have too many requests or too much data in progress; retrying with back-off")

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
