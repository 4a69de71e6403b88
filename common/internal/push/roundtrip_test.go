package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

var features = provider.Features{Exclusive: true, Guarded: true}

// pushed returns the document after a push of one entry with a property, or the error. before is empty for no secret.
func pushed(before, property, value string) (string, error) {
	spec := specOf()
	spec.Data = []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "k", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "r", Property: property}}}}
	return pushedBy(spec, before, map[string][]byte{"k": []byte(value)})
}

func specOf() *v1alpha1.PushSecretSpec {
	spec := &v1alpha1.PushSecretSpec{StoreRefs: []v1alpha1.PushStoreRef{{Kind: "K", Name: "s"}}}
	spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "src"}
	return spec
}

func pushedBy(spec *v1alpha1.PushSecretSpec, before string, data map[string][]byte) (string, error) {
	p, err := NewPlan(spec)
	if err != nil {
		return "", err
	}
	all, err := p.Desire(v1alpha1.StoreRef{Kind: "K", Name: "s"}, []Source{{Name: "src", Data: data}})
	if err != nil {
		return "", err
	}
	s := State{Policies: Policies{Features: features}, Want: all[0].Values}
	if before != "" {
		s.Seen = &provider.Observed{Data: []byte(before), Version: "1", ID: "i"}
	}
	d := Decide(s)
	if d.Action == Nothing {
		return before, errors.Join(d.Errs...)
	}
	return string(d.Data), errors.Join(d.Errs...)
}

// readable are names of members that a read finds by the property of the same name.
var readable = []string{
	"a", "a.b", "ConnectionStrings:Db", "arr[0]", "a[*]", "a*", "a?", "a#b", "#", "#tag", "@this", "@id", "a@b", "a|b", "{a}", "(a)", "<a>", "a=b",
	`"a"`, "~a", "%a", "!a", `x\y`, `a\.b`, "a b", "a..b", ".a", "a.", "..a", "0", "-1", "a\nb", "ключ", "a/b", "",
}

func TestReadableMemberIsPushable(t *testing.T) {
	for _, name := range readable {
		if name == "" {
			continue // An empty property is the whole secret.
		}
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(map[string]any{name: "old", "other": 1.5})
			if err != nil {
				t.Fatal(err)
			}
			if old, err := render.Property(before, name); err != nil || string(old) != "old" {
				t.Fatalf("reads %q, %v", old, err)
			}
			after, err := pushed(string(before), name, "new")
			if err != nil {
				t.Fatalf("can be read and not pushed: %v", err)
			}
			is(t, after, map[string]any{name: "new", "other": 1.5})
			if got, err := render.Property([]byte(after), name); err != nil || string(got) != "new" {
				t.Errorf("reads %q, %v after the push", got, err)
			}
		})
	}
}

func TestDataToPushesEveryKey(t *testing.T) {
	for _, name := range readable {
		if name == "" {
			continue // A key is never empty.
		}
		for _, before := range []string{"", `{"other":1.5}`} {
			t.Run(fmt.Sprintf("%s in %s", name, before), func(t *testing.T) {
				spec := specOf()
				spec.DataTo = []v1alpha1.PushDataTo{{RemoteKey: "r", ConversionStrategy: reverseUnicode}}
				after, err := pushedBy(spec, before, map[string][]byte{render.ConvertKey(name, "Unicode"): []byte("new")})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]any{name: "new"}
				if before != "" {
					want["other"] = 1.5
				}
				is(t, after, want)
				if got, err := render.Property([]byte(after), name); err != nil || string(got) != "new" {
					t.Errorf("reads %q, %v after the push", got, err)
				}
			})
		}
	}
}

