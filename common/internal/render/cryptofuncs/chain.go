package cryptofuncs

import (
	"bytes"
	"crypto"
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
	leaves := leavesOf(certs)
	if len(leaves) != 1 {
		return nil, false
	}
	ordered = path(leaves[0], certs)
	slices.SortStableFunc(ordered, func(a, b *x509.Certificate) int { return rank(a) - rank(b) })
	return ordered, len(ordered) == len(certs)
}

// LeafFirst orders certificates: that of the private key, its issuers up to the root, and then all others in their order.
// Duplicates are removed. A key that matches none of the certificates is an error. Without a key the leaf is the only
// certificate that has not issued another one, or of several such ones the only one that is not an authority. If there is
// none, the order stays.
func LeafFirst(certs []*x509.Certificate, key any) ([]*x509.Certificate, error) {
	certs = distinct(certs)
	leaf, err := leafOf(certs, key)
	if leaf == nil || err != nil {
		return certs, err
	}
	ordered := path(leaf, certs)
	slices.SortStableFunc(ordered[1:], func(a, b *x509.Certificate) int { return rank(a) - rank(b) })
	for _, c := range certs {
		if !slices.Contains(ordered, c) {
			ordered = append(ordered, c)
		}
	}
	return ordered, nil
}

// PairPEM returns certificates in PEM in the order of LeafFirst.
func PairPEM(certs, key string) (string, error) {
	private, leaf, others, err := pair(certs, key)
	if err != nil {
		return "", err
	}
	ordered, err := LeafFirst(append([]*x509.Certificate{leaf}, others...), private)
	return encodeCertificates(ordered), err
}

// leafOf returns the certificate of a private key. Without a key it is nil if the leaf is not clear.
func leafOf(certs []*x509.Certificate, key any) (*x509.Certificate, error) {
	if key != nil {
		i, err := indexOf(certs, key)
		if err != nil {
			return nil, err
		}
		return certs[i], nil
	}
	leaves := leavesOf(certs)
	if len(leaves) > 1 {
		leaves = slices.DeleteFunc(leaves, func(c *x509.Certificate) bool { return c.IsCA })
	}
	if len(leaves) != 1 {
		return nil, nil
	}
	return leaves[0], nil
}

// indexOf returns the index of the certificate of a private key.
func indexOf(certs []*x509.Certificate, key any) (int, error) {
	signer, ok := key.(interface{ Public() crypto.PublicKey })
	if !ok {
		return 0, newError("the private key has a type that certificates do not support; use RSA, ECDSA or Ed25519")
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	i := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return ok && public.Equal(c.PublicKey) })
	if i < 0 {
		return 0, newError("the private key matches none of the certificates; store the pair that was issued together")
	}
	return i, nil
}

// issues reports whether p can have issued c.
func issues(p, c *x509.Certificate) bool {
	return p != c && !isRoot(c) && bytes.Equal(p.RawSubject, c.RawIssuer) && keyFits(c, p)
}

// leavesOf returns the certificates that can have issued none of the others.
func leavesOf(certs []*x509.Certificate) (leaves []*x509.Certificate) {
	byIssuer := map[string][]*x509.Certificate{}
	for _, c := range certs {
		byIssuer[string(c.RawIssuer)] = append(byIssuer[string(c.RawIssuer)], c)
	}
	for _, p := range certs {
		if !slices.ContainsFunc(byIssuer[string(p.RawSubject)], func(c *x509.Certificate) bool { return issues(p, c) }) {
			leaves = append(leaves, p)
		}
	}
	return leaves
}

// path returns a certificate and all its issuers, the nearest first.
func path(leaf *x509.Certificate, certs []*x509.Certificate) []*x509.Certificate {
	bySubject := map[string][]*x509.Certificate{}
	for _, c := range certs {
		bySubject[string(c.RawSubject)] = append(bySubject[string(c.RawSubject)], c)
	}
	ordered, seen := []*x509.Certificate{leaf}, map[*x509.Certificate]bool{leaf: true}
	for i := 0; i < len(ordered); i++ {
		for _, p := range bySubject[string(ordered[i].RawIssuer)] {
			if !seen[p] && issues(p, ordered[i]) {
				ordered, seen[p] = append(ordered, p), true
			}
		}
	}
	return ordered
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
