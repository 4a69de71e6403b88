package awsconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// MarkKey is the key of the tag with the mark of a provider.Writer.
	MarkKey = provider.Reserved + "/created-by"
	// IDKey is the key of the tag that distinguishes two objects created one after the other under the same
	// name, where AWS does not.
	IDKey = provider.Reserved + "/id"
	// maxTags is the maximum number of tags in a target. AWS allows fifty; the operator needs two.
	maxTags = 48
)

// Metadata holds the settings that a provider.Target can have for any service. An empty field is left unchanged
// in AWS.
type Metadata struct {
	Description string            `json:"description"`
	KMSKeyID    string            `json:"kmsKeyID"`
	Tags        map[string]string `json:"tags"`
}

// Check rejects metadata that AWS would reject, or that could be confused with a mark.
func (m *Metadata) Check() error {
	err := provider.CheckSettings("tags", m.Tags, func(key, _ string) (wrong string) {
		switch {
		case key == "":
			return "is not the name of a tag; name the tag"
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return "is reserved by AWS; use another name"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if len(m.Tags) > maxTags {
		return provider.NewError(provider.Invalid, "metadata.tags: has %d tags, at most %d are allowed; remove some", len(m.Tags), maxTags)
	}
	return nil
}

// Drift returns the names of the fields that differ from those in AWS.
func (m *Metadata) Drift(has Metadata) (drift []string) {
	if m.Description != "" && m.Description != has.Description {
		drift = append(drift, "description")
	}
	if m.KMSKeyID != "" && !sameKey(m.KMSKeyID, has.KMSKeyID) {
		drift = append(drift, "kmsKeyID")
	}
	return append(drift, provider.Differing("tags", m.Tags, has.Tags)...)
}

// Drifted returns only the fields that have drifted and need an update.
func (m *Metadata) Drifted(drift []string) Metadata {
	only := Metadata{Tags: maps.Clone(m.Tags)}
	if slices.Contains(drift, "description") {
		only.Description = m.Description
	}
	if slices.Contains(drift, "kmsKeyID") {
		only.KMSKeyID = m.KMSKeyID
	}
	maps.DeleteFunc(only.Tags, func(k, _ string) bool { return !slices.Contains(drift, "tags."+k) })
	return only
}

// Marked returns the tags of a new object, including the mark.
func (m *Metadata) Marked(mark string) map[string]string {
	return provider.Merged(map[string]string{MarkKey: mark}, m.Tags)
}

// TagList turns a map into the tags of any service.
func TagList[T any](tags map[string]string, one func(key, value *string) T) (list []T) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, one(aws.String(k), aws.String(tags[k])))
	}
	return list
}

// sameKey reports whether two strings name one KMS key. A key or alias can be given as an ARN or by its name
// alone.
func sameKey(a, b string) bool {
	return a == b || (!IsARN(a) || !IsARN(b)) && keyName(a) == keyName(b)
}

func keyName(id string) string {
	if parts := strings.SplitN(id, ":", 6); IsARN(id) && len(parts) == 6 {
		id = parts[5]
	}
	return strings.TrimPrefix(id, "key/")
}
