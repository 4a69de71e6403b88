package emulator

import (
	"encoding/base64"
	"strings"
	"time"
)

// registryToken is how long a login of a registry is valid.
const registryToken = 12 * time.Hour

// publicRegion is the only region with the service for public registries.
const publicRegion = "us-east-1"

// privateRegistry and publicRegistry are the services that issue logins for container registries. Their other
// operations are not emulated.
var (
	privateRegistry = &jsonService{scope: "ecr", target: "AmazonEC2ContainerRegistry_V20150921.", operations: map[string]operation{
		"GetAuthorizationToken": handle((*Emulator).getPrivateToken),
	}}
	publicRegistry = &jsonService{scope: "ecr-public", target: "SpencerFrontendService.", operations: map[string]operation{
		"GetAuthorizationToken": handle((*Emulator).getPublicToken),
	}}
)

type getTokenInput struct {
	nameless

	RegistryIDs []string `json:"registryIds"`
}

// registryLogin is one login of a registry.
type registryLogin struct {
	AuthorizationToken string `json:"authorizationToken"`
	ExpiresAt          *epoch `json:"expiresAt"`
	ProxyEndpoint      string `json:"proxyEndpoint,omitempty"`
}

func (e *Emulator) newLogin(proxyEndpoint string) registryLogin {
	password := strings.ReplaceAll(newUUID()+newUUID(), "-", "")
	return registryLogin{
		AuthorizationToken: base64.StdEncoding.EncodeToString([]byte("AWS:" + password)),
		ExpiresAt:          date(e.now().Add(registryToken)),
		ProxyEndpoint:      proxyEndpoint,
	}
}

func (e *Emulator) getPrivateToken(_ *request, in *getTokenInput) (any, error) {
	ids := in.RegistryIDs
	if len(ids) == 0 {
		ids = []string{e.account}
	}
	var out struct {
		AuthorizationData []registryLogin `json:"authorizationData"`
	}
	for _, id := range ids {
		out.AuthorizationData = append(out.AuthorizationData, e.newLogin("https://"+id+".dkr.ecr."+e.region+".amazonaws.com"))
	}
	return &out, nil
}

func (e *Emulator) getPublicToken(q *request, _ *getTokenInput) (any, error) {
	if parseSignature(q.http.Header.Get("Authorization")).region != publicRegion {
		return nil, badRequest("InvalidSignatureException", "Credential should be scoped to a valid region.")
	}
	if q.caller.denies("sts:GetServiceBearerToken", "") {
		return nil, accessDenied(q.caller, "sts:GetServiceBearerToken", "")
	}
	var out struct {
		AuthorizationData registryLogin `json:"authorizationData"`
	}
	out.AuthorizationData = e.newLogin("")
	return &out, nil
}
