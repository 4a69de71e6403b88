package secretmanager

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

// TestTransportOfLogins checks that logins that would use the connection of the reads fail before any read.
func TestTransportOfLogins(t *testing.T) {
	srv := start(t)
	h := harness(srv)
	h.ConnectTo = func(ctx context.Context, url string) (provider.Client, error) {
		s := storeOf(srv)
		s.Spec.Endpoint = url
		s.secrets["key.json"] = bytes.ReplaceAll(srv.Key(reader), []byte(srv.URL()), []byte(url))
		return s.connect(ctx)
	}
	h.Without = map[string]string{
		"transport/no-such-host": "logins use Google's address unless the endpoint is on loopback",
		"transport/newer":        "the assertion names the server, so no login goes through another one",
	}
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if !strings.HasPrefix(c.Name, "transport/") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("%s:\n%v", c.Reason, err)
			}
		})
	}
}
