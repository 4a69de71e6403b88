package password

import (
	"math"
	"strings"
	"testing"

	gopassword "github.com/sethvargo/go-password/password"
)

// characters is how many characters each statistical case looks at.
const characters = 200_000

// uniform fails the test if counts do not look like equally likely outcomes.
//
// The sum of squares below is distributed as chi-square with k = len(counts)-1 degrees of freedom where the
// outcomes are independent. Where they are the characters of a password without repeats, or the places of
// a class in a password, the counts vary less, and the sum exceeds a limit still less often. Of a chi-square
// variable Laurent and Massart (Annals of Statistics 28, 2000, lemma 1) show that it exceeds
// k + 2*sqrt(k*x) + 2*x with a probability of at most exp(-x); with x = 25 that is 1.4e-11. Each outcome is
// expected hundreds of times, so that the sum is near its limit distribution, and for the numbers of
// outcomes here the bound lies far above the quantile itself. The 32 sums of this file so raise a false
// alarm in fewer than one of 1e9 runs.
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

// TestUniform checks that no character is more likely than another of its class, and no place is than
// another to hold a class.
func TestUniform(t *testing.T) {
	cases := map[string]struct {
		reason string
		wanted wanted
	}{
		"Default": {"What most people use.", wanted{}},
		"Repeat":  {"Characters are independent.", wanted{AllowRepeat: true}},
		"Short":   {"The shortest.", wanted{Length: 11}},
		"Own":     {"A number of symbols that does not divide 256, and lower case only.", wanted{Length: 30, NoUpper: true, SymbolCharacters: new("-_.+~"), AllowRepeat: true}},
		"Long":    {"More than there is of each class, by far.", wanted{Length: 128, AllowRepeat: true}},
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
					t.Fatalf("a password has other numbers: %+v", countIn(p))
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

// TestEquallyLikely checks over classes so small that all passwords come out many times that they come out
// equally often. What the entropy is computed from says that, and no order or pair is left out of it.
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

// TestNoneTwice makes passwords of 66 bits, about the fewest that are allowed. Of n of them two are equal
// with a probability of at most n*n/2 / 2^66, here 7e-11.
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
