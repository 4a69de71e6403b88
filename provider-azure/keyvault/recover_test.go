package keyvault

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

// interrupted makes a client fail the wait with a number, as if the time of the call was over. The later ones succeed.
func interrupted(srv *emulator.Server, wait int) (change func(*testStore), done func() bool) {
	waits := 0
	return func(s *testStore) {
		s.sleep = func(context.Context, time.Duration) bool {
			srv.Advance(time.Second)
			waits++
			return waits-1 != wait
		}
	}, func() bool { return waits > wait }
}

// deleted creates a secret with an old value and deletes it.
func deleted(t *testing.T, c *Client) {
	t.Helper()
	create(t, c, "", "old")
	if err := c.Delete(soon(t), target(""), observe(t, c, "")); err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedCreate ends the time of a Create in each of its waits. It fails, and the next attempt writes the value, also if Key
// Vault does not name the version that it recovers.
func TestInterruptedCreate(t *testing.T) {
	for name, body := range map[string]emulator.BodyFault{"Version": "", "NoVersion": emulator.BodyNoVersion} {
		t.Run(name, func(t *testing.T) { interruptCreates(t, body) })
	}
}

func interruptCreates(t *testing.T, body emulator.BodyFault) {
	t.Helper()
	for wait := range 100 {
		srv := start(t)
		change, done := interrupted(srv, wait)
		c := client(t, srv, change)
		deleted(t, c)
		srv.Inject(emulator.Fault{Call: emulator.CallRecover, Body: body})
		_, err := c.Create(soon(t), target(""), []byte("new"), mark)
		if !done() {
			if err != nil || wait < 20 {
				t.Errorf("Without an interruption Create fails, or waits only %d times: %v", wait, err)
			}
			return
		}
		fails(t, "A write that is not complete is an error.", err, provider.Unavailable, "has not completed its deletion or recovery in time")
		srv.Advance(time.Minute)
		if o, err := c.Observe(soon(t), target("")); !provider.IsNotFound(err) {
			t.Errorf("after wait %d the old value %q counts: %v", wait, o.Data, err)
		}
		create(t, c, "", "new")
		if o := observe(t, c, ""); string(o.Data) != "new" || o.Mark != mark {
			t.Errorf("after wait %d the value is %q, the mark %q", wait, o.Data, o.Mark)
		}
	}
	t.Error("Create never succeeds.")
}

// TestInterruptedDelete ends the time of a Delete, which has taken a version of another client, in each of its waits. It never reports
// success, and the value of the other client is current in the end.
func TestInterruptedDelete(t *testing.T) {
	for wait := range 100 {
		srv := start(t)
		change, done := interrupted(srv, wait)
		c := client(t, srv, change)
		create(t, c, "", "ours")
		ctx, o := soon(t), observe(t, c, "")
		crossedDelete(ctx, t, srv)
		err := c.Delete(ctx, target(""), o)
		if !done() {
			fails(t, "A deletion that covers a version of another client is a conflict.", err, provider.Conflict, "another client changed it")
			return
		}
		fails(t, "A deletion that lost a version of another client is not a success.", err, provider.Unavailable, "another client changed the secret meanwhile, so that it must be recovered")
		if err := c.Delete(ctx, target(""), o); err == nil {
			t.Errorf("after wait %d the next attempt reports success", wait)
		}
		if got := string(observe(t, c, "").Data); got != "theirs" {
			t.Errorf("after wait %d the value is %q", wait, got)
		}
	}
	t.Error("Delete never ends.")
}

// crossedDelete holds the next DeleteSecret, and stores a value before that call is released.
func crossedDelete(ctx context.Context, t *testing.T, srv *emulator.Server) {
	t.Helper()
	release := srv.Inject(emulator.Fault{Call: emulator.CallDelete, Hang: true})
	go func() {
		defer release()
		if err := srv.Wait(ctx, 1, emulator.CallDelete); err != nil {
			t.Error(err)
		}
		if _, err := srv.Put("db", []byte("theirs")); err != nil {
			t.Error(err)
		}
	}()
}

// TestUnclearConflict answers writes with conflicts that name no cause.
func TestUnclearConflict(t *testing.T) {
	cases := map[string]struct {
		reason  string
		deleted bool
		times   int
		want    provider.Class
	}{
		"Once":     {"One such conflict is repeated.", false, 1, ""},
		"Repeated": {"A repeated one is a name that is taken by a soft-deleted secret.", true, 2, ""},
		"Code":     {"The code of the cause can come later.", true, 1, ""},
		"Always":   {"One that never ends is no success.", true, 3, provider.Conflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv)
			if tc.deleted {
				deleted(t, c)
				srv.Advance(emulator.DeletionTime)
			}
			if tc.want != "" {
				tc.times = 0
			}
			srv.Inject(emulator.Fault{Call: emulator.CallSet, Times: tc.times, Status: http.StatusConflict, Code: "Conflict"})
			_, err := c.Create(soon(t), target(""), []byte("new"), mark)
			if tc.want != "" {
				fails(t, tc.reason, err, tc.want, "another client changes it")
				return
			}
			if err != nil {
				t.Fatalf("%s\nCreate(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff("new", string(observe(t, c, "").Data)); diff != "" {
				t.Errorf("%s\nvalue: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecoveredByOther makes another client recover and write the secret while Create waits for its name.
func TestRecoveredByOther(t *testing.T) {
	srv := start(t)
	c := client(t, srv, func(s *testStore) {
		once := false
		s.sleep = func(context.Context, time.Duration) bool {
			if srv.Advance(time.Second); !once && srv.Count(emulator.CallRecover) > 0 {
				once = true
				put(t, srv, "db", "theirs")
			}
			return true
		}
	})
	deleted(t, c)
	_, err := c.Create(soon(t), target(""), []byte("ours"), mark)
	fails(t, "The version of another client is not written over.", err, provider.Conflict, "another client recovered it at the same time")
	if diff := cmp.Diff("theirs", string(observe(t, c, "").Data)); diff != "" {
		t.Errorf("value: -want, +got:\n%s", diff)
	}
}
