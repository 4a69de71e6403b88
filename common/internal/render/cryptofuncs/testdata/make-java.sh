#!/bin/sh
# Makes the archives of Java in this folder anew with keytool of Java 17: sh make-java.sh
set -eu
cd "$(dirname "$0")"
rm -f java.p12 java-trust.p12
for alias in one two; do
	keytool -genkeypair -keystore java.p12 -storetype PKCS12 -storepass changeit -alias $alias \
		-keyalg EC -groupname secp256r1 -dname "CN=$alias" -validity 36500
done
for name in root root-other root-renewed; do
	keytool -importcert -noprompt -keystore java-trust.p12 -storetype PKCS12 -storepass changeit \
		-alias $name -file $name.pem
done
