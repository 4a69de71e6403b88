package password

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"

	gopassword "github.com/sethvargo/go-password/password"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

const (
	defaultLength = 24
	minLength     = 11 // the shortest length that can have minBits, with any characters
	maxLength     = 4096
	defaultKey    = "password"
	maxKeys       = 32
	// previousSuffix is the suffix that spec.keepPrevious appends to a key.
	previousSuffix = "-previous"
)

// A class is a class of characters of a password, such as digits.
type class struct {
	// of are the characters of the class, each once.
	of string
	// n is the number of characters of the class in a password.
	n int
}

// settings are the settings of a spec with all defaults filled in. They are possible, and strong enough.
type settings struct {
	length                   int
	letters, digits, symbols class
	noUpper, allowRepeat     bool
	keys                     []string
	encode                   func([]byte) []byte
}

// settingsOf fills in the defaults of a spec. Its errors are of class Invalid and name the field to fix.
func settingsOf(spec *v1alpha1.PasswordSpec) (settings, error) {
	s := settings{
		length:      int(spec.Length),
		letters:     class{of: gopassword.LowerLetters + gopassword.UpperLetters},
		digits:      class{of: gopassword.Digits},
		symbols:     class{of: gopassword.Symbols},
		noUpper:     spec.NoUpper,
		allowRepeat: spec.AllowRepeat,
		keys:        spec.SecretKeys,
	}
	if s.length == 0 {
		s.length = defaultLength
	}
	if s.noUpper {
		s.letters.of = gopassword.LowerLetters
	}
	if spec.SymbolCharacters != nil {
		s.symbols.of = *spec.SymbolCharacters
	}
	if len(s.keys) == 0 {
		s.keys = []string{defaultKey}
	}
	for _, check := range []func(*v1alpha1.PasswordSpec) error{s.checkSymbols, s.count, s.checkStrength, s.checkKeys, s.setEncoding} {
		if err := check(spec); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

func invalid(format string, args ...any) error {
	return provider.NewError(provider.Invalid, format, args...)
}

// symbol matches valid symbols: all other printable ASCII characters are letters, digits or spaces. Characters
// outside ASCII have several bytes, which would be separated.
var symbol = regexp.MustCompile(`^[[:punct:]]$`)

// checkSymbols checks that the characters of all classes differ. A duplicate would be more likely, and a
// character of another class would make the number of that class wrong.
func (s *settings) checkSymbols(spec *v1alpha1.PasswordSpec) error {
	const field = "spec.symbolCharacters"
	if s.symbols.of == "" && (spec.Symbols == nil || *spec.Symbols != 0) {
		return invalid("%s: is empty; remove it to use the default symbols, or set spec.symbols: 0 for none", field)
	}
	for i, c := range s.symbols.of {
		switch {
		case !symbol.MatchString(string(c)):
			return invalid("%s: %q cannot be a symbol; use printable ASCII characters without letters, digits and spaces", field, c)
		case strings.ContainsRune(s.symbols.of[:i], c):
			return invalid("%s: has %q twice; list each symbol once", field, c)
		}
	}
	return nil
}

// checkKeys checks that a Secret can have each key, and the keys of the previous values.
func (s *settings) checkKeys(spec *v1alpha1.PasswordSpec) error {
	if len(s.keys) > maxKeys {
		return invalid("spec.secretKeys: has %d keys, at most %d are allowed; use a second generator", len(s.keys), maxKeys)
	}
	seen := map[string]bool{}
	for i, k := range s.keys {
		switch {
		case len(validation.IsConfigMapKey(k)) > 0:
			return invalid("spec.secretKeys[%d]: %.80q cannot be a key of a Secret; use up to 253 letters, digits, '-', '_' and '.'", i, k)
		case seen[k]:
			return invalid("spec.secretKeys[%d]: %.80q is listed twice; remove one of them", i, k)
		case spec.KeepPrevious && len(validation.IsConfigMapKey(k+previousSuffix)) > 0:
			return invalid("spec.secretKeys[%d]: %.80q is too long, because spec.keepPrevious appends %s to it; use up to 244 characters", i, k, previousSuffix)
		}
		seen[k] = true
	}
	for i, k := range s.keys {
		if of, ok := strings.CutSuffix(k, previousSuffix); ok && spec.KeepPrevious && seen[of] {
			return invalid("spec.secretKeys[%d]: %.80q is the key under which spec.keepPrevious stores the previous value of %.80q; rename one of them", i, k, of)
		}
	}
	return nil
}

var encodings = map[v1alpha1.Encoding]func([]byte) []byte{
	"":                         func(p []byte) []byte { return p },
	v1alpha1.EncodingRaw:       func(p []byte) []byte { return p },
	v1alpha1.EncodingBase64:    func(p []byte) []byte { return base64.StdEncoding.AppendEncode(nil, p) },
	v1alpha1.EncodingBase64URL: func(p []byte) []byte { return base64.URLEncoding.AppendEncode(nil, p) },
	v1alpha1.EncodingBase32:    func(p []byte) []byte { return base32.StdEncoding.AppendEncode(nil, p) },
	v1alpha1.EncodingHex:       func(p []byte) []byte { return hex.AppendEncode(nil, p) },
}

func (s *settings) setEncoding(spec *v1alpha1.PasswordSpec) error {
	var ok bool
	if s.encode, ok = encodings[spec.Encoding]; !ok {
		return invalid("spec.encoding: %.80q is unknown; use raw, base64, base64url, base32 or hex", spec.Encoding)
	}
	return nil
}
