package handoff

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	made := Entry{Version: "v", Spec: "s", Made: noon.Add(-10 * time.Hour)}
	expiring := made
	expiring.Expires = noon.Add(5 * time.Hour) // Two thirds of its fifteen hours are over at noon.
	lease := expiring
	lease.State = "lease"
	with := func(e Entry, f func(*Entry)) *Entry { f(&e); return &e }
	type want struct {
		Action Action
		Why    string
		Next   time.Time
	}
	cases := map[string]struct {
		reason string
		in     Input
		want   want
	}{
		"First":             {"There are none.", Input{Rotates: true}, want{Make, First, time.Time{}}},
		"FirstFixed":        {"What cannot change can be made.", Input{Fixed: true}, want{Make, First, time.Time{}}},
		"FirstSuspended":    {"Nothing is made for who is suspended.", Input{Suspended: true}, want{}},
		"Kept":              {"Nothing asks for others.", Input{Entry: &made, Spec: "s", Rotates: true, Held: true}, want{}},
		"Requested":         {"A request does.", Input{Entry: &made, Spec: "s", Request: "1"}, want{Make, Requested, time.Time{}}},
		"Served":            {"But once.", Input{Entry: with(made, func(e *Entry) { e.Request = "1" }), Spec: "s", Request: "1", Rotates: true}, want{}},
		"RequestGone":       {"A request that is taken back asks for nothing.", Input{Entry: with(made, func(e *Entry) { e.Request = "1" }), Spec: "s", Rotates: true}, want{}},
		"RequestSuspended":  {"A suspended object gets no others.", Input{Entry: &made, Spec: "s", Request: "1", Suspended: true, Rotates: true}, want{}},
		"RequestFixed":      {"Nor one that cannot take them.", Input{Entry: &made, Spec: "s", Request: "1", Fixed: true, Rotates: true}, want{}},
		"Changed":           {"Another spec makes others.", Input{Entry: &made, Spec: "t", Rotates: true}, want{Make, Changed, time.Time{}}},
		"ChangedNot":        {"Not for who gets them on request only.", Input{Entry: &made, Spec: "t"}, want{}},
		"ChangedSuspended":  {"Nor for who is suspended.", Input{Entry: &made, Spec: "t", Rotates: true, Suspended: true}, want{}},
		"Early":             {"The interval has yet to pass.", Input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour}, want{Next: noon.Add(time.Hour)}},
		"Elapsed":           {"It has passed.", Input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 10 * time.Hour}, want{Make, Elapsed, time.Time{}}},
		"Spread":            {"Not all at once.", Input{Entry: &made, Spec: "s", Rotates: true, Held: true, Interval: 11 * time.Hour, Spread: 0.99}, want{Make, Elapsed, time.Time{}}},
		"NotHeld":           {"What was never delivered is not replaced for its age.", Input{Entry: &made, Spec: "s", Rotates: true, Interval: time.Hour}, want{}},
		"ElapsedNot":        {"An interval is nothing to who gets others on request only.", Input{Entry: &made, Spec: "s", Held: true, Interval: time.Hour}, want{}},
		"ElapsedFixed":      {"Nor to what cannot change.", Input{Entry: &made, Spec: "s", Rotates: true, Fixed: true, Held: true, Interval: time.Hour}, want{}},
		"Expiring":          {"Two thirds of the time are over.", Input{Entry: &expiring, Spec: "s", Rotates: true}, want{Make, Expiring, time.Time{}}},
		"ExpiringLater":     {"They are not.", Input{Entry: with(expiring, func(e *Entry) { e.Expires = noon.Add(8 * time.Hour) }), Spec: "s", Rotates: true}, want{Next: noon.Add(2 * time.Hour)}},
		"ExpiringNot":       {"Others come on request only.", Input{Entry: &expiring, Spec: "s"}, want{}},
		"IntervalFirst":     {"The interval passes before they expire.", Input{Entry: with(expiring, func(e *Entry) { e.Expires = noon.Add(50 * time.Hour) }), Spec: "s", Rotates: true, Held: true, Interval: 12 * time.Hour}, want{Next: noon.Add(2 * time.Hour)}},
		"Renew":             {"A lease is renewed instead.", Input{Entry: &lease, Spec: "s", Rotates: true}, want{Action: Renew}},
		"RenewOnRequest":    {"Also for who gets others on request only.", Input{Entry: &lease, Spec: "s"}, want{Action: Renew}},
		"RenewSuspended":    {"And for who is suspended: it is no other value.", Input{Entry: &lease, Spec: "s", Suspended: true}, want{Action: Renew}},
		"RenewFixed":        {"And for what cannot change.", Input{Entry: &lease, Spec: "s", Fixed: true}, want{Action: Renew}},
		"Final":             {"One that cannot be renewed is replaced.", Input{Entry: with(lease, func(e *Entry) { e.Final = true }), Spec: "s", Rotates: true}, want{Make, Expiring, time.Time{}}},
		"FinalNot":          {"If it may be.", Input{Entry: with(lease, func(e *Entry) { e.Final = true }), Spec: "s"}, want{}},
		"Expired":           {"One that has expired is not renewed.", Input{Entry: with(lease, func(e *Entry) { e.Expires = noon }), Spec: "s", Rotates: true}, want{Make, Expiring, time.Time{}}},
		"RenewedLately":     {"The time counts from the last renewal.", Input{Entry: with(lease, func(e *Entry) { e.Renewed = noon.Add(-time.Hour) }), Spec: "s"}, want{Next: noon.Add(3 * time.Hour)}},
		"Short":             {"What lives for seconds is not renewed all the time.", Input{Entry: with(lease, func(e *Entry) { e.Renewed, e.Expires = noon.Add(-5*time.Second), noon.Add(time.Second) }), Spec: "s"}, want{Next: noon.Add(5 * time.Second)}},
		"ElapsedBeforeThat": {"A rotation that is due goes before a renewal.", Input{Entry: &lease, Spec: "s", Rotates: true, Held: true, Interval: time.Hour}, want{Make, Elapsed, time.Time{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = noon
			var got want
			got.Action, got.Why, got.Next = Decide(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSpecHash pins the hash: if it were another after an upgrade, every value would be replaced.
func TestSpecHash(t *testing.T) {
	base := func() *fakev1.FakeGenerator {
		return &fakev1.FakeGenerator{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gen", UID: "1", Generation: 1},
			Spec:       fakev1.FakeGeneratorSpec{Backend: "main", Prefix: "u", Auth: &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "c", Key: "k"}}},
		}
	}
	const pinned = "91d484225f5c7228"
	cases := map[string]struct {
		reason string
		change func(*fakev1.FakeGenerator)
		same   bool
	}{
		"Same": {"Nothing has changed.", func(*fakev1.FakeGenerator) {}, true},
		"Metadata": {"Metadata bear on no value.", func(g *fakev1.FakeGenerator) {
			g.Name, g.UID, g.Generation, g.Labels = "other", "2", 7, map[string]string{"a": "b"}
		}, true},
		"Status": {"Nor does the status.", func(g *fakev1.FakeGenerator) { g.Status.Capabilities = []string{"Generate"} }, true},
		"SourceSpec": {"Nor do the fields of every store and generator.", func(g *fakev1.FakeGenerator) {
			g.Spec.Controller, g.Spec.RefreshInterval, g.Spec.GatingPolicy = "x", "1h", "Disabled"
		}, true},
		"Rotation": {"Nor those of every generator.", func(g *fakev1.FakeGenerator) {
			g.Spec.RotationInterval, g.Spec.KeepPrevious, g.Spec.RevocationDelay = "1h", true, "1h"
		}, true},
		"Own":    {"Its own fields do.", func(g *fakev1.FakeGenerator) { g.Spec.Prefix = "v" }, false},
		"Unset":  {"Also one that is unset.", func(g *fakev1.FakeGenerator) { g.Spec.Prefix = "" }, false},
		"Nested": {"And one inside another.", func(g *fakev1.FakeGenerator) { g.Spec.Auth.SecretRef.Key = "other" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := base()
			tc.change(g)
			got, err := SpecHash(g)
			if err != nil {
				t.Fatal(err)
			}
			if (got == pinned) != tc.same {
				t.Errorf("\n%s\nSpecHash(): %s, want the same as %s: %t", tc.reason, got, pinned, tc.same)
			}
		})
	}
	cluster := &fakev1.ClusterFakeGenerator{Spec: fakev1.ClusterFakeGeneratorSpec{
		FakeGeneratorSpec:    base().Spec,
		ClusterGeneratorSpec: v1alpha1.ClusterGeneratorSpec{Conditions: []v1alpha1.NamespaceCondition{{Namespaces: []string{"a"}}}},
		ScopeSpec:            v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace},
	}}
	if got, err := SpecHash(cluster); err != nil || got != pinned {
		t.Errorf("SpecHash() of the cluster twin: %s, %v, want %s: whom it serves bears on no value", got, err, pinned)
	}
}

// TestShared pins the fields that SpecHash leaves out: with one fewer after an upgrade, values would be replaced.
func TestShared(t *testing.T) {
	want := []string{
		"authenticationScope", "conditions", "controller", "gatingPolicy", "keepPrevious", "refreshInterval",
		"retrySettings", "revocationDelay", "rotationInterval",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(shared))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestCompatible reads a part as it was written by the first version: a later one must find its values.
func TestCompatible(t *testing.T) {
	ref := v1alpha1.StoreRef{Kind: "Password", Name: "pw"}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PartAnnotation: `{"kind":"ExternalSecret","name":"db","uid":"u","entries":{"` + pinnedID + `":{` +
			`"generator":{"kind":"Password","name":"pw"},"version":"v1","spec":"s","request":"r","made":"2030-01-01T12:00:00Z","expires":"2030-01-02T12:00:00Z","state":"x","clean":true,"previous":"v0","later":1}},` +
			`"retired":[{"generator":{"kind":"Password","name":"pw"},"version":"v0","state":"w"}],"later":1}`}},
		Type: "direct-secrets.io/part",
		Data: map[string][]byte{pinnedID: []byte(`{"current":{"password":"b25l"},"previous":{"password":"emVybw=="},"later":1}`)},
	}
	a, ok := Answer(s, ref)
	want := provider.Answer{Value: provider.Value{Version: "v1"}, Found: []provider.Value{{Key: "password", Data: []byte("one")}, {Key: "password-previous", Data: []byte("zero")}}}
	if diff := cmp.Diff(want, a); diff != "" || !ok {
		t.Errorf("Answer(): %t, -want, +got:\n%s", ok, diff)
	}
	rec, ok := Of(s.Annotations)
	if !ok || !rec.Serves("u", ref, "r") || !rec.Serves("u", ref, "") || rec.Serves("u", ref, "other") || rec.Serves("v", ref, "") || !rec.Cleans() || !rec.Kept(rec.Retired[0]) {
		t.Errorf("the record is read as %+v, %t", rec, ok)
	}
	if diff := cmp.Diff(Entry{
		Generator: Generator{"Password", "pw"}, Version: "v1", Spec: "s", Request: "r", Made: noon, Expires: noon.Add(24 * time.Hour), State: "x", Clean: true, Previous: "v0",
	}, rec.Entries[pinnedID]); diff != "" {
		t.Errorf("the entry: -want, +got:\n%s", diff)
	}
}

