package cryptofuncs

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// filterCertChain returns one part of a chain in PEM, which can have any order: the leaf, the intermediates, or the
// root; empty if the chain has no such part. A single self-signed certificate is a root. Certificates that are not
// one chain are an error.
//
// The result says nothing about trust: signatures, dates and constraints are not checked.
func filterCertChain(part, text string) (string, error) {
	certs, err := certificates(text)
	if err != nil {
		return "", err
	}
	ordered, ok := chain(certs)
	if !ok {
		return "", newError("the certificates are not one chain; pass one leaf and only the certificates of its issuers")
	}
	root := slices.IndexFunc(ordered, isRoot)
	if root < 0 {
		root = len(ordered)
	}
	switch leaves := min(1, root); part {
	case "leaf":
		return encodeCertificates(ordered[:leaves]), nil
	case "intermediate":
		return encodeCertificates(ordered[leaves:root]), nil
	case "root":
		return encodeCertificates(ordered[root:]), nil
	}
	return "", newError("the first argument must be leaf, intermediate or root")
}

// chain orders certificates from the leaf over the intermediates to the root. ok is false if there is not exactly one
// leaf, or if the leaf does not lead to all certificates. Duplicates are removed. All matching issuers are kept,
// because cross-signing gives an intermediate two.
func chain(certs []*x509.Certificate) (ordered []*x509.Certificate, ok bool) {
	certs = distinct(certs)
	bySubject := map[string][]*x509.Certificate{}
	for _, c := range certs {
		bySubject[string(c.RawSubject)] = append(bySubject[string(c.RawSubject)], c)
	}
	issuers := map[*x509.Certificate][]*x509.Certificate{}
	issues := map[*x509.Certificate]bool{}
	for _, c := range certs {
		for _, p := range bySubject[string(c.RawIssuer)] {
			if p != c && !isRoot(c) && keyFits(c, p) {
				issuers[c] = append(issuers[c], p)
				issues[p] = true
			}
		}
	}
	seen := map[*x509.Certificate]bool{}
	for _, c := range certs {
		if !issues[c] {
			ordered, seen[c] = append(ordered, c), true
		}
	}
	if len(ordered) != 1 {
		return nil, false
	}
	for i := 0; i < len(ordered); i++ {
		for _, p := range issuers[ordered[i]] {
			if !seen[p] {
				ordered, seen[p] = append(ordered, p), true
			}
		}
	}
	slices.SortStableFunc(ordered, func(a, b *x509.Certificate) int { return rank(a) - rank(b) })
	return ordered, len(ordered) == len(certs)
}

// rank sorts roots to the end: after cross-signing a root can be closer to the leaf than an intermediate.
func rank(c *x509.Certificate) int {
	if isRoot(c) {
		return 1
	}
	return 0
}

// isRoot reports whether a certificate names itself as its issuer.
func isRoot(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && keyFits(c, c)
}

// keyFits reports whether the key of p can have signed c, by their key identifiers. Both identifiers are optional
// (RFC 5280, sections 4.2.1.1 and 4.2.1.2).
func keyFits(c, p *x509.Certificate) bool {
	return len(c.AuthorityKeyId) == 0 || len(p.SubjectKeyId) == 0 || bytes.Equal(c.AuthorityKeyId, p.SubjectKeyId)
}

// distinct returns the certificates without duplicates.
func distinct(certs []*x509.Certificate) []*x509.Certificate {
	seen := map[string]bool{}
	var out []*x509.Certificate
	for _, c := range certs {
		if !seen[string(c.Raw)] {
			out, seen[string(c.Raw)] = append(out, c), true
		}
	}
	return out
}
