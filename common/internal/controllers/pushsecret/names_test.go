package pushsecret_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestPushRespelled changes the spelling of what an object pushes. The remote secret, its mark and its version stay.
func TestPushRespelled(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "ours", "tls.crt": "cert"})
	one := func(key, property string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{testenv.PushData("password", key, property)}}
	}
	all := func(key string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{DataTo: []v1alpha1.PushDataTo{{RemoteKey: key, Match: &v1alpha1.PushKeyMatch{RegExp: `tls\.crt`}}}}
	}
	cert := func(key, property string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{testenv.PushData("tls.crt", key, property)}}
	}
	cases := map[string]struct {
		reason    string
		was, then v1alpha1.PushSecretSpec
		want      string
	}{
		"key":     {"Both keys are of one secret.", one("key", ""), one(fake.Full+"key", ""), "ours"},
		"back":    {"So are they in the other direction.", one(fake.Full+"back", ""), one("back", ""), "ours"},
		"in":      {"The same holds for a property of it.", one("in", "a.0"), one(fake.Full+"in", `a.\0`), `{"a":{"0":"ours"}}`},
		"letter":  {"A backslash before a letter changes nothing.", one("letter", "ab"), one("letter", `a\b`), `{"ab":"ours"}`},
		"dot":     {"A member that exists takes precedence over a path.", one("dot", `tls\.crt`), one("dot", "tls.crt"), `{"tls.crt":"ours"}`},
		"pattern": {"dataTo names literal members.", all("pattern"), cert("pattern", "tls.crt"), `{"tls.crt":"cert"}`},
		"two":     {"The second entry for one secret is taken out.", v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{testenv.PushData("password", "two", "a"), testenv.PushData("password", fake.Full+"two", `a\.b`)}}, one("two", "a"), `{"a":"ours"}`},
	}
	for name, tc := range cases {
		e.Create(e.PushSecret(name, testenv.PushDeletes, func(ps *v1alpha1.PushSecret) { ps.Spec.Data, ps.Spec.DataTo = tc.was.Data, tc.was.DataTo }))
	}
	type secret struct{ value, mark, id string }
	shown := func(name string) secret {
		return secret{testenv.Remote(e.Backend, name), e.Backend.Mark(name), e.Backend.ID(name)}
	}
	was := map[string]secret{}
	for name := range cases {
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		was[name] = shown(name)
	}
	for name, tc := range cases {
		testenv.Update(e.Client, e.GetPush(name), func(ps *v1alpha1.PushSecret) { ps.Spec.Data, ps.Spec.DataTo = tc.then.Data, tc.then.DataTo })
	}
	for name, tc := range cases {
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
		e.WantRemote(e.Backend, name, tc.want)
		want := was[name]
		want.value = tc.want
		if got := shown(name); got != want {
			t.Errorf("%s: %s\nvalue, mark and ID: want %q, got %q", name, tc.reason, want, got)
		}
	}
}

// TestPushOnePlaceTwice names one remote secret by two keys.
func TestPushOnePlaceTwice(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"a": "1", "b": "2"})
	e.Create(e.PushSecret("it", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("a", "db", ""), testenv.PushData("b", fake.Full+"db", "")}
	}))
	message := e.WantPushed("it", v1alpha1.ReasonInvalidSpec)
	if want := `spec.data[1]: spec.data[0] already pushes to "db", which is also the remote secret "full:db"`; !strings.Contains(message, want) {
		t.Errorf("message %q, want %q", message, want)
	}
	if diff := cmp.Diff("", testenv.Remote(e.Backend, "db")); diff != "" {
		t.Errorf("nothing must be written: -want, +got:\n%s", diff)
	}
}

// TestPushUnknownName changes a key while the service does not tell which remote secret it is. Nothing is removed meanwhile.
func TestPushUnknownName(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "ours"})
	e.Create(e.PushSecret("it", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "db", "")}
	}))
	e.WantPushed("it", v1alpha1.ReasonSecretSynced)
	down := e.Backend.Inject(fake.Fault{Call: fake.CallName, Key: fake.Full + "db", Err: provider.NewError(provider.Unavailable, "down")})
	testenv.Update(e.Client, e.GetPush("it"), func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0].Match.RemoteRef.RemoteKey = fake.Full + "db" })
	if message := e.WantPushed("it", v1alpha1.ReasonSecretSyncedError); !strings.Contains(message, "down") {
		t.Errorf("message %q", message)
	}
	if diff := cmp.Diff("ours", testenv.Remote(e.Backend, "db")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	down()
	e.WantPushed("it", v1alpha1.ReasonSecretSynced)
	if diff := cmp.Diff("ours", testenv.Remote(e.Backend, "db")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
