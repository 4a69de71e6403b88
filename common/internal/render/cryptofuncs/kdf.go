package cryptofuncs

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"hash"
)

// A budget is the remaining work for deriving the keys of one archive. A unit is about one compression of SHA-256, a
// tenth of a microsecond. The archive itself sets the amount of work, so its author could keep a reader busy for
// days.
type budget int

// spend takes the work of some rounds, each of some units, and of reading the input once.
func (b *budget) spend(rounds, units, input int) error {
	if rounds < 1 {
		return errDamaged()
	}
	*b -= budget(input / 64)
	if *b < 0 || rounds > int(*b)/units {
		return newError("the keys of the archive take too much work to derive; write it again with fewer iterations: 600,000 with SHA-256 are supported, and OpenSSL uses 2048")
	}
	*b -= budget(rounds * units)
	return nil
}

// A digest is a hash function with the units of one round.
type digest struct {
	new   func() hash.Hash
	units int
}

// digests are the hash functions of MACs and derivations by their object identifiers, both that of
// the hash (RFC 8017, appendix B.1) and that of its HMAC (RFC 8018, appendix B.1).
var digests = map[string]digest{
	"1.3.14.3.2.26":          {sha1.New, 1},
	"1.2.840.113549.2.7":     {sha1.New, 1},
	"2.16.840.1.101.3.4.2.4": {sha256.New224, 1},
	"1.2.840.113549.2.8":     {sha256.New224, 1},
	"2.16.840.1.101.3.4.2.1": {sha256.New, 1},
	"1.2.840.113549.2.9":     {sha256.New, 1},
	"2.16.840.1.101.3.4.2.2": {sha512.New384, 4},
	"1.2.840.113549.2.10":    {sha512.New384, 4},
	"2.16.840.1.101.3.4.2.3": {sha512.New, 4},
	"1.2.840.113549.2.11":    {sha512.New, 4},
}

const (
	oidPBKDF2 = "1.2.840.113549.1.5.12"
	oidPBES2  = "1.2.840.113549.1.5.13"
	oidPBMAC1 = "1.2.840.113549.1.5.14"
)

// The purposes of a derived key: RFC 7292, appendix B.3.
const (
	forKey byte = 1
	forIV  byte = 2
	forMAC byte = 3
)

// A password is in the two forms that algorithms need, with the remaining work.
type password struct {
	utf8 string
	bmp  []byte
	work *budget
}

// wrong returns the error for a wrong password.
func (p password) wrong() error {
	if p.utf8 == "" {
		return newError("the archive cannot be opened without a password; give it with pkcs12keyPass or pkcs12certPass")
	}
	return newError("the archive cannot be opened with this password; the password comes first, then the archive")
}

// A pbkdf2Params is PBKDF2-params of RFC 8018, appendix A.2.
type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	Length     int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

// pbkdf2 derives a key by alg, which must be PBKDF2. If size is zero, alg sets the size.
func (p password) pbkdf2(alg pkix.AlgorithmIdentifier, size int) ([]byte, error) {
	if alg.Algorithm.String() != oidPBKDF2 {
		return nil, errAlgorithm()
	}
	var params pbkdf2Params
	if err := unmarshal(alg.Parameters.FullBytes, &params); err != nil {
		return nil, err
	}
	d := digest{sha1.New, 1} // The default of the ASN.1.
	if len(params.PRF.Algorithm) > 0 {
		var ok bool
		if d, ok = digests[params.PRF.Algorithm.String()]; !ok {
			return nil, errAlgorithm()
		}
	}
	switch {
	case size == 0:
		// A short key makes a MAC that can be guessed, a long one costs memory (RFC 9579).
		if params.Length < 20 || params.Length > 64 {
			return nil, errAlgorithm()
		}
		size = params.Length
	case params.Length != 0 && params.Length != size:
		return nil, errDamaged()
	}
	// Each round of an HMAC is two of its hash.
	units := 2 * d.units * blocksOf(size, d)
	if err := p.work.spend(params.Iterations, units, len(params.Salt)+len(p.utf8)); err != nil {
		return nil, err
	}
	key, err := pbkdf2.Key(d.new, p.utf8, params.Salt, params.Iterations, size)
	if err != nil {
		return nil, orRefusal(err, errAlgorithm())
	}
	return key, nil
}

