package cryptofuncs

import (
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
)

// rsaDecrypt decrypts a value with an RSA key in PEM. The scheme is RSA-OAEP (RFC 8017, section 7.1, with an empty
// label), or None, which returns the cipher text unchanged. The hash is SHA1, SHA256 or SHA512; None is SHA256. The
// cipher text is bytes, not base64.
//
// RSAES-PKCS1-v1_5 is refused: a user who can store a secret could read in a condition whether a padding was right,
// and use that to decrypt any value.
func rsaDecrypt(scheme, hashName, ciphertext, key string) (string, error) {
	if err := checkSize(ciphertext); err != nil {
		return "", err
	}
	switch scheme {
	case "None":
		return ciphertext, nil
	case "RSA-OAEP":
	default:
		return "", newError("this scheme is not supported; rsaDecrypt supports RSA-OAEP and None; the arguments are scheme, hash, cipher text, key")
	}
	h, err := oaepHash(hashName)
	if err != nil {
		return "", err
	}
	k, err := privateKey(key)
	if err != nil {
		return "", err
	}
	rsaKey, ok := k.(*rsa.PrivateKey)
	if !ok {
		return "", newError("the private key is not an RSA key; rsaDecrypt needs the RSA key that the value was encrypted for")
	}
	if len(ciphertext) != rsaKey.Size() {
		return "", newError("the cipher text has %d bytes, but one for this key has %d; if it is base64, decode it first with b64dec", len(ciphertext), rsaKey.Size())
	}
	plain, err := rsa.DecryptOAEP(h, nil, rsaKey, []byte(ciphertext), nil)
	if err != nil {
		return "", orRefusal(err, newError("the cipher text cannot be decrypted with this key of %d bits and this hash; keys below 1024 bits are refused", rsaKey.N.BitLen()))
	}
	return string(plain), nil
}

func oaepHash(name string) (hash.Hash, error) {
	switch name {
	case "SHA1":
		return sha1.New(), nil
	case "SHA256", "None":
		return sha256.New(), nil
	case "SHA512":
		return sha512.New(), nil
	}
	return nil, newError("this hash is not supported; rsaDecrypt supports SHA1, SHA256, SHA512 and None (SHA256)")
}
