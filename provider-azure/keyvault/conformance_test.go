package keyvault

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, harness(start(t, emulator.WithResources(emulator.Resource, "https://invalid")), start(t)))
}

func harness(srv, other *emulator.Server) conformance.Harness {
	return conformance.Harness{
		Kind: "AzureKeyVault", Service: emulator.Name,
		Connect: func(ctx context.Context) (provider.Client, error) { return storeOf(srv).connect(ctx) },
		ConnectDenied: func(ctx context.Context) (provider.Client, error) {
			s := storeOf(srv)
			s.secrets["secret"] = []byte("another")
			return s.connect(ctx)
		},
		Spell:            func(_ context.Context, key string) (string, error) { return "secret/" + key, nil },
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) { return storeOf(other).connect(ctx) },
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return storeOf(srv).elsewhere(srv, url).connect(ctx)
		},
		Server: srv.URL(),
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			if key != strings.ToLower(key) {
				return errors.New("Key Vault ignores the case of names")
			}
			var opts []emulator.PutOption
			if tags != nil {
				opts = append(opts, emulator.Tags(tags))
			}
			_, err := srv.Put(key, data, opts...)
			return err
		},
		Delete: func(_ context.Context, key string) error {
			srv.Delete(key)
			return nil
		},
		Inject: func(f conformance.Fault) (func(), error) {
			fault := failures[f.Failure]
			fault.Key = f.Key
			return srv.Inject(fault), nil
		},
		// Names cannot contain slashes.
		Key:       func(name string) string { return strings.ReplaceAll(name, "/", "-") },
		NoVersion: strings.Repeat("f", 32),
		Without:   map[string]string{"read/binary": "values of Key Vault are text"},
		MaxSize:   emulator.MaxValue, MaxWrite: emulator.MaxValue,
		Metadata: []string{
			`{"tags":{"team":"shop"},"contentType":"text/plain","expirationDate":"2099-01-31T12:00:00Z"}`,
			`{"tags":{"team":"bank"},"contentType":"","activationDate":"2020-01-31T12:00:00.5+01:00","expirationDate":"2098-01-31T12:00:00Z"}`,
		},
	}
}

var failures = map[conformance.Failure]emulator.Fault{
	conformance.Denied:      {Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac", Message: "Caller is not authorized to perform action on resource."},
	conformance.Throttled:   emulator.Throttled(0),
	conformance.Unavailable: {Status: http.StatusInternalServerError, Code: "InternalServerError", Message: "An internal error occurred."},
	conformance.Hang:        {Hang: true, Status: http.StatusServiceUnavailable, Code: "ServiceUnavailable"}, // A hanging call must not take effect later.
	conformance.Dropped:     {Call: emulator.CallGet, Body: emulator.BodyNoValue},
}
