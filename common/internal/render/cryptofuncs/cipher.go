package cryptofuncs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/sha1"
	"crypto/x509/pkix"
)

// A blockCipher creates a cipher from a key of a size in bytes.
type blockCipher struct {
	key int
	new func(key []byte) (cipher.Block, error)
}

// pbes1 are the ciphers of RFC 7292, appendix C, without RC4. The cipher with two DES keys uses the first one again
// as the third.
var pbes1 = map[string]blockCipher{
	"1.2.840.113549.1.12.1.3": {24, des.NewTripleDESCipher},
	"1.2.840.113549.1.12.1.4": {16, func(k []byte) (cipher.Block, error) { return des.NewTripleDESCipher(append(k[:16:16], k[:8]...)) }},
	"1.2.840.113549.1.12.1.5": {16, func(k []byte) (cipher.Block, error) { return newRC2(k), nil }},
	"1.2.840.113549.1.12.1.6": {5, func(k []byte) (cipher.Block, error) { return newRC2(k), nil }},
}

// pbes2 are the ciphers of RFC 8018, appendix B.2, and of RFC 3565.
var pbes2 = map[string]blockCipher{
	"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
	"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
	"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
	"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
}

// decrypt decrypts a part of an archive.
func (p password) decrypt(alg pkix.AlgorithmIdentifier, data []byte) ([]byte, error) {
	block, iv, err := p.cipher(alg)
	if err != nil {
		return nil, err
	}
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errDamaged()
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	pad := plain[len(plain)-1]
	if pad == 0 || int(pad) > size {
		return nil, p.wrong()
	}
	for _, b := range plain[len(plain)-int(pad):] {
		if b != pad {
			return nil, p.wrong()
		}
	}
	return plain[:len(plain)-int(pad)], nil
}

// cipher returns the cipher and the initialisation vector for alg and the password.
func (p password) cipher(alg pkix.AlgorithmIdentifier) (cipher.Block, []byte, error) {
	if alg.Algorithm.String() == oidPBES2 {
		return p.cipherOfPBES2(alg)
	}
	c, ok := pbes1[alg.Algorithm.String()]
	if !ok {
		return nil, nil, errAlgorithm()
	}
	var params struct {
		Salt       []byte
		Iterations int
	}
	if err := unmarshal(alg.Parameters.FullBytes, &params); err != nil {
		return nil, nil, err
	}
	d := digest{sha1.New, 1}
	key, err := p.derive(d, params.Salt, params.Iterations, forKey, c.key)
	if err != nil {
		return nil, nil, err
	}
	iv, err := p.derive(d, params.Salt, params.Iterations, forIV, des.BlockSize)
	if err != nil {
		return nil, nil, err
	}
	block, err := c.new(key)
	if err != nil {
		return nil, nil, orRefusal(err, errDamaged())
	}
	return block, iv, nil
}

// cipherOfPBES2 is cipher for PBES2 (RFC 8018, appendix A.4).
func (p password) cipherOfPBES2(alg pkix.AlgorithmIdentifier) (cipher.Block, []byte, error) {
	var params struct{ KDF, Cipher pkix.AlgorithmIdentifier }
	if err := unmarshal(alg.Parameters.FullBytes, &params); err != nil {
		return nil, nil, err
	}
	c, ok := pbes2[params.Cipher.Algorithm.String()]
	if !ok {
		return nil, nil, errAlgorithm()
	}
	key, err := p.pbkdf2(params.KDF, c.key)
	if err != nil {
		return nil, nil, err
	}
	var iv []byte
	if err := unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, nil, err
	}
	block, err := c.new(key)
	if err != nil {
		return nil, nil, orRefusal(err, errDamaged())
	}
	return block, iv, nil
}
