package awsconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/json"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// reserved begins the keys of our own tags.
	reserved = "direct-secrets.io/"
	// MarkKey is the key of the tag that holds the mark of a provider.Writer.
	MarkKey = reserved + "created-by"
	// IDKey is the key of the tag that tells what was created from another of its name, where AWS does not.
	IDKey = reserved + "id"
	// maxTags is how many tags a target may name; AWS takes fifty, ours included.
	maxTags = 48
)

// Metadata are the settings that a provider.Target may name, whatever the service. One that is empty is left
// alone.
type Metadata struct {
	Description string            `json:"description"`
	KMSKeyID    string            `json:"kmsKeyID"`
	Tags        map[string]string `json:"tags"`
}

// ParseMetadata reads the metadata of a provider.Target, if it has any. takes lists the fields for the error.
func ParseMetadata(raw []byte, into any, takes string) error {
	if raw == nil {
		return nil
	}
	strict, err := json.UnmarshalStrict(raw, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return provider.NewError(provider.Invalid, "metadata: %s; it takes %s", strings.TrimPrefix(err.Error(), "json: "), takes)
	}
	return nil
}

// Check finds what AWS would refuse, or what would pass for a mark.
func (m *Metadata) Check() error {
	for _, k := range slices.Sorted(maps.Keys(m.Tags)) {
		switch {
		case k == "":
			return provider.NewError(provider.Invalid, "metadata.tags: a key is empty; name the tag")
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return provider.NewError(provider.Invalid, "metadata.tags: AWS keeps keys such as %.64q to itself; use another one", k)
		case strings.HasPrefix(strings.ToLower(k), reserved):
			return provider.NewError(provider.Invalid, "metadata.tags: keys such as %.64q say which object created the secret, and are set by themselves; remove it", k)
		}
	}
	if len(m.Tags) > maxTags {
		return provider.NewError(provider.Invalid, "metadata.tags: %d tags, and at most %d are taken; remove some", len(m.Tags), maxTags)
	}
	return nil
}

// Drift names what differs from what AWS has.
func (m *Metadata) Drift(has Metadata) (drift []string) {
	if m.Description != "" && m.Description != has.Description {
		drift = append(drift, "description")
	}
	if m.KMSKeyID != "" && !sameKey(m.KMSKeyID, has.KMSKeyID) {
		drift = append(drift, "kmsKeyID")
	}
	for _, k := range slices.Sorted(maps.Keys(m.Tags)) {
		if v, ok := has.Tags[k]; !ok || v != m.Tags[k] {
			drift = append(drift, "tags."+k)
		}
	}
	return drift
}

// Drifted returns what of the metadata is to be brought in line.
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

// Marked returns the tags of what is created, the mark among them.
func (m *Metadata) Marked(mark string) map[string]string {
	tags := map[string]string{MarkKey: mark}
	maps.Copy(tags, m.Tags)
	return tags
}

// TagList makes the tags of any service.
func TagList[T any](tags map[string]string, one func(key, value *string) T) (list []T) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, one(aws.String(k), aws.String(tags[k])))
	}
	return list
}

// sameKey reports whether two spellings mean one KMS key. Keys and aliases may be given with the rest of
// their ARN or without it.
func sameKey(a, b string) bool {
	return a == b || (!IsARN(a) || !IsARN(b)) && keyName(a) == keyName(b)
}

func keyName(id string) string {
	if parts := strings.SplitN(id, ":", 6); IsARN(id) && len(parts) == 6 {
		id = parts[5]
	}
	return strings.TrimPrefix(id, "key/")
}
