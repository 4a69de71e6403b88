package vaulttest

import "github.com/direct-secrets/direct-secrets/common/provider/fake"

// Credentials holds the values of the Secrets and ConfigMaps of a test, by key.
type Credentials = fake.Credentials
