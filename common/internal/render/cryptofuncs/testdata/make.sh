#!/bin/sh
# Makes the fixtures of this folder anew with OpenSSL 3: sh make.sh
# All passwords are "changeit". Each run makes other keys; no test depends on which.
set -eu
cd "$(dirname "$0")"
rm -f ./*.pem ./[!j]*.p12 ./*.bin # Those of make-java.sh stay.

# Keys of every kind and form.
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem
openssl rsa -in rsa.pem -traditional -out rsa-pkcs1.pem
openssl pkey -in rsa.pem -aes256 -passout pass:changeit -out rsa-encrypted.pem
openssl rsa -in rsa.pem -traditional -aes256 -passout pass:changeit -out rsa-pkcs1-encrypted.pem
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:512 -out rsa-512.pem
openssl ecparam -name prime256v1 -genkey -out ec-sec1.pem
openssl pkey -in ec-sec1.pem -out ec.pem
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp521r1 -out ec-521.pem
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out ec-koblitz.pem
openssl genpkey -algorithm ED25519 -out ed25519.pem
openssl genpkey -algorithm X25519 -out x25519.pem

# A chain: root, two intermediates, and a leaf for each key.
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ca-key.pem
issue() { # name, subject, issuer or empty, key, issuer's key, extensions
	printf '%s\n' "$6" > ext.cnf
	openssl req -new -key "$4" -subj "$2" -out req.csr
	if [ -n "$3" ]; then
		openssl x509 -req -in req.csr -CA "$3" -CAkey "$5" -days 36500 -extfile ext.cnf -out "$1"
	else
		openssl x509 -req -in req.csr -signkey "$4" -days 36500 -extfile ext.cnf -out "$1"
	fi
}
ca='basicConstraints=critical,CA:TRUE
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid'
leaf='basicConstraints=CA:FALSE
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
subjectAltName=DNS:example.org,IP:192.0.2.1,email:ann@example.org,URI:https://example.org/a,DNS:*.example.org,IP:2001:db8::1'
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ca1-key.pem
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ca2-key.pem
issue root.pem /CN=Root "" ca-key.pem "" "$ca"
issue intermediate1.pem /CN=Intermediate1 root.pem ca1-key.pem ca-key.pem "$ca"
issue intermediate2.pem /CN=Intermediate2 intermediate1.pem ca2-key.pem ca1-key.pem "$ca"
issue leaf.pem /CN=rsa.example.org intermediate2.pem rsa.pem ca2-key.pem "$leaf"
issue leaf-ec.pem /CN=ec.example.org intermediate2.pem ec.pem ca2-key.pem "$leaf"
issue leaf-521.pem /CN=521.example.org intermediate2.pem ec-521.pem ca2-key.pem "$leaf"
issue leaf-ed25519.pem /CN=ed.example.org intermediate2.pem ed25519.pem ca2-key.pem "$leaf"
issue leaf-plain.pem /CN=plain.example.org root.pem ec.pem ca-key.pem 'subjectKeyIdentifier=none
authorityKeyIdentifier=none'
# The first intermediate signed by another root, too, and that root with the name of the first one.
issue root-other.pem /CN=Other "" ca2-key.pem "" "$ca"
issue root-renewed.pem /CN=Root "" ca1-key.pem "" "$ca"
issue intermediate1-cross.pem /CN=Intermediate1 root-other.pem ca1-key.pem ca2-key.pem "$ca"
cat intermediate1.pem intermediate2.pem root.pem > issuers.pem

# Archives, from the oldest encryption to none.
export_p12() {
	out=$1
	shift
	openssl pkcs12 -export -inkey rsa.pem -in leaf.pem -certfile issuers.pem -out "$out" "$@"
}
pbe() { export_p12 "$1" -passout pass:changeit -keypbe "$2" -certpbe "$2" -macalg "$3"; }
export_p12 modern.p12 -passout pass:changeit
export_p12 modern-empty.p12 -passout pass:
export_p12 modern-umlaut.p12 -passout pass:schlüssel
export_p12 legacy.p12 -passout pass:changeit -legacy
pbe des3.p12 PBE-SHA1-3DES sha1
pbe aes128-sha512.p12 AES-128-CBC sha512
pbe aes192-sha384.p12 AES-192-CBC sha384
pbe des3-pbes2.p12 des-ede3-cbc sha224
export_p12 des2.p12 -legacy -passout pass:changeit -keypbe PBE-SHA1-2DES -certpbe PBE-SHA1-2DES
export_p12 rc2-128.p12 -legacy -passout pass:changeit -keypbe PBE-SHA1-RC2-128 -certpbe PBE-SHA1-RC2-128
export_p12 rc4.p12 -legacy -passout pass:changeit -keypbe PBE-SHA1-RC4-128 -certpbe PBE-SHA1-RC4-128
export_p12 open.p12 -passout pass: -keypbe NONE -certpbe NONE -nomac
export_p12 nomac.p12 -passout pass:changeit -nomac -certpbe AES-256-CBC
export_p12 iterations-600000.p12 -passout pass:changeit -iter 600000
export_p12 iterations-2000000.p12 -passout pass:changeit -iter 2000000
openssl pkcs12 -export -inkey ec.pem -in leaf-ec.pem -out ec.p12 -passout pass:changeit
openssl pkcs12 -export -inkey ed25519.pem -in leaf-ed25519.pem -out ed25519.p12 -passout pass:changeit
openssl pkcs12 -export -inkey ec-koblitz.pem -nocerts -out key-only.p12 -passout pass:changeit
openssl pkcs12 -export -nokeys -in issuers.pem -out certs-only.p12 -passout pass:changeit

# Cipher texts of "hunter2".
encrypt() {
	out=$1
	shift
	printf hunter2 | openssl pkeyutl -encrypt -inkey rsa.pem -out "$out" "$@"
}
for md in sha1 sha256 sha512; do
	encrypt oaep-$md.bin -pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:$md
done
encrypt pkcs1v15.bin -pkeyopt rsa_padding_mode:pkcs1

rm -f req.csr ext.cnf ca-key.pem ca1-key.pem ca2-key.pem
