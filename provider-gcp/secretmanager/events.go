package secretmanager

import (
	"regexp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

// kind is the store Kind that reads the secrets of events.
const kind = "GCPSecretManager"

// global is the Place of a secret without a location.
const global = "global"

var (
	// resourceName is the name of a secret in notifications, which have the number of the project.
	resourceName  = regexp.MustCompile(`^projects/([a-z0-9.:-]{1,128})(?:/locations/([a-z0-9-]{1,63}))?/secrets/([A-Za-z0-9_-]{1,255})$`)
	projectNumber = regexp.MustCompile(`^[0-9]+$`)
)

// NewEvent returns the event of a changed secret; ok is false if name is not the full name of a secret. version is the full name of
// the version that was added; empty if none was.
func NewEvent(name, version string) (e provider.Event, ok bool) {
	m := resourceName.FindStringSubmatch(name)
	if m == nil {
		return provider.Event{}, false
	}
	e = provider.Event{Kind: kind, Names: []string{name}, Place: global}
	if m[2] != "" {
		e.Place = m[2]
	}
	// A deleted secret that is created again has a version 1 again, so its number does not prove that an object has the value.
	// Each later version follows a version 1.
	if n, ok := numberOf(version, m[3]); ok && n != "1" {
		e.Version = n
	}
	return e, true
}

// A store is a store Kind of Secret Manager.
type store interface {
	provider.Object

	GCP() *v1alpha1.GCPSpec
}

// Scope returns the settings of a store by which Keys differs; see provider.Kind.Scope.
func Scope(o provider.Object) any {
	if s, ok := o.(store); ok {
		return parentOf(s.GCP())
	}
	return nil
}

// Keys returns the keys by which objects that use a store can name the secret of an event; see provider.Kind.Keys. An event has the
// number of the project. A store that has the id instead may be of any project: if it is of another one, the event costs one read.
func Keys(o provider.Object, e provider.Event) (keys []string) {
	s, ok := o.(store)
	if !ok {
		return nil
	}
	for _, name := range e.Names {
		m := resourceName.FindStringSubmatch(name)
		if m == nil || m[2] != s.GCP().Location || projectNumber.MatchString(s.GCP().ProjectID) && m[1] != s.GCP().ProjectID {
			continue
		}
		keys = append(keys, m[3], parentOf(s.GCP())+secretsPart+m[3])
	}
	return keys
}
