package render

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestDecode(t *testing.T) {
	type want struct {
		Value string
		Class provider.Class
	}
	bad := want{Class: provider.Invalid}
	cases := map[string]struct {
		reason   string
		strategy string
		value    string
		want     want
	}{
		"Unset":     {"Without a strategy the value is not decoded.", "", "YWJj", want{Value: "YWJj"}},
		"None":      {"None returns the value byte for byte.", "None", " YWJj\n\xff", want{Value: " YWJj\n\xff"}},
		"Std":       {"Base64 uses the characters + and /.", "Base64", "+/+/", want{Value: "\xfb\xff\xbf"}},
		"StdPadded": {"Padded Base64 is decoded.", "Base64", "YQ==", want{Value: "a"}},
		"StdRaw":    {"Base64 without padding is decoded.", "Base64", "YQ", want{Value: "a"}},
		"StdRaw3":   {"Base64 without padding is decoded.", "Base64", "YWI", want{Value: "ab"}},
		"StdLines":  {"Line breaks in Base64 are ignored, also at its end.", "Base64", "YWJj\r\nZGVm\nZw==\n", want{Value: "abcdefg"}},
		"StdSpaces": {"White space around Base64 is ignored.", "Base64", "\t YWJj \n", want{Value: "abc"}},
		"StdEmpty":  {"An empty value stays empty.", "Base64", "", want{}},
		"StdBinary": {"The result can be any bytes.", "Base64", "/wA=", want{Value: "\xff\x00"}},
		"StdOfURL":  {"The alphabet of Base64URL is not valid Base64.", "Base64", "-_-_", bad},
		"StdHalf":   {"Incomplete padding is not valid.", "Base64", "YQ=", bad},
		"StdBroken": {"A truncated text is not valid Base64.", "Base64", "YWJjZ", bad},
		"StdWords":  {"Words are not valid Base64.", "Base64", canary + " and more", bad},
		"StdInner":  {"Spaces inside the text are not valid.", "Base64", "YW Jj", bad},
		"StdOnce":   {"The value is decoded only once.", "Base64", "WVdKag==", want{Value: "YWJj"}},

		"URL":       {"Base64URL uses the characters - and _.", "Base64URL", "-_-_", want{Value: "\xfb\xff\xbf"}},
		"URLPadded": {"Padded Base64URL is decoded.", "Base64URL", "_w==", want{Value: "\xff"}},
		"URLRaw":    {"Base64URL without padding is decoded.", "Base64URL", "_w", want{Value: "\xff"}},
		"URLLines":  {"Line breaks in Base64URL are ignored.", "Base64URL", "YWJj\nZGVm\n", want{Value: "abcdef"}},
		"URLOfStd":  {"The alphabet of Base64 is not valid Base64URL.", "Base64URL", "+/+/", bad},
		"URLWords":  {"Words are not valid Base64URL.", "Base64URL", canary + "!", bad},

		"AutoStd":        {"Auto decodes Base64.", "Auto", "+/8=", want{Value: "\xfb\xff"}},
		"AutoURL":        {"Auto decodes Base64URL.", "Auto", "-_8=", want{Value: "\xfb\xff"}},
		"AutoLines":      {"Auto decodes Base64 on several lines.", "Auto", "YWJj\nZGVm\n", want{Value: "abcdef"}},
		"AutoRaw":        {"Auto does not decode text without padding, because many words would be Base64.", "Auto", "YWI", want{Value: "YWI"}},
		"AutoRawURL":     {"Auto does not decode text without padding, because many words would be Base64URL.", "Auto", "_w", want{Value: "_w"}},
		"AutoMixed":      {"Auto does not decode text with both alphabets.", "Auto", "+/-_", want{Value: "+/-_"}},
		"AutoPlain":      {"Auto returns plain text unchanged, including white space.", "Auto", " plain text \n", want{Value: " plain text \n"}},
		"AutoEmpty":      {"Auto returns an empty value unchanged.", "Auto", "", want{}},
		"AutoBlank":      {"Auto returns white space unchanged.", "Auto", " \n", want{Value: " \n"}},
		"AutoBinary":     {"Auto returns other bytes unchanged.", "Auto", "\xff\xfe\x00", want{Value: "\xff\xfe\x00"}},
		"AutoJSON":       {"Auto returns JSON unchanged.", "Auto", `{"a":"YWJj"}`, want{Value: `{"a":"YWJj"}`}},
		"AutoFourLetter": {"Auto decodes a word of four letters, as the documentation says.", "Auto", "root", want{Value: "\xae\x8a\x2d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := Decode([]byte(tc.value), tc.strategy)
			if diff := cmp.Diff(tc.want, want{string(v), class(err)}); diff != "" {
				t.Errorf("\n%s\nDecode(): -want, +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
			if err != nil && (strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "not "+tc.strategy)) {
				t.Errorf("\n%s\nDecode(): %q must name the strategy and show no value", tc.reason, err)
			}
		})
	}
}

func TestConvertKey(t *testing.T) {
	type want struct{ Default, Unicode string }
	cases := map[string]struct {
		reason string
		key    string
		want   want
	}{
		"Valid":   {"Allowed characters are not replaced.", "Az09-_.", want{"Az09-_.", "Az09-_."}},
		"Slash":   {"Each other character becomes an underscore, or its code.", "a/b c:d", want{"a_b_c_d", "a_U002f_b_U0020_c_U003a_d"}},
		"Unicode": {"One character becomes one underscore, or one code of four or more digits.", "aä😀", want{"a__", "a_U00e4__U1f600_"}},
		"Invalid": {"A byte that is not UTF-8 counts as one character.", "a\xff", want{"a_", "a_Ufffd_"}},
		"Control": {"A control character is replaced, too.", "a\x00\n", want{"a__", "a_U0000__U000a_"}},
		"Empty":   {"An empty key stays empty.", "", want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{ConvertKey(tc.key, "Default"), ConvertKey(tc.key, "Unicode")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nConvertKey(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.Default, ConvertKey(tc.key, "")); diff != "" {
				t.Errorf("\n%s\nConvertKey() without a strategy is Default: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range []string{"", "YWJj", "YQ==", "YQ", "-_8=", "YWJj\r\nZGVm\n", " \n", "root", "\xff\xfe", "====", "YQ=\n="} {
		f.Add([]byte(v))
	}
	std, url := base64.StdEncoding, base64.URLEncoding
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, strategy := range []string{"None", "Base64", "Base64URL", "Auto"} {
			got, err := Decode(bytes.Clone(value), strategy)
			switch {
			case err != nil && (strategy == "None" || strategy == "Auto" || class(err) != provider.Invalid || got != nil):
				t.Errorf("Decode(%q, %s): %q, %v", value, strategy, got, err)
			case strategy == "None" && !bytes.Equal(got, value), len(got) > len(value):
				t.Errorf("Decode(%q, %s): %q", value, strategy, got)
			}
		}
		for text, strategies := range map[string][]string{
			std.EncodeToString(value): {"Base64", "Auto"}, base64.RawStdEncoding.EncodeToString(value): {"Base64"},
			url.EncodeToString(value): {"Base64URL", "Auto"}, base64.RawURLEncoding.EncodeToString(value): {"Base64URL"},
		} {
			for _, strategy := range strategies {
				if got, err := Decode([]byte("\n"+text+"\n"), strategy); len(value) > 0 && (err != nil || !bytes.Equal(got, value)) {
					t.Errorf("Decode(%q, %s): %q, %v, want %q", text, strategy, got, err, value)
				}
			}
		}
	})
}

func FuzzConvertKey(f *testing.F) {
	for _, k := range []string{"", "a", "a/b", "..", "ä", "\xff", strings.Repeat("a", 300), "\U0010ffff"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		got := ConvertKey(key, "Default")
		if utf8.RuneCountInString(got) != utf8.RuneCountInString(key) {
			t.Errorf("ConvertKey(%q, Default): %q", key, got)
		}
		for _, got := range []string{got, ConvertKey(key, "Unicode")} {
			if ConvertKey(got, "Default") != got || ConvertKey(got, "Unicode") != got {
				t.Errorf("ConvertKey(%q): %q is converted again", key, got)
			}
			// With a letter in front and a limited length, only the characters can be invalid.
			if msgs := validation.IsConfigMapKey("a" + got[:min(len(got), 250)]); len(msgs) > 0 {
				t.Errorf("ConvertKey(%q): %q is no key of a Secret: %v", key, got, msgs)
			}
		}
	})
}
