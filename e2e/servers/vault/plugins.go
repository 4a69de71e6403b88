package main

import (
	gcp "github.com/hashicorp/vault-plugin-auth-gcp/plugin"
	jwt "github.com/hashicorp/vault-plugin-auth-jwt"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	awsauth "github.com/hashicorp/vault/builtin/credential/aws"
	"github.com/hashicorp/vault/builtin/credential/cert"
	"github.com/hashicorp/vault/builtin/credential/ldap"
	"github.com/hashicorp/vault/builtin/credential/userpass"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
)

// These are the plugins of the server. Vault's own registry contains all plugins, which would make the build
// several times as large.
var (
	secretsEngines = map[string]logical.Factory{
		"accounts": accounts,
		"kv":       kv.Factory,
	}
	authMethods = map[string]logical.Factory{
		"approle":    approle.Factory,
		"aws":        awsauth.Factory,
		"cert":       cert.Factory,
		"gcp":        gcp.Factory,
		"jwt":        jwt.Factory,
		"kubernetes": kubernetes.Factory,
		"ldap":       ldap.Factory,
		"userpass":   userpass.Factory,
	}
)

// registry is a plugincatalog.BuiltinRegistry of those plugins.
type registry struct{}

func (registry) of(t consts.PluginType) map[string]logical.Factory {
	switch t {
	case consts.PluginTypeCredential:
		return authMethods
	case consts.PluginTypeSecrets:
		return secretsEngines
	}
	return nil
}

// Contains implements plugincatalog.BuiltinRegistry.
func (r registry) Contains(name string, t consts.PluginType) bool {
	_, ok := r.of(t)[name]
	return ok
}

// Get implements plugincatalog.BuiltinRegistry.
func (r registry) Get(name string, t consts.PluginType) (func() (any, error), bool) {
	f, ok := r.of(t)[name]
	return func() (any, error) { return f, nil }, ok
}

// Keys implements plugincatalog.BuiltinRegistry.
func (r registry) Keys(t consts.PluginType) []string {
	var names []string
	for name := range r.of(t) {
		names = append(names, name)
	}
	return names
}

// DeprecationStatus implements plugincatalog.BuiltinRegistry.
func (r registry) DeprecationStatus(name string, t consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, t)
}

// IsBuiltinEntPlugin implements plugincatalog.BuiltinRegistry.
func (registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
