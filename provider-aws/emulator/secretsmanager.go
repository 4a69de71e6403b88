package emulator

// secretsManager is the service with the secrets.
var secretsManager = &jsonService{scope: "secretsmanager", target: "secretsmanager.", operations: map[string]operation{
	"BatchGetSecretValue":          handle((*Emulator).batchGetSecretValue),
	"CreateSecret":                 handle((*Emulator).createSecret),
	"DeleteSecret":                 handle((*Emulator).deleteSecret),
	"DescribeSecret":               handle((*Emulator).describeSecret),
	"GetResourcePolicy":            handle((*Emulator).getResourcePolicy),
	"GetSecretValue":               handle((*Emulator).getSecretValue),
	"ListSecretVersionIds":         handle((*Emulator).listSecretVersionIDs),
	"ListSecrets":                  handle((*Emulator).listSecrets),
	"PutResourcePolicy":            handle((*Emulator).putResourcePolicy),
	"PutSecretValue":               handle((*Emulator).putSecretValue),
	"RemoveRegionsFromReplication": handle((*Emulator).removeRegionsFromReplication),
	"ReplicateSecretToRegions":     handle((*Emulator).replicateSecretToRegions),
	"RestoreSecret":                handle((*Emulator).restoreSecret),
	"TagResource":                  handle((*Emulator).tagResource),
	"UntagResource":                handle((*Emulator).untagResource),
	"UpdateSecret":                 handle((*Emulator).updateSecret),
	"UpdateSecretVersionStage":     handle((*Emulator).updateSecretVersionStage),
}}

// secretRef is the field of a request that names one secret.
type secretRef struct {
	SecretID string `json:"SecretId"`
}

func (r *secretRef) secretIDs() []string { return []string{r.SecretID} }

// secretName is the answer of operations that return only the secret's name.
type secretName struct {
	ARN          string
	Name         string
	VersionID    string   `json:"VersionId,omitempty"`
	VersionStage []string `json:"VersionStages,omitempty"`
	DeletionDate *epoch   `json:",omitempty"`
}

// newValue holds the fields of a request that contain a secret value.
type newValue struct {
	ClientRequestToken string
	SecretString       *string
	SecretBinary       []byte
}

func (n *newValue) given() bool { return n.SecretString != nil || n.SecretBinary != nil }

func (n *newValue) payload() payload {
	if n.SecretString != nil {
		return payload{data: []byte(*n.SecretString)}
	}
	return payload{data: n.SecretBinary, binary: true}
}

// check validates a new value like the service: text or binary, its size, and the token that becomes the
// version's id.
func (n *newValue) check(maxBytes int) error {
	switch {
	case n.SecretString != nil && n.SecretBinary != nil:
		return invalidParameter("You can't specify both a binary secret value and a string secret value in the same secret.")
	case n.SecretString != nil:
		if err := checkLength("secretString", len(*n.SecretString), 1, maxBytes); err != nil {
			return err
		}
	case n.SecretBinary != nil:
		if err := checkLength("secretBinary", len(n.SecretBinary), 1, maxBytes); err != nil {
			return err
		}
	}
	if n.ClientRequestToken == "" {
		return invalidRequest("You must provide a ClientRequestToken value. We recommend a UUID-type value.")
	}
	if l := len(n.ClientRequestToken); l < 32 || l > 64 {
		return invalidParameter("ClientRequestToken must be 32-64 characters long.")
	}
	return nil
}

// replayed reports whether a request repeats an earlier one: the version with its token has the same value. A
// different value is an error.
func (n *newValue) replayed(s *secret) (*version, error) {
	v := s.version(n.ClientRequestToken)
	if v == nil || v.value.equal(n.payload()) {
		return v, nil
	}
	return nil, tokenInUse(n.ClientRequestToken, s.arn)
}
