package secretsmanager

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// uuidPrefix marks a version id, as External Secrets Operator has it.
const uuidPrefix = "uuid/"

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// version reads the version of a ref. None is the current one; a UUID, and whatever follows "uuid/",
// is a version id; anything else is a staging label such as AWSPREVIOUS.
func version(v string) (id, stage *string) {
	if v == "" {
		return nil, nil
	}
	if marked, ok := strings.CutPrefix(v, uuidPrefix); ok {
		return aws.String(marked), nil
	}
	if uuid.MatchString(v) {
		return aws.String(v), nil
	}
	return nil, aws.String(v)
}

// versionName spells a version id so that version reads it back. Ids are UUIDs, unless whoever wrote
// the secret chose another token.
func versionName(id string) string {
	if id == "" || uuid.MatchString(id) {
		return id
	}
	return uuidPrefix + id
}
