package emulator

import "time"

// These are the names of calls.
const (
	// CallChallenge is a request to the vault without a token.
	CallChallenge = "Challenge"
	CallGet       = "GetSecret"
	CallGetKey    = "GetKey"
	CallList      = "ListSecrets"
	CallVersions  = "ListVersions"
	CallSet       = "SetSecret"
	CallUpdate    = "UpdateSecret"
	CallDelete    = "DeleteSecret"
	CallDeleted   = "GetDeletedSecret"
	CallRecover   = "RecoverDeletedSecret"
	CallPurge     = "PurgeDeletedSecret"
	// CallDiscovery reads the metadata of the tenant, and CallToken requests a token.
	CallDiscovery = "Discovery"
	CallToken     = "Token"
	// CallMachine requests a token of the managed identity.
	CallMachine = "MachineToken"
	// CallExchange exchanges a token of Entra ID for a refresh token of the registry, and CallAccess that one for an access token.
	CallExchange = "ExchangeToken"
	CallAccess   = "RegistryToken"
	callOther    = "Other"
)

// A Call is one request. It contains no value.
type Call struct {
	Time   time.Time
	Method string // one of the names above
	Host   string // the host that the request names
	Path   string
	Caller string // the client ID, if the token is valid
}

// CallName returns the method.
func (c Call) CallName() string { return c.Method }
