package password

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	gopassword "github.com/sethvargo/go-password/password"
	"k8s.io/apimachinery/pkg/util/validation"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

type (
	spec    = v1alpha1.PasswordSpec
	wanted  = v1alpha1.PasswordSettings
	numbers struct{ Letters, Digits, Symbols int }
)

// ask returns the spec of a generator with the settings w.
func ask(w wanted) spec { return spec{PasswordSettings: w} }

// connectBoth connects a Password and a ClusterPassword with a spec, which must have the same result.
func connectBoth(t testing.TB, s spec) (provider.Generator, error) {
	t.Helper()
	one, err := Connect(t.Context(), &v1alpha1.Password{Spec: s}, nil)
	twin, twinErr := ConnectCluster(t.Context(), &v1alpha1.ClusterPassword{Spec: v1alpha1.ClusterPasswordSpec{PasswordSpec: s}}, nil)
	if fmt.Sprint(err) != fmt.Sprint(twinErr) || (one == nil) != (twin == nil) {
		t.Errorf("the error of a Password is %v, that of a ClusterPassword %v", err, twinErr)
	}
	return twin, err
}

// generate generates values like the shared controllers.
func generate(t testing.TB, g provider.Generator) map[string]string {
	t.Helper()
	made, err := fake.Link("Password", g).Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if made.State != "" || !made.Expires.IsZero() {
		t.Errorf("state %q, expires %s: want neither", made.State, made.Expires)
	}
	passwords := map[string]string{}
	for k, v := range made.Values {
		passwords[k] = string(v)
	}
	return passwords
}

// countIn counts the characters of a password by class. A character of no class counts as a symbol.
func countIn(p string) numbers {
	n := numbers{}
	for _, c := range p {
		switch {
		case strings.ContainsRune(gopassword.LowerLetters+gopassword.UpperLetters, c):
			n.Letters++
		case strings.ContainsRune(gopassword.Digits, c):
			n.Digits++
		default:
			n.Symbols++
		}
	}
	return n
}

func repeats(p string) bool {
	sorted := slices.Sorted(slices.Values([]byte(p)))
	return len(slices.Compact(sorted)) < len(p)
}

