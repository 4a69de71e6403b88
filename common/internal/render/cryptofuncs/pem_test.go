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
		"One":          {"The other block is left out.", "CERTIFICATE", key + leaf, result{Value: leaf}},
		"Several":      {"All blocks come, in their order.", "CERTIFICATE", fixture(t, "issuers.pem", "rsa.pem", "leaf.pem"), result{Value: fixture(t, "issuers.pem", "leaf.pem")}},
		"Case":         {"The type may be in lower case.", "certificate", leaf, result{Value: leaf}},
		"WholeType":    {"A type is not a part of another.", "PRIVATE KEY", sec1, result{Value: ""}},
		"None":         {"No such block gives nothing, so that a template may ask.", "CERTIFICATE", key, result{Value: ""}},
		"Empty":        {"Nothing gives nothing.", "CERTIFICATE", " \n", result{Value: ""}},
		"Text":         {"Text around the blocks is left out.", "CERTIFICATE", "subject=x\n----- \n" + leaf + "\ntext" + "\n" + leaf, result{Value: leaf + leaf}},
		"CRLF":         {"The line breaks of Windows are line breaks.", "CERTIFICATE", strings.ReplaceAll(leaf, "\n", "\r\n"), result{Value: leaf}},
		"NoLastBreak":  {"The last line need not end.", "CERTIFICATE", strings.TrimSpace(leaf), result{Value: leaf}},
		"Headers":      {"Headers are kept.", "RSA PRIVATE KEY", encrypted, result{Value: encrypted}},
		"OpensslText":  {"What openssl prints is read.", "CERTIFICATE", openssl(t, leaf, "x509", "-text"), result{Value: leaf}},
		"Junk":         {"What is no PEM at all is a mistake.", "CERTIFICATE", "hunter2", result{Value: "", Err: "the value holds no PEM block"}},
		"DER":          {"DER is not converted.", "CERTIFICATE", openssl(t, leaf, "x509", "-outform", "DER"), result{Value: "", Err: "the value holds no PEM block"}},
		"Truncated":    {"A damaged block is not passed over.", "CERTIFICATE", leaf + leaf[:100], result{Value: "", Err: "block 2 of the PEM is damaged"}},
		"Headless":     {"A block that begins within another is damaged.", "CERTIFICATE", leaf[:100] + "\n" + leaf, result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"OtherEnd":     {"The lines around a block name the same type.", "CERTIFICATE", strings.Replace(leaf, "END CERTIFICATE", "END KEY", 1), result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"NotBase64":    {"What is in a block is base64.", "CERTIFICATE", strings.Replace(leaf, "M", "!", 1), result{Value: "", Err: "block 1 of the PEM is damaged"}},
		"Swapped":      {"The usual mistake is named.", leaf, "CERTIFICATE", result{Value: "", Err: "filterPEM was given the PEM where the type belongs"}},
		"TooLarge":     {"A Secret holds no more than 1 MiB.", "CERTIFICATE", leaf + strings.Repeat(" ", maxInput), result{Value: "", Err: "at most 1048576 are read"}},
		"JustFits":     {"1 MiB is read.", "CERTIFICATE", leaf + strings.Repeat(" ", maxInput-len(leaf)), result{Value: leaf}},
		"MiddleOfLine": {"A block begins at the beginning of a line.", "CERTIFICATE", "x" + leaf, result{Value: "", Err: "the value holds no PEM block"}},
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
			reason: "DNS names, addresses, mail addresses, URIs, each kind in its order.",
			text:   fixture(t, "leaf.pem"),
			want:   result{Value: []string{"example.org", "*.example.org", "192.0.2.1", "2001:db8::1", "ann@example.org", "https://example.org/a"}},
		},
		"First": {
			reason: "Only the first certificate counts, and a key before it does not.",
			text:   fixture(t, "rsa.pem", "root.pem", "leaf.pem"),
			want:   result{Value: []string{}},
		},
		"NoCertificate": {
			reason: "A key has no names.",
			text:   fixture(t, "rsa.pem"),
			want:   result{Value: none, Err: "the PEM holds no CERTIFICATE block"},
		},
		"Damaged": {
			reason: "What is base64 need not be a certificate.",
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
