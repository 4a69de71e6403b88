package provider_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestLimitAnswer(t *testing.T) {
	tooLarge := provider.NewError(provider.Unavailable, "the provider's response is larger than 2 KiB; check the address, or store a smaller value")
	const most = 2 << 10
	cases := map[string]struct {
		reason    string
		size, got int
		err       error
	}{
		"Empty": {"An empty answer is valid.", 0, 0, nil},
		"Most":  {"An answer of the maximum size is complete.", most, most, nil},
		"More":  {"One byte more is an error, not a shorter answer.", most + 1, most, tooLarge},
		"Much":  {"A larger answer is not read to its end.", 100 * most, most, tooLarge},
	}
	readers := map[string]func(io.Reader) io.Reader{"Whole": func(r io.Reader) io.Reader { return r }, "Bytes": iotest.OneByteReader, "DataErr": iotest.DataErrReader}
	for name, tc := range cases {
		for how, reader := range readers {
			t.Run(name+how, func(t *testing.T) {
				sent := bytes.NewReader(make([]byte, tc.size))
				got, err := io.ReadAll(provider.LimitAnswer(t.Context(), io.NopCloser(reader(sent)), most))
				if diff := cmp.Diff(tc.err, err); diff != "" || len(got) != tc.got {
					t.Errorf("%s\nread %d bytes, want %d; error: -want, +got:\n%s", tc.reason, len(got), tc.got, diff)
				}
				if read := tc.size - sent.Len(); read > most+1024 { // DataErrReader reads ahead.
					t.Errorf("%s\n%d bytes were read from the connection", tc.reason, read)
				}
			})
		}
	}
}

// TestLimitAnswerCounts checks that answers count for a store while they are read. An answer above the store's share
// fails, and closed answers do not count.
func TestLimitAnswerCounts(t *testing.T) {
	t.Parallel()
	shared := &budget.Budget{}
	share := shared.Share("shop")
	ctx := budget.With(t.Context(), share)
	small := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, budget.Uncounted))), provider.MaxAnswer)
	if _, err := io.Copy(io.Discard, small); err != nil || share.Used() != 0 {
		t.Errorf("a small answer counts %d bytes: %v", share.Used(), err)
	}
	var open []io.Closer
	var failed error
	for failed == nil && len(open) < 100 {
		body := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, 1<<20))), provider.MaxAnswer)
		open = append(open, body)
		_, failed = io.Copy(io.Discard, body)
	}
	if diff := cmp.Diff(provider.Unavailable, provider.ClassOf(failed)); diff != "" {
		t.Errorf("class: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff((budget.Own+2*provider.MaxAnswer)/(2*(1<<20-budget.Uncounted))+1, len(open)); diff != "" {
		t.Errorf("the answer that does not fit: -want, +got:\n%s", diff)
	}
	other := provider.LimitAnswer(budget.With(t.Context(), shared.Share("other")), io.NopCloser(bytes.NewReader(make([]byte, 1<<20))), provider.MaxAnswer)
	if _, err := io.Copy(io.Discard, other); err != nil {
		t.Errorf("another store is refused: %v", err)
	}
	for _, body := range append(open, other, small) {
		if err := errors.Join(body.Close(), body.Close()); err != nil {
			t.Error(err)
		}
	}
	if n := shared.Used(); n != 0 {
		t.Errorf("%d bytes count although all answers are closed", n)
	}
}

// TestLimitAnswerSpends makes answers fail all the time for lack of memory. Their bytes count for the tenant's rate
// limit.
func TestLimitAnswerSpends(t *testing.T) {
	t.Parallel()
	share := (&budget.Budget{}).Share("shop")
	ctx := budget.With(t.Context(), share)
	share.Add(budget.Own + 2*provider.MaxAnswer)
	for range budget.Burst >> 20 {
		body := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, 2<<20))), 4<<20)
		for n := int64(0); n < 2<<20; {
			read, _ := body.Read(make([]byte, 2<<20))
			n += int64(read)
		}
		if err := errors.Join(body.Close(), body.Close()); err != nil {
			t.Error(err)
		}
	}
	if share.Wait(time.Now(), false) == 0 {
		t.Error("answers that failed cost nothing")
	}
}

// TestReserve reserves whole answers. One that does not fit waits for the others.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := (&budget.Budget{}).Share("shop")
		ctx := budget.With(t.Context(), share)
		var ended atomic.Int32
		for range 5 {
			go func() {
				release, err := provider.Reserve(ctx, 1<<20)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				release()
				ended.Add(1)
			}()
		}
		short, cancel := context.WithTimeout(ctx, time.Second/2)
		defer cancel()
		synctest.Wait()
		if _, err := provider.Reserve(short, 1<<20); !errors.Is(err, provider.ErrNoRoom) {
			t.Errorf("without room: %v", err)
		}
		if diff := cmp.Diff(int64(2<<20), share.Used()); diff != "" {
			t.Errorf("bytes: -want, +got:\n%s", diff)
		}
		time.Sleep(5 * time.Second)
		if ended.Load() != 5 || share.Used() != 0 {
			t.Errorf("%d of 5 answers, and %d bytes count after the end", ended.Load(), share.Used())
		}
	})
}