func blocksOf(size int, d digest) int {
	n := d.new().Size()
	return (size + n - 1) / n
}

// derive derives a key by the method of RFC 7292, appendix B.2. The variables have the names of the RFC.
func (p password) derive(hashed digest, salt []byte, rounds int, purpose byte, size int) ([]byte, error) {
	c := blocksOf(size, hashed)
	if err := p.work.spend(rounds, c*hashed.units, c*(len(salt)+len(p.bmp))); err != nil {
		return nil, err
	}
	h := hashed.new()
	v := h.BlockSize()
	d := make([]byte, v)
	for j := range d {
		d[j] = purpose
	}
	i := append(repeat(salt, v), repeat(p.bmp, v)...)
	var a []byte
	for range c {
		h.Reset()
		h.Write(d)
		h.Write(i)
		ai := h.Sum(nil)
		for range rounds - 1 {
			h.Reset()
			h.Write(ai)
			ai = h.Sum(ai[:0])
		}
		a = append(a, ai...)
		b := repeat(ai, v)[:v]
		for j := 0; j < len(i); j += v {
			increment(i[j:j+v], b)
		}
	}
	return a[:size], nil
}

// repeat repeats pattern until it fills whole blocks of v bytes; empty for an empty pattern.
func repeat(pattern []byte, v int) []byte {
	out := make([]byte, (len(pattern)+v-1)/v*v)
	for n := 0; n < len(out); n += copy(out[n:], pattern) {
		continue
	}
	return out
}

// increment adds b and one to x, both numbers of the same length, and drops the overflow.
func increment(x, b []byte) {
	carry := uint(1)
	for k := len(x) - 1; k >= 0; k-- {
		carry += uint(x[k]) + uint(b[k])
		x[k] = byte(carry)
		carry >>= 8
	}
}

// bmpString returns a password as a BMPString with two zero bytes at its end, as RFC 7292, appendix B.1, requires.
func bmpString(s string) []byte {
	out := make([]byte, 0, 2*len(s)+2)
	for _, r := range s {
		out = binary.BigEndian.AppendUint16(out, uint16(r))
	}
	return append(out, 0, 0)
}

// mac returns the MAC of an archive's content: PBMAC1 (RFC 9579), or an HMAC with a key by the
// method of PKCS#12 (RFC 7292, section 5.1).
func (p password) mac(m macData, content []byte) ([]byte, error) {
	var d digest
	var key []byte
	var err error
	if m.Mac.Algorithm.Algorithm.String() == oidPBMAC1 {
		var params struct{ KDF, MAC pkix.AlgorithmIdentifier }
		if err := unmarshal(m.Mac.Algorithm.Parameters.FullBytes, &params); err != nil {
			return nil, err
		}
		var ok bool
		if d, ok = digests[params.MAC.Algorithm.String()]; !ok {
			return nil, errAlgorithm()
		}
		key, err = p.pbkdf2(params.KDF, 0)
	} else {
		var ok bool
		if d, ok = digests[m.Mac.Algorithm.Algorithm.String()]; !ok {
			return nil, errAlgorithm()
		}
		key, err = p.derive(d, m.Salt, m.Iterations, forMAC, d.new().Size())
	}
	if err != nil {
		return nil, err
	}
	h := hmac.New(d.new, key)
	h.Write(content)
	return h.Sum(nil), nil
}

func errAlgorithm() error {
	return newError("the encryption of the archive is not supported; write it again with openssl pkcs12 -export, which uses AES-256 and PBKDF2")
}

// unmarshal reads DER that must be exactly one value.
func unmarshal(der []byte, into any) error {
	if rest, err := asn1.Unmarshal(der, into); err != nil || len(rest) > 0 {
		return errDamaged()
	}
	return nil
}
