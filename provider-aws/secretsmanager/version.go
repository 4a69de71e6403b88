package secretsmanager

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// uuidPrefix marks a version id, as in External Secrets Operator.
const uuidPrefix = "uuid/"

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// version parses the version of a ref. An empty version means the current one. A UUID, and any text after
// "uuid/", is a version id. Any other text is a staging label such as AWSPREVIOUS.
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

// VersionName formats a version id so that version can parse it again. An id is a UUID unless another writer
// chose a different token.
func VersionName(id string) string {
	if id == "" || uuid.MatchString(id) {
		return id
	}
	return uuidPrefix + id
}
