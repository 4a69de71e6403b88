package emulator

import "fmt"

// secretsManager is the service with the secrets.
var secretsManager = &jsonService{scope: "secretsmanager", target: "secretsmanager.", operations: map[string]operation{
	batchOperation:                 handle((*Emulator).batchGetSecretValue),
	"CreateSecret":                 handle((*Emulator).createSecret),
	"DeleteSecret":                 onSecret((*Emulator).findAny, (*Emulator).deleteSecret),
	"DescribeSecret":               onSecret((*Emulator).findAny, (*Emulator).describeSecret),
	"GetResourcePolicy":            onSecret((*Emulator).find, (*Emulator).getResourcePolicy),
	"GetSecretValue":               handle((*Emulator).getSecretValue),
	"ListSecretVersionIds":         onSecret((*Emulator).findAny, (*Emulator).listSecretVersionIDs),
	"ListSecrets":                  handle((*Emulator).listSecrets),
	"PutResourcePolicy":            onSecret((*Emulator).find, (*Emulator).putResourcePolicy),
	"PutSecretValue":               onSecret((*Emulator).find, (*Emulator).putSecretValue),
	"RemoveRegionsFromReplication": onSecret((*Emulator).find, (*Emulator).removeRegionsFromReplication),
	"ReplicateSecretToRegions":     onSecret((*Emulator).find, (*Emulator).replicateSecretToRegions),
	"RestoreSecret":                onSecret((*Emulator).findAny, (*Emulator).restoreSecret),
	"TagResource":                  onSecret((*Emulator).find, (*Emulator).tagResource),
	"UpdateSecret":                 onSecret((*Emulator).find, (*Emulator).updateSecret),
	"UpdateSecretVersionStage":     onSecret((*Emulator).find, (*Emulator).updateSecretVersionStage),
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
func (n *newValue) check() error {
	if n.SecretString != nil && n.SecretBinary != nil {
		return invalidParameter("You can't specify both a binary secret value and a string secret value in the same secret.")
	}
	if size := len(n.payload().data); n.given() && (size == 0 || size > maxValueBytes) {
		return invalidField("secretString", fmt.Sprintf("Member must have length less than or equal to %d", maxValueBytes))
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
	return nil, badRequest("ResourceExistsException",
		"You can't use ClientRequestToken %s because that value is already in use for a version of secret %s.", n.ClientRequestToken, s.arn)
}
