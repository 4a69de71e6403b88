package cryptofuncs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterPEM(t *testing.T) {
	leaf, key, sec1 := fixture(t, "leaf.pem"), fixture(t, "rsa.pem"), fixture(t, "ec-sec1.pem")
	encrypted := fixture(t, "rsa-pkcs1-encrypted.pem")
	cases := map[string]struct {
		reason string
		kind   string
		text   string
		want   result
	}{
		"One":          {"Other blocks are omitted.", "CERTIFICATE", key + leaf, result{Value: leaf}},
		"Several":      {"All blocks are returned, in their order.", "CERTIFICATE", fixture(t, "issuers.pem", "rsa.pem", "leaf.pem"), result{Value: fixture(t, "issuers.pem", "leaf.pem")}},
		"Case":         {"The type can be in lower case.", "certificate", leaf, result{Value: leaf}},
		"WholeType":    {"The whole type must match.", "PRIVATE KEY", sec1, result{Value: ""}},
		"None":         {"Without such a block the result is empty, so that a template can test it.", "CERTIFICATE", key, result{Value: ""}},
		"Empty":        {"An empty value has an empty result.", "CERTIFICATE", " \n", result{Value: ""}},
		"Text":         {"Text around the blocks is omitted.", "CERTIFICATE", "subject=x\n----- \n" + leaf + "\ntext" + "\n" + leaf, result{Value: leaf + leaf}},
		"CRLF":         {"Windows line breaks are accepted.", "CERTIFICATE", strings.ReplaceAll(leaf, "\n", "\r\n"), result{Value: leaf}},
		"NoLastBreak":  {"The last line break is optional.", "CERTIFICATE", strings.TrimSpace(leaf), result{Value: leaf}},
		"Headers":      {"Headers are kept.", "RSA PRIVATE KEY", encrypted, result{Value: encrypted}},
		"OpensslText":  {"The text output of openssl is accepted.", "CERTIFICATE", openssl(t, leaf, "x509", "-text"), result{Value: leaf}},
		"Junk":         {"A value without PEM is an error.", "CERTIFICATE", "hunter2", result{Value: "", Err: "the value holds no PEM block"}},
		"DER":          {"DER is not converted.", "CERTIFICATE", openssl(t, leaf, "x509", "-outform", "DER"), result{Value: "", Err: "the value holds no PEM block"}},
		"Truncated":    {"A damaged block is an error, and is not skipped.", "CERTIFICATE", leaf + leaf[:100], result{Value: "", Err: "block 2 of the PEM is damaged"}},
		"Headless":     {"A block that starts within another one is damaged.", "CERTIFICATE", leaf[:100] + "\n" + leaf, result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"OtherEnd":     {"A block whose END line has another type is damaged.", "CERTIFICATE", strings.Replace(leaf, "END CERTIFICATE", "END KEY", 1), result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"NotBase64":    {"A block that is not base64 is damaged.", "CERTIFICATE", strings.Replace(leaf, "M", "!", 1), result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"Swapped":      {"The message names swapped arguments.", leaf, "CERTIFICATE", result{Value: "", Err: "the first argument of filterPEM is the PEM instead of the type"}},
		"TooLarge":     {"An argument above 1 MiB is refused.", "CERTIFICATE", leaf + strings.Repeat(" ", maxInput), result{Value: "", Err: "at most 1048576 are allowed"}},
		"JustFits":     {"An argument of 1 MiB is accepted.", "CERTIFICATE", leaf + strings.Repeat(" ", maxInput-len(leaf)), result{Value: leaf}},
		"MiddleOfLine": {"A block must start at the start of a line.", "CERTIFICATE", "x" + leaf, result{Value: "", Err: "the value holds no PEM block"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resultOf(tc.want.Err, "filterPEM", tc.kind, tc.text)); diff != "" {
				t.Errorf("%s\nfilterPEM(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCertSANs(t *testing.T) {
	none := []string(nil)
	cases := map[string]struct {
		reason string
		text   string
		want   result
	}{
		"All": {
			reason: "The names are DNS names, IP addresses, mail addresses and URIs, each kind in its order.",
			text:   fixture(t, "leaf.pem"),
			want:   result{Value: []string{"example.org", "*.example.org", "192.0.2.1", "2001:db8::1", "ann@example.org", "https://example.org/a"}},
		},
		"First": {
			reason: "Only the first certificate counts, and a key before it is skipped.",
			text:   fixture(t, "rsa.pem", "root.pem", "leaf.pem"),
			want:   result{Value: []string{}},
		},
		"NoCertificate": {
			reason: "A key has no names.",
			text:   fixture(t, "rsa.pem"),
			want:   result{Value: none, Err: "the PEM holds no CERTIFICATE block"},
		},
		"Damaged": {
			reason: "A block that is not a certificate is an error.",
			text:   "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			want:   result{Value: none, Err: "certificate 1 cannot be read"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resultOf(tc.want.Err, "certSANs", tc.text)); diff != "" {
				t.Errorf("%s\ncertSANs(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
