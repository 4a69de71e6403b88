package password

import (
	"math/big"

	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

// minBits is the minimum entropy of a password.
const minBits = 64

// count sets the number of characters of each class. A number that the spec does not set is a quarter of the
// length, or as close to it as possible. Such a default therefore never makes the numbers in the spec
// impossible.
func (s *settings) count(spec *v1alpha1.PasswordSpec) error {
	if s.length < 1 || s.length > maxLength {
		return invalid("spec.length: is %d; use %d to %d", s.length, minLength, maxLength)
	}
	for _, c := range []struct {
		name, field, of string
		asked           *int32
		class           *class
	}{
		{"digits", "spec.digits", "there are", spec.Digits, &s.digits},
		{"symbols", "spec.symbols", "spec.symbolCharacters has", spec.Symbols, &s.symbols},
	} {
		if c.asked == nil {
			continue
		}
		switch c.class.n = int(*c.asked); {
		case c.class.n < 0:
			return invalid("%s: is %d; use a number that is not negative", c.field, c.class.n)
		case s.digits.n+s.symbols.n > s.length:
			return invalid("%s: %d digits and %d symbols do not fit into spec.length %d; use fewer, or set a greater length", c.field, s.digits.n, s.symbols.n, s.length)
		case c.class.n > s.most(c.class):
			return invalid("%s: %d %s without repeats need %d different ones, and %s %d; use fewer, or set spec.allowRepeat: true", c.field, c.class.n, c.name, c.class.n, c.of, len(c.class.of))
		}
	}
	if spec.Digits == nil {
		s.digits.n = min(s.length/4, s.most(&s.digits), s.length-s.symbols.n)
	}
	if spec.Symbols == nil {
		s.symbols.n = min(s.length/4, s.most(&s.symbols), s.length-s.digits.n)
	}
	// Places that the letters cannot fill go to the classes without a number in the spec.
	if spec.Symbols == nil {
		s.symbols.n += min(s.excess(), s.most(&s.symbols)-s.symbols.n)
	}
	if spec.Digits == nil {
		s.digits.n += min(s.excess(), s.most(&s.digits)-s.digits.n)
	}
	s.letters.n = s.length - s.digits.n - s.symbols.n
	if s.excess() > 0 {
		return invalid("spec.length: %d characters without repeats, with %d digits and %d symbols, need %d different letters, and there are %d; set spec.allowRepeat: true, or a smaller length",
			s.length, s.digits.n, s.symbols.n, s.letters.n, len(s.letters.of))
	}
	return nil
}

// most returns the maximum number of characters of a class in a password.
func (s *settings) most(c *class) int {
	if s.allowRepeat && c.of != "" {
		return s.length
	}
	return len(c.of)
}

// excess returns the number of characters that are neither digits nor symbols, and for which there are too few
// letters.
func (s *settings) excess() int {
	return max(0, s.length-s.digits.n-s.symbols.n-s.most(&s.letters))
}

func (s *settings) checkStrength(*v1alpha1.PasswordSpec) error {
	if bits := s.possible().BitLen() - 1; bits < minBits {
		return invalid("spec.length: a password of %d characters, with %d digits and %d symbols, has %d bits of entropy, at least %d are required; set a greater length",
			s.length, s.digits.n, s.symbols.n, bits, minBits)
	}
	return nil
}

// possible returns the number of possible passwords. All of them are equally likely, so its logarithm is the
// entropy. Each class takes some of the remaining places, and fills them with its characters, with or without
// repeats.
func (s *settings) possible() *big.Int {
	all, places := big.NewInt(1), int64(s.length)
	for _, c := range []class{s.letters, s.digits, s.symbols} {
		n, of := int64(c.n), int64(len(c.of))
		all.Mul(all, new(big.Int).Binomial(places, n))
		places -= n
		if s.allowRepeat {
			all.Mul(all, new(big.Int).Exp(big.NewInt(of), big.NewInt(n), nil))
		} else {
			all.Mul(all, new(big.Int).MulRange(of-n+1, of))
		}
	}
	return all
}
