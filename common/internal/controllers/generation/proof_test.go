package generation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/proof"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// edit changes the record of the part of an object, as anyone who can edit Secrets of the namespace can.
func (g *genEnv) edit(name string, change func(rec *handoff.Record)) {
	g.Helper()
	testenv.Update(g.Client, g.partOf(name), func(s *corev1.Secret) {
		rec := handoff.RecordOf(s)
		change(&rec)
		if err := rec.Put(s); err != nil {
			g.Error(err)
		}
	})
}

// partOf returns the part of an object.
func (g *genEnv) partOf(name string) *corev1.Secret {
	g.Helper()
	for _, p := range g.parts() {
		if handoff.RecordOf(&p).Name == name {
			return &p
		}
	}
	g.Fatalf("%s has no part", name)
	return nil
}

// recordOf returns the record of the part of an object, and its one entry.
func (g *genEnv) recordOf(name string) (rec handoff.Record, entry handoff.Entry) {
	g.Helper()
	rec = handoff.RecordOf(g.partOf(name))
	for _, e := range rec.Entries {
		entry = e
	}
	return rec, entry
}

// each changes each entry of a record.
func each(change func(e *handoff.Entry)) func(rec *handoff.Record) {
	return func(rec *handoff.Record) {
		for id, e := range rec.Entries {
			change(&e)
			rec.Entries[id] = e
		}
	}
}

// TestForgedRecord edits records of parts, as a tenant can, so that they name the credential of "other".
func TestForgedRecord(t *testing.T) {
	g := newServedEnv(t, leased)
	g.Create(g.generator("stronger", leased))
	targeted := g.made("other")
	g.wantDelivered("other")
	_, other := g.recordOf("other")
	live := []string{targeted}
	cases := map[string]struct {
		reason string
		forge  func(own handoff.Entry) func(rec *handoff.Record)
		// lose deletes the object afterwards.
		lose bool
	}{
		"retired": {"A credential without a proof is not revoked.", func(own handoff.Entry) func(*handoff.Record) {
			return func(rec *handoff.Record) {
				rec.Retired = append(rec.Retired, handoff.Retired{Generator: own.Generator, Version: "x", State: other.State})
			}
		}, false},
		"own-proof": {"The proof of another credential proves nothing.", func(own handoff.Entry) func(*handoff.Record) {
			return func(rec *handoff.Record) {
				rec.Retired = append(rec.Retired, handoff.Retired{Generator: own.Generator, Version: "x", State: other.State, Proof: own.Proof})
			}
		}, false},
		"other-proof": {"The proof of the part of another object proves nothing here.", func(own handoff.Entry) func(*handoff.Record) {
			return func(rec *handoff.Record) {
				rec.Retired = append(rec.Retired, handoff.Retired{Generator: own.Generator, Version: "x", State: other.State, Proof: other.Proof})
			}
		}, false},
		"other-generator": {"A proof is bound to its generator.", func(own handoff.Entry) func(*handoff.Record) {
			return func(rec *handoff.Record) {
				rec.Retired = append(rec.Retired, handoff.Retired{Generator: handoff.Generator{Kind: own.Generator.Kind, Name: "stronger"}, Version: "x", State: own.State, Proof: own.Proof})
			}
		}, false},
		"entry": {"A changed entry is not revoked when its object is deleted.", func(handoff.Entry) func(*handoff.Record) {
			return each(func(e *handoff.Entry) { e.State = other.State })
		}, true},
		"former-release": {"An entry from before there were proofs is not revoked, and its part is released.", func(handoff.Entry) func(*handoff.Record) {
			return each(func(e *handoff.Entry) { e.Proof = "" })
		}, true},
	}
	for name, tc := range cases {
		live = append(live, g.made(name))
		g.wantDelivered(name)
		_, own := g.recordOf(name)
		g.edit(name, tc.forge(own))
		if tc.lose {
			g.Delete(g.Get(name))
		}
		g.wantLeftBehind(name)
		g.Eventually(func() string {
			for _, p := range g.parts() {
				if rec := handoff.RecordOf(&p); rec.Name == name && len(rec.Retired) > 0 {
					return "the record still has the forged entry"
				} else if tc.lose && rec.Name == name {
					return "the part is not released"
				}
			}
			return ""
		})
		g.wantLive(live...)
		if n := g.Backend.Count(fake.CallCleanup); n != 0 {
			t.Errorf("%s: %s\n%d credentials were revoked", name, tc.reason, n)
		}
	}
}

// wantLeftBehind waits for the event about a credential that stays valid.
func (g *genEnv) wantLeftBehind(name string) {
	g.Helper()
	g.Eventually(func() string {
		if got := g.EventsOf(name); !slices.Contains(got, "LeftBehind") {
			return fmt.Sprintf("%s has the events %q, want LeftBehind", name, got)
		}
		return ""
	})
}

// TestUnprovenIsReplaced renews a credential whose record lost its proof. It is replaced before it expires.
func TestUnprovenIsReplaced(t *testing.T) {
	g := newGenEnv(t, leased)
	user := g.made("db")
	g.wantDelivered("db")
	g.edit("db", each(func(e *handoff.Entry) { e.Proof = "" }))
	g.pass(50 * time.Minute)
	g.wantUser("db", "the credential is replaced", not(user))
	g.wantLeftBehind("db")
	if n := g.Backend.Count(fake.CallRenew); n != 0 {
		t.Errorf("%d renewals of an unproven credential", n)
	}
}

// TestChangedKey changes and loses the key of proofs.
func TestChangedKey(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(s *corev1.Secret)
		// left is true if the credential must not be revoked any more.
		left bool
	}{
		"Changed": {"The former key is accepted as the previous one.", func(s *corev1.Secret) {
			s.Data[proof.Previous], s.Data[proof.Current] = s.Data[proof.Current], []byte("0123456789abcdef0123456789abcdef")
		}, false},
		"Replaced": {"A proof by an unknown key proves nothing.", func(s *corev1.Secret) { s.Data[proof.Current] = []byte("0123456789abcdef0123456789abcdef") }, true},
		"Lost":     {"A new key is made, and proofs by the lost one prove nothing.", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &genEnv{Env: testenv.NewIdle(t)}
			g.Backend = g.Server.Backend("gen", fake.OnRevoke(g.checkRevoked))
			g.Create(g.generator("gen", leased))
			start := func() { g.Start(testenv.Ahead(&g.ahead), operator.WithNamespace(g.NS)) }
			start()
			user := g.made("db")
			g.wantDelivered("db")
			keys := &corev1.Secret{}
			if err := g.API.Get(g.Ctx, types.NamespacedName{Namespace: g.NS, Name: proof.Name("fake.direct-secrets.io")}, keys); err != nil {
				t.Fatal(err)
			}
			if tc.change == nil {
				g.Delete(keys)
			} else {
				testenv.Update(g.Client, keys, tc.change)
			}
			g.Stop()
			start()
			g.Delete(g.Get("db"))
			g.wantNoParts()
			if !tc.left {
				g.wantLive()
				return
			}
			g.wantLeftBehind("db")
			g.wantLive(user)
		})
	}
}
