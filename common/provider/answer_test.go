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

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
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

// TestLimitAnswerCounts checks that answers count for a tenant while they are read. One above its limits waits, and closed answers do
// not count.
func TestLimitAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &quota.Quotas{}
		tenant := shared.Tenant("shop")
		ctx := quota.With(t.Context(), tenant)
		small := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, quota.Uncounted))), provider.MaxAnswer)
		if _, err := io.Copy(io.Discard, small); err != nil || tenant.Used() != 0 {
			t.Errorf("a small answer counts %d bytes: %v", tenant.Used(), err)
		}
		open := []io.Closer{small}
		read := func(ctx context.Context) error {
			body := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, 1<<20))), provider.MaxAnswer)
			open = append(open, body)
			_, err := io.Copy(io.Discard, body)
			return err
		}
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		n := 0
		for read(short) == nil {
			n++
		}
		if diff := cmp.Diff((quota.Own+2*provider.MaxAnswer)/(2<<20), n); diff != "" {
			t.Errorf("answers that fit: -want, +got:\n%s", diff)
		}
		if err := read(short); !errors.Is(err, provider.ErrNoRoom) {
			t.Errorf("an answer that never fits: %v", err)
		}
		if err := read(quota.With(t.Context(), shared.Tenant("other"))); err != nil {
			t.Errorf("another tenant is refused: %v", err)
		}
		first := open[1]
		time.AfterFunc(time.Second, func() { _ = first.Close() })
		if err := read(ctx); err != nil {
			t.Errorf("an answer that fits when another one is closed: %v", err)
		}
		for _, body := range open {
			if err := errors.Join(body.Close(), body.Close()); err != nil {
				t.Error(err)
			}
		}
		if n := shared.Used(); n != 0 {
			t.Errorf("%d bytes count although all answers are closed", n)
		}
	})
}

// TestLimitAnswerSlow has an answer stop while another tenant waits for room. It ends with an error.
func TestLimitAnswerSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &quota.Quotas{}
		reader, writer := io.Pipe()
		slow := provider.LimitAnswer(quota.With(t.Context(), shared.Tenant("slow")), reader, provider.MaxListing)
		go func() { _, _ = writer.Write(make([]byte, 4<<20)) }()
		done := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, slow)
			done <- errors.Join(err, slow.Close())
		}()
		synctest.Wait()
		body := provider.LimitAnswer(quota.With(t.Context(), shared.Tenant("shop")), io.NopCloser(bytes.NewReader(make([]byte, 4<<20))), provider.MaxListing)
		if _, err := io.Copy(io.Discard, body); err != nil {
			t.Errorf("the other answer: %v", err)
		}
		if err := <-done; !errors.Is(err, provider.ErrNoRoom) {
			t.Errorf("the slow answer: %v", err)
		}
	})
}

// TestLimitAnswerWaiting has two answers of a tenant wait for each other. Both end while another tenant waits for room.
func TestLimitAnswerWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &quota.Quotas{}
		read := func(ctx context.Context, tenant string) error {
			body := provider.LimitAnswer(quota.With(ctx, shared.Tenant(tenant)), io.NopCloser(bytes.NewReader(make([]byte, provider.MaxListing))), provider.MaxListing)
			var err error
			for n := 0; n < provider.MaxListing && err == nil; n += 32 << 10 { // Both grow at the same time.
				_, err = io.CopyN(io.Discard, body, 32<<10)
				time.Sleep(time.Millisecond)
			}
			return errors.Join(err, body.Close())
		}
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- read(t.Context(), "slow") }()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := shared.Tenant("slow").Used(); n <= quota.Own {
			t.Fatalf("the answers have %d bytes, and do not wait for each other", n)
		}
		start := time.Now()
		if err := read(t.Context(), "shop"); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("the other tenant: %v after %s", err, time.Since(start))
		}
		for range 2 {
			if err := <-done; !errors.Is(err, provider.ErrNoRoom) {
				t.Errorf("a slow answer: %v", err)
			}
		}
	})
}

// TestLimitAnswerSpends reads answers. Their bytes count for the tenant's rate limit, also if they fail.
func TestLimitAnswerSpends(t *testing.T) {
	t.Parallel()
	tenant := (&quota.Quotas{}).Tenant("shop")
	ctx := quota.With(t.Context(), tenant)
	for range quota.Burst*quota.Call>>20 + 1 {
		body := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, 2<<20))), 1<<20)
		if _, err := io.Copy(io.Discard, body); !provider.IsTooLarge(err) {
			t.Error(err)
		}
		if err := errors.Join(body.Close(), body.Close()); err != nil {
			t.Error(err)
		}
	}
	if tenant.Wait(time.Now(), false) == 0 {
		t.Error("answers that failed cost nothing")
	}
}

// TestReserve reserves whole answers. One that does not fit waits for the others.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := (&quota.Quotas{}).Tenant("shop")
		ctx := quota.With(t.Context(), tenant)
		var ended atomic.Int32
		for range 5 {
			go func() {
				release, err := provider.Reserve(ctx, 3<<20)
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
		if _, err := provider.Reserve(short, 3<<20); !errors.Is(err, provider.ErrNoRoom) {
			t.Errorf("without room: %v", err)
		}
		if diff := cmp.Diff(int64(6<<20), tenant.Used()); diff != "" {
			t.Errorf("bytes: -want, +got:\n%s", diff)
		}
		time.Sleep(5 * time.Second)
		if ended.Load() != 5 || tenant.Used() != 0 {
			t.Errorf("%d of 5 answers, and %d bytes count after the end", ended.Load(), tenant.Used())
		}
	})
}