func TestGenerate(t *testing.T) {
	cases := map[string]struct {
		reason string
		wanted wanted
		want   numbers
	}{
		"Default":      {"By default, a quarter are digits and a quarter symbols.", wanted{}, numbers{12, 6, 6}},
		"Odd":          {"A quarter is rounded down.", wanted{Length: 27}, numbers{15, 6, 6}},
		"Shortest":     {"The minimum length is accepted.", wanted{Length: 11}, numbers{7, 2, 2}},
		"Asked":        {"The numbers in the spec are exact.", wanted{Length: 42, Digits: new(int32(5)), Symbols: new(int32(5))}, numbers{32, 5, 5}},
		"LongDigits":   {"A length of which a quarter exceeds the number of digits is valid.", wanted{Length: 64}, numbers{38, 10, 16}},
		"LongLetters":  {"Places for which there are too few letters become symbols.", wanted{Length: 84}, numbers{52, 10, 22}},
		"LongestOnce":  {"All characters can be used, each once.", wanted{Length: 92}, numbers{52, 10, 30}},
		"NoUpper":      {"Without upper case there are half as many letters.", wanted{Length: 64, NoUpper: true}, numbers{26, 10, 28}},
		"FewSymbols":   {"Four symbolCharacters limit the number of symbols.", wanted{SymbolCharacters: new("-_.+")}, numbers{14, 6, 4}},
		"MoreDigits":   {"If there are too few symbols, there are more digits.", wanted{Length: 36, NoUpper: true, Symbols: new(int32(0))}, numbers{26, 10, 0}},
		"Repeat":       {"With repeats a quarter are digits and a quarter are symbols, for every length.", wanted{Length: 64, AllowRepeat: true}, numbers{32, 16, 16}},
		"RepeatFew":    {"With repeats few symbolCharacters are used several times.", wanted{AllowRepeat: true, SymbolCharacters: new("-")}, numbers{12, 6, 6}},
		"Longest":      {"The maximum length is accepted.", wanted{Length: maxLength, AllowRepeat: true}, numbers{2048, 1024, 1024}},
		"NoSymbols":    {"Zero symbols are accepted.", wanted{Symbols: new(int32(0))}, numbers{18, 6, 0}},
		"EmptySymbols": {"Empty symbolCharacters are accepted with zero symbols.", wanted{Symbols: new(int32(0)), SymbolCharacters: new("")}, numbers{18, 6, 0}},
		"OnlyDigits":   {"With only digits in the spec there are no default symbols.", wanted{Digits: new(int32(24)), AllowRepeat: true}, numbers{0, 24, 0}},
		"MostlyDigits": {"The default number of symbols is limited to the remaining places.", wanted{Digits: new(int32(20)), AllowRepeat: true}, numbers{0, 20, 4}},
		"MostlySymbol": {"The default number of digits is limited to the remaining places.", wanted{Symbols: new(int32(22))}, numbers{0, 2, 22}},
		"AllSymbols":   {"All 32 symbols of ASCII are accepted.", wanted{Length: 32, Symbols: new(int32(32)), SymbolCharacters: new("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")}, numbers{0, 0, 32}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := connectBoth(t, ask(tc.wanted))
			if err != nil {
				t.Fatalf("%s\n%s", tc.reason, err)
			}
			symbols := gopassword.Symbols
			if tc.wanted.SymbolCharacters != nil {
				symbols = *tc.wanted.SymbolCharacters
			}
			for range 20 {
				p := generate(t, g)["password"]
				if diff := cmp.Diff(tc.want, countIn(p)); diff != "" {
					t.Fatalf("%s\nNumbers: -want, +got:\n%s", tc.reason, diff)
				}
				if repeats(p) && !tc.wanted.AllowRepeat {
					t.Fatalf("%s\nA character comes twice.", tc.reason)
				}
				if tc.wanted.NoUpper && strings.ToLower(p) != p {
					t.Fatalf("%s\nThe password has an upper-case letter.", tc.reason)
				}
				if other := strings.Trim(p, gopassword.LowerLetters+gopassword.UpperLetters+gopassword.Digits+symbols); other != "" {
					t.Fatalf("%s\nThe password has another symbol.", tc.reason)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	g, err := connectBoth(t, ask(wanted{SecretKeys: []string{"admin", "reader.txt", "password-previous"}}))
	if err != nil {
		t.Fatal(err)
	}
	first, second := generate(t, g), generate(t, g)
	for _, made := range []map[string]string{first, second} {
		if diff := cmp.Diff([]string{"admin", "password-previous", "reader.txt"}, slices.Sorted(maps.Keys(made))); diff != "" {
			t.Errorf("keys: -want, +got:\n%s", diff)
		}
	}
	different := map[string]bool{}
	for _, p := range slices.Concat(slices.Collect(maps.Values(first)), slices.Collect(maps.Values(second))) {
		different[p] = true
	}
	if len(different) != 6 {
		t.Errorf("two times three keys have %d different passwords, want 6", len(different))
	}
}

func TestEncoding(t *testing.T) {
	cases := map[string]struct {
		reason   string
		encoding v1alpha1.Encoding
		decode   func(string) ([]byte, error)
	}{
		"Unset":     {"An empty encoding returns the password itself.", "", raw},
		"Raw":       {"raw returns the password itself.", v1alpha1.EncodingRaw, raw},
		"Base64":    {"base64 has the alphabet with + and /.", v1alpha1.EncodingBase64, base64.StdEncoding.DecodeString},
		"Base64URL": {"base64url has the alphabet with - and _.", v1alpha1.EncodingBase64URL, base64.URLEncoding.DecodeString},
		"Base32":    {"base32 has upper-case letters and digits.", v1alpha1.EncodingBase32, base32.StdEncoding.DecodeString},
		"Hex":       {"hex has lower-case hexadecimal digits.", v1alpha1.EncodingHex, hex.DecodeString},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := connectBoth(t, ask(wanted{Length: 26, Encoding: tc.encoding}))
			if err != nil {
				t.Fatal(err)
			}
			for range 100 { // Many passwords contain the characters in which the alphabets differ.
				p, err := tc.decode(generate(t, g)["password"])
				if err != nil {
					t.Fatalf("%s\n%s", tc.reason, err)
				}
				if diff := cmp.Diff(numbers{14, 6, 6}, countIn(string(p))); diff != "" {
					t.Fatalf("%s\nNumbers: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func raw(p string) ([]byte, error) { return []byte(p), nil }

func TestBadSettings(t *testing.T) {
	many := []string{}
	for i := range 33 {
		many = append(many, fmt.Sprintf("key%d", i))
	}
	previous := func(keys ...string) spec {
		return spec{GeneratorSpec: common.GeneratorSpec{KeepPrevious: true}, PasswordSettings: wanted{SecretKeys: keys}}
	}
	cases := map[string]struct {
		reason string
		spec   spec
		want   string
	}{
		"Negative":         {"A negative length is rejected.", ask(wanted{Length: -1}), "spec.length: is -1; use 11 to 4096"},
		"TooLong":          {"A length above 4096 is rejected, because 32 such passwords must fit into a Secret.", ask(wanted{Length: 4097, AllowRepeat: true}), "spec.length: is 4097; use 11 to 4096"},
		"Guessable":        {"A password with too little entropy is rejected.", ask(wanted{Length: 4}), "spec.length: a password of 4 characters, with 1 digits and 1 symbols, has 23 bits of entropy, at least 64 are required; set a greater length"},
		"GuessableEight":   {"A password of eight characters is rejected.", ask(wanted{Length: 8}), "spec.length: a password of 8 characters, with 2 digits and 2 symbols, has 47 bits of entropy, at least 64 are required; set a greater length"},
		"GuessableDigits":  {"A password of 19 digits is rejected, because it has only 63 bits.", ask(wanted{Length: 19, Digits: new(int32(19)), AllowRepeat: true}), "spec.length: a password of 19 characters, with 19 digits and 0 symbols, has 63 bits of entropy, at least 64 are required; set a greater length"},
		"GuessableSymbol":  {"A password of one repeated symbol is rejected.", ask(wanted{Length: 4096, Symbols: new(int32(4096)), SymbolCharacters: new("-"), AllowRepeat: true}), "spec.length: a password of 4096 characters, with 0 digits and 4096 symbols, has 0 bits of entropy, at least 64 are required; set a greater length"},
		"NegativeDigits":   {"A negative number of digits is rejected.", ask(wanted{Digits: new(int32(-1))}), "spec.digits: is -1; use a number that is not negative"},
		"NegativeSymbols":  {"A negative number of symbols is rejected.", ask(wanted{Symbols: new(int32(-2))}), "spec.symbols: is -2; use a number that is not negative"},
		"DigitsDoNotFit":   {"More digits than the length are rejected.", ask(wanted{Digits: new(int32(25)), AllowRepeat: true}), "spec.digits: 25 digits and 0 symbols do not fit into spec.length 24; use fewer, or set a greater length"},
		"DoNotFit":         {"More digits and symbols than the length are rejected.", ask(wanted{Digits: new(int32(10)), Symbols: new(int32(20))}), "spec.symbols: 10 digits and 20 symbols do not fit into spec.length 24; use fewer, or set a greater length"},
		"DigitsOnce":       {"More than ten digits without repeats are rejected.", ask(wanted{Digits: new(int32(12))}), "spec.digits: 12 digits without repeats need 12 different ones, and there are 10; use fewer, or set spec.allowRepeat: true"},
		"SymbolsOnce":      {"More than 30 symbols without repeats are rejected.", ask(wanted{Length: 64, Symbols: new(int32(31))}), "spec.symbols: 31 symbols without repeats need 31 different ones, and spec.symbolCharacters has 30; use fewer, or set spec.allowRepeat: true"},
		"FewSymbols":       {"More symbols than symbolCharacters without repeats are rejected.", ask(wanted{Symbols: new(int32(3)), SymbolCharacters: new("-_")}), "spec.symbols: 3 symbols without repeats need 3 different ones, and spec.symbolCharacters has 2; use fewer, or set spec.allowRepeat: true"},
		"LettersOnce":      {"More than 52 letters without repeats are rejected.", ask(wanted{Length: 64, Digits: new(int32(5)), Symbols: new(int32(5))}), "spec.length: 64 characters without repeats, with 5 digits and 5 symbols, need 54 different letters, and there are 52; set spec.allowRepeat: true, or a smaller length"},
		"LowerOnce":        {"More than 26 letters without repeats and upper case are rejected.", ask(wanted{Length: 30, NoUpper: true, Digits: new(int32(0)), Symbols: new(int32(0))}), "spec.length: 30 characters without repeats, with 0 digits and 0 symbols, need 30 different letters, and there are 26; set spec.allowRepeat: true, or a smaller length"},
		"AllOnce":          {"More than 92 characters without repeats are rejected.", ask(wanted{Length: 93}), "spec.length: 93 characters without repeats, with 10 digits and 30 symbols, need 53 different letters, and there are 52; set spec.allowRepeat: true, or a smaller length"},
		"Letter":           {"A letter as a symbol is rejected.", ask(wanted{SymbolCharacters: new("-_a")}), "spec.symbolCharacters: 'a' cannot be a symbol; use printable ASCII characters without letters, digits and spaces"},
		"Digit":            {"A digit as a symbol is rejected.", ask(wanted{SymbolCharacters: new("1-")}), "spec.symbolCharacters: '1' cannot be a symbol; use printable ASCII characters without letters, digits and spaces"},
		"Space":            {"A space as a symbol is rejected, because it is easily lost at the end.", ask(wanted{SymbolCharacters: new("- ")}), "spec.symbolCharacters: ' ' cannot be a symbol; use printable ASCII characters without letters, digits and spaces"},
		"Newline":          {"A line break as a symbol is rejected.", ask(wanted{SymbolCharacters: new("-\n")}), `spec.symbolCharacters: '\n' cannot be a symbol; use printable ASCII characters without letters, digits and spaces`},
		"Wide":             {"A character of several bytes as a symbol is rejected.", ask(wanted{SymbolCharacters: new("-€")}), "spec.symbolCharacters: '€' cannot be a symbol; use printable ASCII characters without letters, digits and spaces"},
		"NoText":           {"Invalid UTF-8 as a symbol is rejected.", ask(wanted{SymbolCharacters: new("-\xff")}), "spec.symbolCharacters: '�' cannot be a symbol; use printable ASCII characters without letters, digits and spaces"},
		"Twice":            {"A duplicate symbol is rejected, because it would be twice as likely.", ask(wanted{SymbolCharacters: new("-_.-")}), "spec.symbolCharacters: has '-' twice; list each symbol once"},
		"Empty":            {"Empty symbolCharacters are rejected if there are symbols.", ask(wanted{SymbolCharacters: new("")}), "spec.symbolCharacters: is empty; remove it to use the default symbols, or set spec.symbols: 0 for none"},
		"EmptyAsked":       {"Empty symbolCharacters are rejected with a number of symbols.", ask(wanted{SymbolCharacters: new(""), Symbols: new(int32(2)), AllowRepeat: true}), "spec.symbolCharacters: is empty; remove it to use the default symbols, or set spec.symbols: 0 for none"},
		"Key":              {"A key that a Secret cannot have is rejected.", ask(wanted{SecretKeys: []string{"a", "b/c"}}), `spec.secretKeys[1]: "b/c" cannot be a key of a Secret; use up to 253 letters, digits, '-', '_' and '.'`},
		"NoKey":            {"An empty key is rejected.", ask(wanted{SecretKeys: []string{""}}), `spec.secretKeys[0]: "" cannot be a key of a Secret; use up to 253 letters, digits, '-', '_' and '.'`},
		"Dots":             {"The key .. is rejected.", ask(wanted{SecretKeys: []string{".."}}), `spec.secretKeys[0]: ".." cannot be a key of a Secret; use up to 253 letters, digits, '-', '_' and '.'`},
		"LongKey":          {"The message for a very long key is short.", ask(wanted{SecretKeys: []string{strings.Repeat("k", 254)}}), `spec.secretKeys[0]: "` + strings.Repeat("k", 80) + `" cannot be a key of a Secret; use up to 253 letters, digits, '-', '_' and '.'`},
		"KeyTwice":         {"A duplicate key is rejected.", ask(wanted{SecretKeys: []string{"a", "b", "a"}}), `spec.secretKeys[2]: "a" is listed twice; remove one of them`},
		"Keys":             {"Too many keys are rejected.", ask(wanted{SecretKeys: many}), "spec.secretKeys: has 33 keys, at most 32 are allowed; use a second generator"},
		"PreviousTaken":    {"A key that keepPrevious uses, too, is rejected.", previous("password-previous", "password"), `spec.secretKeys[0]: "password-previous" is the key under which spec.keepPrevious stores the previous value of "password"; rename one of them`},
		"PreviousTooLong":  {"A key that is too long with the suffix of keepPrevious is rejected.", previous(strings.Repeat("k", 245)), `spec.secretKeys[0]: "` + strings.Repeat("k", 80) + `" is too long, because spec.keepPrevious appends -previous to it; use up to 244 characters`},
		"PreviousFits":     {"The longest key with keepPrevious is accepted.", previous(strings.Repeat("k", 244)), ""},
		"PreviousIsFree":   {"Without keepPrevious a key with its suffix is accepted.", ask(wanted{SecretKeys: []string{"password", "password-previous"}}), ""},
		"PreviousNotTaken": {"A key with the suffix of keepPrevious is accepted if no other key has that name.", previous("token-previous", "password"), ""},
		"Encoding":         {"An unknown encoding is rejected.", ask(wanted{Encoding: "base58"}), `spec.encoding: "base58" is unknown; use raw, base64, base64url, base32 or hex`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := connectBoth(t, tc.spec); err != nil {
				got = err.Error()
				if provider.ClassOf(err) != provider.Invalid {
					t.Errorf("%s\nclass %s, want Invalid", tc.reason, provider.ClassOf(err))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPossible lists all passwords over small classes, and compares their number with possible.
func TestPossible(t *testing.T) {
	cases := map[string]struct {
		letters, digits, symbols class
		repeat                   bool
	}{
		"Once":        {letters: class{"abc", 2}, digits: class{"01", 1}, symbols: class{"-+", 1}},
		"Repeat":      {letters: class{"abc", 2}, digits: class{"01", 1}, symbols: class{"-+", 1}, repeat: true},
		"All":         {letters: class{"abc", 3}, digits: class{"01", 2}, symbols: class{"-", 1}},
		"Long":        {letters: class{"ab", 3}, digits: class{"01", 3}, symbols: class{"-", 1}, repeat: true},
		"NoSymbols":   {letters: class{"abcd", 3}, digits: class{"01", 1}, symbols: class{"", 0}},
		"NoSymbolsIn": {letters: class{"abcd", 3}, digits: class{"01", 1}, symbols: class{"", 0}, repeat: true},
		"OneClass":    {letters: class{"abcdef", 4}, digits: class{"01", 0}, symbols: class{"-", 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settings{letters: tc.letters, digits: tc.digits, symbols: tc.symbols, allowRepeat: tc.repeat}
			s.length = s.letters.n + s.digits.n + s.symbols.n
			want := int64(0)
			every(s.letters.of+s.digits.of+s.symbols.of, s.length, "", func(p string) {
				if countIn(p) == (numbers{s.letters.n, s.digits.n, s.symbols.n}) && (tc.repeat || !repeats(p)) {
					want++
				}
			})
			if s.possible().Cmp(big.NewInt(want)) != 0 || want == 0 {
				t.Errorf("possible() = %s, want %d as in the list of all", s.possible(), want)
			}
		})
	}
}

// every calls f with each text that starts with p and has n more characters.
func every(of string, n int, p string, f func(string)) {
	if n == 0 {
		f(p)
		return
	}
	for _, c := range of {
		every(of, n-1, p+string(c), f)
	}
}

// TestMinLength checks the minimum length, which is a fixed number in the CRD.
func TestMinLength(t *testing.T) {
	all := "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	possible := func(length int32) bool {
		for digits := range length + 1 {
			for symbols := range length - digits + 1 {
				_, err := connectBoth(t, ask(wanted{Length: length, Digits: &digits, Symbols: &symbols, SymbolCharacters: &all, AllowRepeat: true}))
				if err == nil {
					return true
				}
			}
		}
		return false
	}
	if possible(minLength-1) || !possible(minLength) {
		t.Errorf("%d is not the smallest length that can have %d bits", minLength, minBits)
	}
}

func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		g, err := fake.Connect(t.Context(), k, k.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{provider.CapabilityGenerate}, g.Capabilities()); diff != "" {
			t.Errorf("%s: capabilities: -want, +got:\n%s", k.GoName(), diff)
		}
	}
}

// TestNoRandom makes the system return no random numbers, which must never lead to a weak password.
func TestNoRandom(t *testing.T) {
	for _, after := range []int64{0, 1, 10, 30} {
		random, err := gopassword.NewGenerator(&gopassword.GeneratorInput{Reader: io.LimitReader(strings.NewReader(strings.Repeat("\x07\x01\x03\x05", 20)), after)})
		if err != nil {
			t.Fatal(err)
		}
		spec := ask(wanted{AllowRepeat: true})
		s, err := settingsOf(&spec)
		if err != nil {
			t.Fatal(err)
		}
		made, err := (&Generator{settings: s, random: random}).Generate(t.Context())
		if provider.ClassOf(err) != provider.Unavailable || fmt.Sprint(err) != "the system returned no random numbers; retrying" || made.Values != nil {
			t.Errorf("after %d bytes: %d values and error %v", after, len(made.Values), err)
		}
	}
}

func TestCancelled(t *testing.T) {
	g, err := connectBoth(t, spec{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, err := g.Generate(ctx)
	if provider.ClassOf(err) != provider.Unavailable || made.Values != nil {
		t.Errorf("a call that was cancelled has %d values and error %v", len(made.Values), err)
	}
}

// TestConcurrent uses one client for many concurrent calls.
func TestConcurrent(t *testing.T) {
	g, err := connectBoth(t, spec{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				p := generate(t, g)["password"]
				if _, there := all.LoadOrStore(p, true); there {
					t.Error("two calls made the same password")
				}
			}
		})
	}
	wg.Wait()
}

// FuzzSettings uses arbitrary settings. They are either rejected with an error that names a field, or the
// passwords match them exactly.
func FuzzSettings(f *testing.F) {
	f.Add(int32(24), int32(-1), int32(-1), false, false, false, "", false, "password", "", false)
	f.Add(int32(64), int32(5), int32(0), true, true, true, "-_", true, "a,b,a-previous", "hex", true)
	f.Add(int32(92), int32(10), int32(30), true, true, false, "~!@#$%^&*()_+`-={}|[]\\:\"<>?,./", false, "..", "base64", false)
	f.Add(int32(4096), int32(4000), int32(2147483647), true, false, true, "€ab1", true, "k,k", "rot13", true)
	f.Fuzz(func(t *testing.T, length, digits, symbols int32, hasDigits, hasSymbols, hasCharacters bool, characters string, repeat bool, keys, encoding string, keep bool) {
		s := spec{PasswordSettings: wanted{Length: length, AllowRepeat: repeat, NoUpper: length%2 == 1, Encoding: v1alpha1.Encoding(encoding)}}
		s.KeepPrevious = keep
		if hasDigits {
			s.Digits = &digits
		}
		if hasSymbols {
			s.Symbols = &symbols
		}
		if hasCharacters {
			s.SymbolCharacters = &characters
		}
		if keys != "" {
			s.SecretKeys = strings.Split(keys, ",")
		}
		g, err := connectBoth(t, s)
		if err != nil {
			if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), "spec.") || len(err.Error()) > 1000 {
				t.Errorf("error of class %s: %s", provider.ClassOf(err), err)
			}
			return
		}
		made := generate(t, g)
		if len(made) != max(1, len(s.SecretKeys)) {
			t.Errorf("%d values for the keys %q", len(made), s.SecretKeys)
		}
		for k, p := range made {
			if msgs := validation.IsConfigMapKey(k); len(msgs) > 0 {
				t.Errorf("key %q: %s", k, msgs)
			}
			checkPassword(t, s, p)
		}
	})
}

// checkPassword checks a password against a spec.
func checkPassword(t *testing.T, s spec, p string) {
	t.Helper()
	if s.Encoding != "" && s.Encoding != v1alpha1.EncodingRaw {
		decode := map[v1alpha1.Encoding]func(string) ([]byte, error){
			v1alpha1.EncodingBase64: base64.StdEncoding.DecodeString, v1alpha1.EncodingBase64URL: base64.URLEncoding.DecodeString,
			v1alpha1.EncodingBase32: base32.StdEncoding.DecodeString, v1alpha1.EncodingHex: hex.DecodeString,
		}[s.Encoding]
		b, err := decode(p)
		if err != nil {
			t.Fatal(err)
		}
		p = string(b)
	}
	length, symbols := int(s.Length), gopassword.Symbols
	if length == 0 {
		length = 24
	}
	if s.SymbolCharacters != nil {
		symbols = *s.SymbolCharacters
	}
	letters := gopassword.LowerLetters
	if !s.NoUpper {
		letters += gopassword.UpperLetters
	}
	n := countIn(p)
	if len(p) != length || s.Digits != nil && n.Digits != int(*s.Digits) || s.Symbols != nil && n.Symbols != int(*s.Symbols) {
		t.Errorf("%d characters with %+v", len(p), n)
	}
	if !s.AllowRepeat && repeats(p) {
		t.Error("a character is repeated")
	}
	for _, c := range p {
		if !strings.ContainsRune(letters+gopassword.Digits+symbols, c) {
			t.Errorf("character %q", c)
		}
	}
}
