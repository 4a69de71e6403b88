package presence

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// script plays events for a Board, with its own clock.
type script struct {
	*Board
	clock   time.Time
	version int
	changes int
}

func newScript() *script {
	s := &script{clock: time.Unix(1_000_000, 0)}
	s.Board = newBoard(member("own", "Own"), Timing{}.withDefaults(), func() time.Time { return s.clock })
	s.OnChange(func() { s.changes++ })
	return s
}

func member(name string, kinds ...string) Member {
	m := Member{Module: name + "." + v1alpha1.Group, Name: name}
	for _, k := range kinds {
		m.Kinds = append(m.Kinds, Kind{Group: m.Module, Kind: k})
	}
	return m
}

// renewed plays an event of a Lease with a duration of 40 seconds.
func (s *script) renewed(m Member, change ...func(*coordinationv1.Lease)) {
	raw, err := encode(m)
	if err != nil {
		panic(err)
	}
	s.version++
	seconds := int32(40)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: leaseName(m), ResourceVersion: time.Duration(s.version).String(),
			Annotations: map[string]string{memberAnnotation: raw},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds},
	}
	for _, f := range change {
		f(l)
	}
	s.see(l)
}

// after lets time pass while the own Lease and those of members are renewed every ten seconds.
func (s *script) after(d time.Duration, members ...Member) {
	for end := s.clock.Add(d); s.clock.Before(end); s.checkExpired() {
		s.clock = s.clock.Add(min(10*time.Second, end.Sub(s.clock)))
		s.renewed(s.self)
		for _, m := range members {
			s.renewed(m)
		}
	}
}

// unseen lets time pass without events.
func (s *script) unseen(d time.Duration) {
	for end := s.clock.Add(d); s.clock.Before(end); s.checkExpired() {
		s.clock = s.clock.Add(time.Second)
	}
}

