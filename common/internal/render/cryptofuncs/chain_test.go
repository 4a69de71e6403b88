package cryptofuncs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterCertChain(t *testing.T) {
	cases := map[string]struct {
		reason       string
		certs        []string
		leaf         []string
		intermediate []string
		root         []string
		err          string
	}{
		"Ordered": {
			reason:       "A chain in order is split into its parts.",
			certs:        []string{"leaf.pem", "intermediate2.pem", "intermediate1.pem", "root.pem"},
			leaf:         []string{"leaf.pem"},
			intermediate: []string{"intermediate2.pem", "intermediate1.pem"},
			root:         []string{"root.pem"},
		},
		"Reversed": {
			reason:       "The order does not matter.",
			certs:        []string{"root.pem", "intermediate1.pem", "intermediate2.pem", "leaf-ec.pem"},
			leaf:         []string{"leaf-ec.pem"},
			intermediate: []string{"intermediate2.pem", "intermediate1.pem"},
			root:         []string{"root.pem"},
		},
		"Mixed": {
			reason:       "The order does not matter, and a key is skipped.",
			certs:        []string{"intermediate2.pem", "root.pem", "rsa.pem", "leaf.pem", "intermediate1.pem"},
			leaf:         []string{"leaf.pem"},
			intermediate: []string{"intermediate2.pem", "intermediate1.pem"},
			root:         []string{"root.pem"},
		},
		"Twice": {
			reason: "Duplicate certificates are removed.",
			certs:  []string{"leaf-plain.pem", "root.pem", "root.pem", "leaf-plain.pem"},
			leaf:   []string{"leaf-plain.pem"},
			root:   []string{"root.pem"},
		},
		"NoRoot": {
			reason:       "The root can be missing.",
			certs:        []string{"intermediate1.pem", "leaf.pem", "intermediate2.pem"},
			leaf:         []string{"leaf.pem"},
			intermediate: []string{"intermediate2.pem", "intermediate1.pem"},
		},
		"LeafAlone": {
			reason: "A leaf alone is a chain.",
			certs:  []string{"leaf.pem"},
			leaf:   []string{"leaf.pem"},
		},
		"NoKeyIdentifiers": {
			reason: "Key identifiers are optional; the names are enough.",
			certs:  []string{"root.pem", "leaf-plain.pem"},
			leaf:   []string{"leaf-plain.pem"},
			root:   []string{"root.pem"},
		},
		"RootAlone": {
			reason: "A self-signed certificate is a root.",
			certs:  []string{"root.pem"},
			root:   []string{"root.pem"},
		},
		"CrossSigned": {
			reason:       "An intermediate with two issuers has two certificates, and both roots are kept.",
			certs:        []string{"root-other.pem", "intermediate1-cross.pem", "leaf.pem", "root.pem", "intermediate2.pem", "intermediate1.pem"},
			leaf:         []string{"leaf.pem"},
			intermediate: []string{"intermediate2.pem", "intermediate1-cross.pem", "intermediate1.pem"},
			root:         []string{"root-other.pem", "root.pem"},
		},
		"SameName": {
			reason: "A root with the same name and another key is not part of the chain.",
			certs:  []string{"intermediate1.pem", "root-renewed.pem", "leaf.pem", "intermediate2.pem"},
			err:    "are not one chain",
		},
		"TwoLeaves": {
			reason: "Two leaves are two chains.",
			certs:  []string{"leaf.pem", "leaf-ec.pem", "intermediate2.pem"},
			err:    "are not one chain",
		},
		"Gap": {
			reason: "Without the intermediate between them, two certificates are not a chain.",
			certs:  []string{"leaf.pem", "root.pem"},
			err:    "are not one chain",
		},
		"NoCertificate": {
			reason: "A key is not a chain.",
			certs:  []string{"rsa.pem"},
			err:    "the PEM holds no CERTIFICATE block",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := fixture(t, tc.certs...)
			for part, names := range map[string][]string{"leaf": tc.leaf, "intermediate": tc.intermediate, "root": tc.root} {
				want := result{Value: fixture(t, names...), Err: tc.err}
				if diff := cmp.Diff(want, resultOf(tc.err, "filterCertChain", part, text)); diff != "" {
					t.Errorf("%s\nfilterCertChain(%q, ...): -want, +got:\n%s", tc.reason, part, diff)
				}
			}
		})
	}
	want := result{Value: "", Err: "must be leaf, intermediate or root"}
	if diff := cmp.Diff(want, resultOf(want.Err, "filterCertChain", "Leaf", fixture(t, "leaf.pem"))); diff != "" {
		t.Errorf("filterCertChain(...): another part is an error: -want, +got:\n%s", diff)
	}
}
