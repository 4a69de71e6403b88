package password

import (
	"math"
	"strings"
	"testing"

	gopassword "github.com/sethvargo/go-password/password"
)

// characters is the number of characters per statistical case.
const characters = 200_000

// uniform fails the test if counts do not look like equally likely outcomes.
//
// If the outcomes are independent, the sum of squares below has a chi-square distribution with k =
// len(counts)-1 degrees of freedom. For the characters of a password without repeats, or the places of a class
// in a password, the counts vary less, and the sum exceeds a limit even less often. A chi-square variable
// exceeds k + 2*sqrt(k*x) + 2*x with a probability of at most exp(-x) (Laurent and Massart, Annals of
// Statistics 28, 2000, lemma 1). With x = 25 that is 1.4e-11. Each outcome is expected hundreds of times, so
// the sum is close to its limit distribution. For the numbers of outcomes here the bound is far above the
// quantile itself. The 32 sums of this file therefore raise a false alarm in fewer than one of 1e9 runs.
func uniform(t *testing.T, what string, counts []int) {
	t.Helper()
	all := 0
	for _, n := range counts {
		all += n
	}
	expected := float64(all) / float64(len(counts))
	if expected < 300 {
		t.Fatalf("%s: each outcome is expected %.0f times, too few for this test", what, expected)
	}
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	const x = 25
	k := float64(len(counts) - 1)
	if limit := k + 2*math.Sqrt(k*x) + 2*x; sum > limit {
		t.Errorf("%s: not uniform: chi-square is %.1f, and %.1f is the limit\n%v", what, sum, limit, counts)
	}
}

// TestUniform checks that all characters of a class are equally likely, and that all places are equally likely
// for a class.
func TestUniform(t *testing.T) {
	cases := map[string]struct {
		reason string
		wanted wanted
	}{
		"Default": {"The default settings have a uniform distribution.", wanted{}},
		"Repeat":  {"With repeats the characters are independent.", wanted{AllowRepeat: true}},
		"Short":   {"The shortest.", wanted{Length: 11}},
		"Own":     {"A number of symbols that does not divide 256 has a uniform distribution, without upper case.", wanted{Length: 30, NoUpper: true, SymbolCharacters: new("-_.+~"), AllowRepeat: true}},
		"Long":    {"Numbers far above the size of each class have a uniform distribution.", wanted{Length: 128, AllowRepeat: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := connectBoth(t, ask(tc.wanted))
			if err != nil {
				t.Fatal(err)
			}
			s := g.(*Generator).settings
			classes := map[string]class{"letters": s.letters, "digits": s.digits, "symbols": s.symbols}
			chars, places := map[string][]int{}, map[string][]int{}
			for name, c := range classes {
				chars[name], places[name] = make([]int, len(c.of)), make([]int, s.length)
			}
			for range characters / s.length {
				p := generate(t, g)["password"]
				if countIn(p) != (numbers{s.letters.n, s.digits.n, s.symbols.n}) {
					t.Fatalf("a password has other numbers of characters: %+v", countIn(p))
				}
				for at, char := range []byte(p) {
					for name, c := range classes {
						if i := strings.IndexByte(c.of, char); i >= 0 {
							chars[name][i]++
							places[name][at]++
						}
					}
				}
			}
			for name := range classes {
				uniform(t, tc.reason+" Characters of the "+name, chars[name])
				uniform(t, tc.reason+" Places of the "+name, places[name])
			}
		})
	}
}

// TestEquallyLikely checks that all passwords are equally likely, with classes so small that each password
// occurs many times. The computation of the entropy depends on this. The test covers the order and all
// combinations of characters.
func TestEquallyLikely(t *testing.T) {
	for name, repeat := range map[string]bool{"Once": false, "Repeat": true} {
		t.Run(name, func(t *testing.T) {
			s := settings{
				length: 4, letters: class{"abc", 2}, digits: class{"0", 1}, symbols: class{"-+", 1},
				noUpper: true, allowRepeat: repeat, keys: []string{"password"}, encode: encodings[""],
			}
			random, err := gopassword.NewGenerator(&gopassword.GeneratorInput{LowerLetters: s.letters.of, Digits: s.digits.of, Symbols: s.symbols.of})
			if err != nil {
				t.Fatal(err)
			}
			g, times := &Generator{settings: s, random: random}, map[string]int{}
			for range characters / 2 {
				times[generate(t, g)["password"]]++
			}
			counts := []int{}
			for _, n := range times {
				counts = append(counts, n)
			}
			if int64(len(counts)) != s.possible().Int64() {
				t.Errorf("%d different passwords, want %s", len(counts), s.possible())
			}
			uniform(t, "Passwords", counts)
		})
	}
}

// TestNoneTwice generates passwords of 66 bits, close to the minimum. Two of n passwords are equal with a
// probability of at most n*n/2 / 2^66, here 7e-11.
func TestNoneTwice(t *testing.T) {
	g, err := connectBoth(t, ask(wanted{Length: 11}))
	if err != nil {
		t.Fatal(err)
	}
	if bits := g.(*Generator).settings.possible().BitLen() - 1; bits != 66 {
		t.Errorf("%d bits, want 66", bits)
	}
	all := map[string]bool{}
	const n = 100_000
	for range n {
		all[generate(t, g)["password"]] = true
	}
	if len(all) != n {
		t.Errorf("%d of %d passwords came before", n-len(all), n)
	}
}