func is(t *testing.T, doc string, want any) {
	t.Helper()
	var got any
	if err := json.Unmarshal([]byte(doc), &got); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestQueryIsRefused(t *testing.T) {
	for _, query := range []string{"a*", "users.#.n", `users.#(n=="x").p`, "@this", "a|b", "a.@reverse", "[a,b]", "{a}", "!x", "a?", "..0", "#", "x.#"} {
		for _, before := range []string{"", `{"abc":"1","users":[{"n":"x","p":1}],"a":[1,2],"x":[1]}`} {
			after, err := pushed(before, query, "new")
			if provider.ClassOf(err) != provider.Invalid || after != before || err != nil && strings.Contains(err.Error(), "new") {
				t.Errorf("push of %q to %q: %q, error %v; want Invalid and no change", query, before, after, err)
			}
		}
	}
}

func TestMemberTwiceIsRefused(t *testing.T) {
	cases := map[string]struct{ doc, property, member string }{
		"Top":     {`{"a":"1","b":"x","a":"2"}`, "a", "a"},
		"Escaped": {`{"a":"1","\u0061":"2"}`, "a", "a"},
		"Literal": {`{"a.b":"1","a.b":"2"}`, "a.b", "a.b"},
		"Nested":  {`{"a":{"b":"1","b":"2"}}`, "a.b", "b"},
		"OnPath":  {`{"a":{"b":"1"},"a":{"c":"2"}}`, "a.b", "a"},
		"New":     {`{"a":{"b":"1"},"a":{"c":"2"}}`, "a.n", "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render.Property([]byte(tc.doc), tc.property)
			if provider.ClassOf(err) != provider.Invalid || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", tc.member)) {
				t.Errorf("a read: %v, want Invalid that names %q", err, tc.member)
			}
			after, err := pushed(tc.doc, tc.property, "v")
			if provider.ClassOf(err) != provider.Invalid || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", tc.member)) || after != tc.doc {
				t.Errorf("a push: %q, %v, want no change and Invalid that names %q", after, err, tc.member)
			}
		})
	}
}

// TestOtherMemberTwice checks that a member that occurs twice does not affect others.
func TestOtherMemberTwice(t *testing.T) {
	const doc = `{"a":"1","a":"2","b":"x"}`
	if got, err := render.Property([]byte(doc), "b"); err != nil || string(got) != "x" {
		t.Errorf("reads %q, %v", got, err)
	}
	if after, err := pushed(doc, "b", "y"); err != nil || after != `{"a":"1","a":"2","b":"y"}` {
		t.Errorf("pushes %q, %v", after, err)
	}
}

func TestNullIsEmpty(t *testing.T) {
	after, err := pushed(`{"a":null}`, "a", "null")
	if got, readErr := render.Property([]byte(after), "a"); err != nil || readErr != nil || string(got) != "null" {
		t.Errorf("pushed %q, %v; reads %q, %v; want null as a text", after, err, got, readErr)
	}
}

// TestPushReadsBack pushes random properties to random documents: a read of the same property returns the value, and
// nothing else has changed; or both the read and the document are as before.
func TestPushReadsBack(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // A test needs no secure random numbers.
	for range 10_000 {
		property, doc := randomName(r), map[string]any{}
		for range r.IntN(4) {
			doc[randomName(r)] = randomValue(r)
		}
		before, _ := json.Marshal(doc)
		value := fmt.Sprint("v-", r.IntN(1000))
		after, err := pushed(string(before), property, value)
		if err != nil {
			if after != string(before) || provider.ClassOf(err) != provider.Invalid {
				t.Fatalf("seed %d: a refused push of %q changes %q to %q: %v", seed, property, before, after, err)
			}
			if v, err := render.Property(before, property); err == nil && doc[property] != nil {
				t.Fatalf("seed %d: %q of %q is read as %q, and cannot be pushed", seed, property, before, v)
			}
			continue
		}
		if got, err := render.Property([]byte(after), property); err != nil || string(got) != value {
			t.Fatalf("seed %d: %q of %q set to %q is read as %q, %v: %s", seed, property, before, value, got, err, after)
		}
		var now map[string]any
		if err := json.Unmarshal([]byte(after), &now); err != nil {
			t.Fatal(err)
		}
		if n := differences(doc, now); n > 1 {
			t.Fatalf("seed %d: %q changes %d members of %q: %s", seed, property, n, before, after)
		}
	}
}

func differences(a, b map[string]any) (n int) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for k := range all {
		if x, y := a[k], b[k]; !cmp.Equal(x, y) {
			n++
		}
	}
	return n
}

func randomName(r *rand.Rand) string {
	const letters = "ab.0\\*?#@|[]{}():!=~% \"\n"
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteByte(letters[r.IntN(len(letters))])
	}
	if r.IntN(10) == 0 {
		b.WriteString("@this")
	}
	return b.String()
}

func randomValue(r *rand.Rand) any {
	switch r.IntN(4) {
	case 0:
		return map[string]any{randomName(r): "x", "a": map[string]any{"b": "y"}}
	case 1:
		return []any{"x", map[string]any{"a": "y"}}
	case 2:
		return nil
	}
	return "text"
}