// pinnedID is the ID of Password "pw". Another one after an upgrade would find no values.
const pinnedID = "e77b9bfb9a06a74c"

func TestAnswerRefuses(t *testing.T) {
	ref := v1alpha1.StoreRef{Kind: "Password", Name: "pw"}
	good := func() *corev1.Secret {
		rec := Record{Kind: "ExternalSecret", Name: "db", UID: "u", Entries: map[string]Entry{ID(ref): {Version: "v"}}}
		raw, err := Values{Current: map[string][]byte{"k": []byte("v")}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{Type: Type, Data: map[string][]byte{ID(ref): raw}}
		if err := rec.Put(s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, ok := Answer(good(), ref); !ok {
		t.Fatal("Answer() refuses a good part")
	}
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
	}{
		"Type":         {"A Secret of another type is no part.", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
		"NoAnnotation": {"Without its record it tells nothing.", func(s *corev1.Secret) { s.Annotations = nil }},
		"Garbage":      {"Nor with one that cannot be read.", func(s *corev1.Secret) { s.Annotations[v1alpha1.PartAnnotation] = "{" }},
		"NoName":       {"Nor with one of nobody.", func(s *corev1.Secret) { s.Annotations[v1alpha1.PartAnnotation] = "{}" }},
		"NoData":       {"The values are gone.", func(s *corev1.Secret) { s.Data = nil }},
		"GarbledData":  {"They cannot be read.", func(s *corev1.Secret) { s.Data[ID(ref)] = []byte("x") }},
		"EmptyData":    {"There are none.", func(s *corev1.Secret) { s.Data[ID(ref)] = []byte("{}") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.change(s)
			if a, ok := Answer(s, ref); ok {
				t.Errorf("\n%s\nAnswer(): %v, want none", tc.reason, a.Value.Version)
			}
		})
	}
}

func TestCheckValues(t *testing.T) {
	cases := map[string]struct {
		reason string
		values map[string][]byte
		says   string
	}{
		"Good":    {"Keys of a Secret.", map[string][]byte{"password": []byte("x")}, ""},
		"BadKey":  {"No key of a Secret.", map[string][]byte{"pass word": []byte("x")}, `"pass word"`},
		"LongKey": {"Too long with what is put behind it.", map[string][]byte{strings.Repeat("k", 250): nil}, "cannot be a key"},
		"TooMuch": {"A part holds them twice.", map[string][]byte{"k": make([]byte, 300<<10)}, "can be kept"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckValues(tc.values)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("\n%s\nCheckValues(): %v, want it to say %q", tc.reason, err, tc.says)
			}
		})
	}
}

func TestAll(t *testing.T) {
	v := Values{Current: map[string][]byte{"a": []byte("1"), "b-previous": []byte("own")}, Previous: map[string][]byte{"a": []byte("0"), "b": []byte("lost")}}
	want := map[string][]byte{"a": []byte("1"), "a-previous": []byte("0"), "b-previous": []byte("own")}
	if diff := cmp.Diff(want, v.All()); diff != "" {
		t.Errorf("All(): -want, +got:\n%s", diff)
	}
}
