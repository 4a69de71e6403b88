package events

import (
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/secretmanager"
)

// These are the attributes of a notification, as described at https://cloud.google.com/secret-manager/docs/event-notifications.
const (
	eventType = "eventType"
	secretID  = "secretId"
	versionID = "versionId"

	// added is the only type whose version is the latest one after the change.
	added = "SECRET_VERSION_ADD"
)

// changes are the types of notifications. The value is true if a secret may have another value, alias, label or annotation
// afterwards, or not exist.
var changes = map[string]bool{
	"SECRET_CREATE":                    true,
	"SECRET_UPDATE":                    true,
	"SECRET_DELETE":                    true,
	added:                              true,
	"SECRET_VERSION_ENABLE":            true,
	"SECRET_VERSION_DISABLE":           true,
	"SECRET_VERSION_DESTROY":           true,
	"SECRET_VERSION_DESTROY_SCHEDULED": true,  // It disables the version.
	"SECRET_ROTATE":                    false, // It reminds a program to add a version.
	"TOPIC_CONFIGURED":                 false, // It is a test of the topic.
}

// parse returns the events of a message with attributes. It is malformed if it is not from Secret Manager; one that is, and reports
// no change, has no events. The data of a message are not needed.
func parse(attributes map[string]string) provider.Message {
	change, known := changes[attributes[eventType]]
	switch {
	case !known:
		return provider.Message{Malformed: "it is no notification of Secret Manager"}
	case !change:
		return provider.Message{}
	}
	version := ""
	if attributes[eventType] == added {
		version = attributes[versionID]
	}
	e, ok := secretmanager.NewEvent(attributes[secretID], version)
	if !ok {
		return provider.Message{Malformed: "it names no secret"}
	}
	return provider.Message{Events: []provider.Event{e}}
}
