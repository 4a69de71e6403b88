package events

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/secretmanager"
)

const (
	secret   = "projects/123456789012/secrets/db"
	regional = "projects/123456789012/locations/europe-west3/secrets/db"
)

// addedTo returns the event of a version that was added to a global secret.
func addedTo(name string, version int64) provider.Event {
	return provider.Event{Kind: "GCPSecretManager", Place: "global", Names: []string{name}, Version: strconv.FormatInt(version, 10)}
}

func TestParse(t *testing.T) {
	changed := func(place, version, name string) provider.Message {
		return provider.Message{Events: []provider.Event{{Kind: "GCPSecretManager", Place: place, Names: []string{name}, Version: version}}}
	}
	malformed := func(why string) provider.Message { return provider.Message{Malformed: why} }
	const none, unnamed = "it is no notification of Secret Manager", "it names no secret"
	cases := map[string]struct {
		reason, eventType, secret, version string
		want                               provider.Message
	}{
		"Add":         {"An added version is the latest one.", "SECRET_VERSION_ADD", secret, secret + "/versions/7", changed("global", "7", secret)},
		"Regional":    {"A regional secret has a location.", "SECRET_VERSION_ADD", regional, regional + "/versions/7", changed("europe-west3", "7", regional)},
		"First":       {"A secret that is created again has a version 1 again.", "SECRET_VERSION_ADD", secret, secret + "/versions/1", changed("global", "", secret)},
		"OtherSecret": {"A version of another secret is not the latest one.", "SECRET_VERSION_ADD", secret, "projects/123456789012/secrets/web/versions/7", changed("global", "", secret)},
		"NoVersion":   {"A version that is missing is not known.", "SECRET_VERSION_ADD", secret, "", changed("global", "", secret)},
		"Alias":       {"An alias is not a version.", "SECRET_VERSION_ADD", secret, secret + "/versions/latest", changed("global", "", secret)},
		"Enable":      {"An enabled version can be an older one.", "SECRET_VERSION_ENABLE", secret, secret + "/versions/7", changed("global", "", secret)},
		"Disable":     {"A disabled version has no value.", "SECRET_VERSION_DISABLE", secret, secret + "/versions/7", changed("global", "", secret)},
		"Destroy":     {"A destroyed version has no value.", "SECRET_VERSION_DESTROY", secret, secret + "/versions/7", changed("global", "", secret)},
		"Scheduled":   {"A version that will be destroyed is disabled.", "SECRET_VERSION_DESTROY_SCHEDULED", secret, secret + "/versions/7", changed("global", "", secret)},
		"Create":      {"A new secret can be that of an object that waits.", "SECRET_CREATE", secret, "", changed("global", "", secret)},
		"Update":      {"Aliases, labels and annotations can be read.", "SECRET_UPDATE", secret, "", changed("global", "", secret)},
		"Delete":      {"A deleted secret has no value.", "SECRET_DELETE", secret, "", changed("global", "", secret)},
		"Rotate":      {"A reminder changes nothing.", "SECRET_ROTATE", secret, "", provider.Message{}},
		"Topic":       {"A test message changes nothing.", "TOPIC_CONFIGURED", secret, "", provider.Message{}},
		"OtherType":   {"A type that is not known may be of another service.", "OBJECT_FINALIZE", secret, "", malformed(none)},
		"NoType":      {"A message can be anything.", "", "", "", malformed(none)},
		"Unnamed":     {"A notification without a secret is of no use.", "SECRET_VERSION_ADD", "", "", malformed(unnamed)},
		"BadName":     {"A name can be anything.", "SECRET_VERSION_ADD", "projects/p/secrets/../x", "", malformed(unnamed)},
		"Version":     {"The name of a version is not that of a secret.", "SECRET_VERSION_ADD", secret + "/versions/7", "", malformed(unnamed)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parse(map[string]string{"eventType": tc.eventType, "secretId": tc.secret, "versionId": tc.version})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nparse(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("SECRET_VERSION_ADD", secret, secret+"/versions/7")
	f.Add("SECRET_DELETE", regional, "")
	f.Add("hunter2", "", "")
	f.Fuzz(func(t *testing.T, eventType, name, version string) {
		m := parse(map[string]string{"eventType": eventType, "secretId": name, "versionId": version})
		if m.Malformed != "" && len(m.Events) > 0 {
			t.Errorf("%q, %q is malformed, and has events", eventType, name)
		}
		store := &v1alpha1.GCPSecretManager{}
		for _, e := range m.Events {
			if len(e.Names) == 0 || e.Place == "" {
				t.Errorf("%q, %q has an event without a name or a place", eventType, name)
			}
			if e.Place != "global" {
				store.Spec.Location = e.Place
			}
			if len(secretmanager.Keys(store, e)) == 0 {
				t.Errorf("%q, %q matches no store", eventType, name)
			}
		}
	})
}