func TestMissing(t *testing.T) {
	aws := member("aws", "Store")
	damaged := func(l *coordinationv1.Lease) { l.Annotations[memberAnnotation] = `{"module": 7}` }
	type want struct {
		Missing bool
		Wait    time.Duration
	}
	cases := map[string]struct {
		reason string
		script func(*script) (since time.Time)
		ref    v1alpha1.StoreRef
		want   want
	}{
		"Served": {
			reason: "a Kind that a running member serves is not missing",
			script: func(s *script) time.Time { s.renewed(s.self); s.renewed(aws); return s.clock },
		},
		"ServedByMyself": {
			reason: "the operator's own Kinds are never missing, also before the first event",
			script: func(s *script) time.Time { return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "Own"},
		},
		"NothingSeen": {
			reason: "without its own Lease, an operator reports no Kind as missing",
			script: func(s *script) time.Time { s.unseen(time.Hour); return s.clock.Add(-time.Hour) },
			want:   want{Wait: 25 * time.Second},
		},
		"JustStarted": {
			reason: "at the start, others may still be starting, too",
			script: func(s *script) time.Time { s.after(10 * time.Second); return s.clock.Add(-time.Hour) },
			want:   want{Wait: 25 * time.Second},
		},
		"NeverSeen": {
			reason: "25 seconds are enough, so that it is reported within 30",
			script: func(s *script) time.Time { s.after(35 * time.Second); return s.clock.Add(-time.Hour) },
			want:   want{Missing: true},
		},
		"NewObject": {
			reason: "a new object may have been created together with its module",
			script: func(s *script) time.Time { s.after(time.Hour); return s.clock.Add(-5 * time.Second) },
			want:   want{Wait: 20 * time.Second},
		},
		"Misspelt": {
			reason: "a Kind that differs from a known one in one letter is reported at once",
			script: func(s *script) time.Time { s.after(10 * time.Second); return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "ClusterVaultKB"},
			want:   want{Missing: true},
		},
		"Plural": {
			reason: "a Kind that differs from a known one in a plural is reported at once",
			script: func(s *script) time.Time { s.after(10 * time.Second); return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "vaultKVs"},
			want:   want{Missing: true},
		},
		"MisspeltOfGroup": {
			reason: "it is so with a group, too",
			script: func(s *script) time.Time { s.after(10 * time.Second); return s.clock },
			ref:    v1alpha1.StoreRef{APIVersion: "vault.direct-secrets.io/v1alpha1", Kind: "VaultKB"},
			want:   want{Missing: true},
		},
		"OtherModule": {
			reason: "a module of another group can have a Kind that differs in one letter",
			script: func(s *script) time.Time { s.after(time.Minute); return s.clock },
			ref:    v1alpha1.StoreRef{APIVersion: "acme.example.com/v1", Kind: "VaultKB"},
			want:   want{Wait: 25 * time.Second},
		},
		"MisspeltUnseen": {
			reason: "without its own Lease, an operator does not know whether a module has the misspelt Kind",
			script: func(s *script) time.Time { return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "VaultKB"},
			want:   want{Wait: 25 * time.Second},
		},
		"MisspeltServed": {
			reason: "a Kind that differs in one letter can be one of a running module",
			script: func(s *script) time.Time { s.after(10*time.Second, member("acme", "VaultKB")); return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "VaultKB"},
		},
		"Part": {
			reason: "a Kind that contains a known one may be that of a module that starts",
			script: func(s *script) time.Time { s.after(time.Minute); return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "VaultKVTransit"},
			want:   want{Wait: 25 * time.Second},
		},
		"Known": {
			reason: "the module of a known Kind may be starting",
			script: func(s *script) time.Time { s.after(time.Minute); return s.clock },
			ref:    v1alpha1.StoreRef{Kind: "VaultKV"},
			want:   want{Wait: 25 * time.Second},
		},
		"Renewed": {
			reason: "a Lease that is renewed never lapses",
			script: func(s *script) time.Time { s.renewed(aws); s.after(time.Hour, aws); return s.clock.Add(-time.Hour) },
		},
		"NotRenewed": {
			reason: "a Lease is valid for its duration",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.after(39 * time.Second)
				return s.clock.Add(-time.Hour)
			},
		},
		"ToldAgain": {
			reason: "a resync of the cache is no renewal",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.after(30 * time.Second)
				again := s.Board.seen[leaseName(aws)].version
				s.renewed(aws, func(l *coordinationv1.Lease) { l.ResourceVersion = again })
				s.after(30 * time.Second)
				return s.clock.Add(-time.Hour)
			},
			want: want{Wait: 100 * time.Second},
		},
		"Lapsed": {
			reason: "after a Lease has lapsed, there are two minutes for a rollout",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.after(100 * time.Second)
				return s.clock.Add(-time.Hour)
			},
			want: want{Wait: time.Minute},
		},
		"LapsedForLong": {
			reason: "after two minutes, the Kind is missing",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.after(160 * time.Second)
				return s.clock.Add(-time.Hour)
			},
			want: want{Missing: true},
		},
		"LapsedForLongNewObject": {
			reason: "a new object waits for 25 seconds also if the module existed before",
			script: func(s *script) time.Time { s.after(time.Minute, aws); s.after(time.Hour); return s.clock },
			want:   want{Wait: 25 * time.Second},
		},
		"Back": {
			reason: "a member that starts again serves at once",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.after(time.Hour)
				s.renewed(aws)
				return s.clock.Add(-time.Hour)
			},
		},
		"Deleted": {
			reason: "a deleted Lease lapses at once",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.recordDeleted(leaseName(aws))
				return s.clock.Add(-time.Hour)
			},
			want: want{Wait: 2 * time.Minute},
		},
		"DeletedForLong": {
			reason: "a deleted Lease is forgotten, which does not bring the member back",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.recordDeleted(leaseName(aws))
				s.after(time.Hour)
				return s.clock.Add(-time.Hour)
			},
			want: want{Missing: true},
		},
		"Damaged": {
			reason: "an undecodable Lease counts as deleted",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.renewed(aws, damaged)
				return s.clock.Add(-time.Hour)
			},
			want: want{Wait: 2 * time.Minute},
		},
		"DamagedFromTheStart": {
			reason: "an undecodable Lease counts as never seen",
			script: func(s *script) time.Time {
				s.after(time.Minute)
				s.renewed(aws, damaged)
				return s.clock.Add(-time.Hour)
			},
			want: want{Missing: true},
		},
		"Blind": {
			reason: "an operator that does not see its own Lease renewed reports no Kind as missing",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.unseen(time.Hour)
				return s.clock.Add(-time.Hour)
			},
		},
		"BlindToAnother": {
			reason: "nor does it report a Kind that it has never seen",
			script: func(s *script) time.Time { s.after(time.Minute); s.unseen(time.Hour); return s.clock.Add(-time.Hour) },
			want:   want{Wait: 25 * time.Second},
		},
		"BlindNoMore": {
			reason: "when it sees its own Lease again, all other Leases start a new duration",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.unseen(time.Hour)
				s.after(30 * time.Second)
				return s.clock.Add(-time.Hour)
			},
		},
		"BlindAndGone": {
			reason: "after that duration, a stopped member is missing",
			script: func(s *script) time.Time {
				s.after(time.Minute, aws)
				s.unseen(time.Hour)
				s.after(30 * time.Second)
				s.after(200 * time.Second)
				return s.clock.Add(-time.Hour)
			},
			want: want{Missing: true},
		},
		"LongLease": {
			reason: "no Lease is valid for more than ten minutes",
			script: func(s *script) time.Time {
				ever := int32(1 << 30)
				s.after(time.Minute)
				s.renewed(aws, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = &ever })
				s.after(11 * time.Minute)
				return s.clock.Add(-time.Hour)
			},
			want: want{Wait: time.Minute},
		},
		"OtherNamespace": {
			reason: "a namespaced member serves no other namespace",
			script: func(s *script) time.Time {
				elsewhere := member("aws", "Store")
				elsewhere.Namespaces = []string{"elsewhere"}
				s.after(time.Minute, elsewhere)
				return s.clock.Add(-time.Hour)
			},
			want: want{Missing: true},
		},
		"ClusterKindOfNamespaced": {
			reason: "a namespaced member refuses cluster Kinds itself",
			script: func(s *script) time.Time {
				chosen := member("aws", "Store")
				chosen.Namespaces, chosen.Kinds[0].Cluster = []string{"shop"}, true
				s.after(time.Minute, chosen)
				return s.clock.Add(-time.Hour)
			},
		},
		"OtherGroup": {
			reason: "only a Kind of the group serves a reference with a group",
			script: func(s *script) time.Time { s.after(time.Minute, aws); return s.clock.Add(-time.Hour) },
			ref:    v1alpha1.StoreRef{APIVersion: "gcp.direct-secrets.io/v1", Kind: "Store"},
			want:   want{Missing: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, ref := newScript(), tc.ref
			s.catalog = Catalog{{Group: "vault.direct-secrets.io", Kind: "VaultKV"}: "vault"}
			if ref.Kind == "" {
				ref.Kind = "Store"
			}
			since := tc.script(s)
			var got want
			got.Missing, got.Wait = s.Missing(&ref, "shop", since)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nMissing(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestServing(t *testing.T) {
	all, chosen, classy := member("all", "Store"), member("chosen", "Store", "ClusterStore"), member("all", "Store")
	chosen.Namespaces, chosen.Kinds[1].Cluster = []string{"shop", "bank"}, true
	classy.Class = "blue"
	cases := map[string]struct {
		reason    string
		ref       *v1alpha1.StoreRef
		namespace string
		want      []Member
	}{
		"All":       {"all members that cover the namespace serve it, of every class", &v1alpha1.StoreRef{Kind: "Store"}, "shop", []Member{all, classy, chosen}},
		"Elsewhere": {"a namespaced member serves no other namespace", &v1alpha1.StoreRef{Kind: "Store"}, "other", []Member{all, classy}},
		"Group":     {"the group in apiVersion counts, its version does not", &v1alpha1.StoreRef{APIVersion: "chosen.direct-secrets.io/v9", Kind: "Store"}, "shop", []Member{chosen}},
		"Cluster":   {"a namespaced member serves no cluster Kind", &v1alpha1.StoreRef{Kind: "ClusterStore"}, "shop", nil},
		"Myself":    {"the operator's own Kinds count", &v1alpha1.StoreRef{Kind: "Own"}, "shop", []Member{member("own", "Own")}},
		"Unknown":   {"an unknown Kind has no server", &v1alpha1.StoreRef{Kind: "Other"}, "shop", nil},
		"None":      {"an absent reference has no server", nil, "shop", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			deleted := member("gone", "Store")
			s.renewed(deleted)
			s.after(time.Minute, all, chosen.normal(), classy)
			want := slices.Clone(tc.want)
			for i := range want {
				want[i] = want[i].normal()
			}
			got := s.Serving(tc.ref, tc.namespace)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nServing(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunning(t *testing.T) {
	all, classy := member("aws", "Store"), member("aws", "Store")
	classy.Class, classy.Namespaces = "blue", []string{"shop"}
	s := newScript()
	s.after(time.Minute, all, classy)
	cases := map[string]struct {
		reason                   string
		module, class, namespace string
		want                     bool
	}{
		"Plain":     {"the member without a class serves all namespaces", "aws.direct-secrets.io", "", "bank", true},
		"Class":     {"the member with the class serves one namespace", "aws.direct-secrets.io", "blue", "shop", true},
		"Elsewhere": {"the member with the class serves no other namespace", "aws.direct-secrets.io", "blue", "bank", false},
		"NoClass":   {"an unknown class is not served", "aws.direct-secrets.io", "red", "shop", false},
		"NoModule":  {"an unknown module is not served", "gcp.direct-secrets.io", "", "shop", false},
		"Myself":    {"this operator runs", "own.direct-secrets.io", "", "shop", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, ok := s.Running(tc.namespace, func(m Member) bool { return m.Module == tc.module && m.Class == tc.class })
			if ok != tc.want || ok && (m.Module != tc.module || m.Class != tc.class) {
				t.Errorf("\n%s\nRunning(): %+v, %t, want %t", tc.reason, m, ok, tc.want)
			}
		})
	}
}

func TestOnChange(t *testing.T) {
	aws, newer := member("aws", "Store"), member("aws", "Store")
	newer.Version = "v0.2.0"
	s := newScript()
	for _, step := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"the first sight of the own Lease is a change", func() { s.after(time.Minute) }, 1},
		{"a member starts", func() { s.renewed(aws) }, 1},
		{"a renewal is no change", func() { s.after(time.Minute, aws) }, 0},
		{"a member publishes something else", func() { s.renewed(newer) }, 1},
		{"an undecodable Lease counts as deleted", func() {
			s.renewed(newer, func(l *coordinationv1.Lease) { l.Annotations[memberAnnotation] = "{" })
		}, 1},
		{"the Lease is repaired", func() { s.renewed(newer) }, 1},
		{"it lapses", func() { s.after(time.Minute) }, 1},
		{"a lapsed Lease is no further change", func() { s.after(time.Hour) }, 0},
		{"the member starts again", func() { s.renewed(newer) }, 1},
		{"its Lease is deleted", func() { s.recordDeleted(leaseName(newer)) }, 1},
		{"a deleted member is no further change", func() { s.recordDeleted(leaseName(newer)); s.after(time.Hour) }, 0},
	} {
		before := s.changes
		if step.do(); s.changes-before != step.want {
			t.Errorf("%s: %d changes, want %d", step.reason, s.changes-before, step.want)
		}
	}
}

func TestOff(t *testing.T) {
	b, d := &Board{}, &Duties{}
	ref := &v1alpha1.StoreRef{Kind: "Store"}
	if missing, wait := b.Missing(ref, "shop", time.Time{}); missing || wait != 0 {
		t.Errorf("Missing() without presence: %t, %s", missing, wait)
	}
	if got := b.Serving(ref, "shop"); got != nil {
		t.Errorf("Serving() without presence: %v", got)
	}
	if _, ok := b.Running("shop", func(Member) bool { return true }); ok {
		t.Error("Running() without presence: true")
	}
	if !d.Held() {
		t.Error("an operator without presence does not hold the duties")
	}
}
