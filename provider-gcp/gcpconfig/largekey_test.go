package gcpconfig

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"testing"
	"time"
)

// largeKey returns the DER of an RSA key with a number of bits, whose factors are no primes. Decoding finds that only after long work.
func largeKey(bits int) []byte {
	one, e := big.NewInt(1), big.NewInt(65537)
	factor := func() (p, less *big.Int) {
		for {
			p, _ = rand.Int(rand.Reader, new(big.Int).Lsh(one, uint(bits/2)))
			p.SetBit(p.SetBit(p.SetBit(p, bits/2-1, 1), bits/2-2, 1), 0, 1)
			if less = new(big.Int).Sub(p, one); new(big.Int).GCD(nil, nil, e, less).Cmp(one) == 0 {
				return p, less
			}
		}
	}
	p, pLess := factor()
	q, qLess := factor()
	return x509.MarshalPKCS1PrivateKey(&rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537}, D: new(big.Int).ModInverse(e, new(big.Int).Mul(pLess, qLess)), Primes: []*big.Int{p, q},
	})
}

// TestLargeKey reads a key file of 20 KiB, which a Secret can hold fifty times. No timeout ends the work on it.
func TestLargeKey(t *testing.T) {
	raw := keyFile(map[string]string{"private_key": pemOf("RSA PRIVATE KEY", largeKey(24<<10))})
	began := time.Now()
	_, err := parseKey(raw, google)
	if took := time.Since(began); err == nil || took > time.Second {
		t.Errorf("a key file of %d bytes took %s: %v; want an error within a second", len(raw), took, err)
	}
}
