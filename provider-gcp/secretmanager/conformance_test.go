package secretmanager

import (
	"context"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestConformance(t *testing.T) { conformance.Run(t, harness(start(t))) }

func harness(srv *emulator.Server) conformance.Harness {
	return conformance.Harness{
		Kind: "GCPSecretManager", Service: emulator.Name,
		Connect: func(ctx context.Context) (provider.Client, error) { return storeOf(srv).connect(ctx) },
		ConnectDenied: func(ctx context.Context) (provider.Client, error) {
			s := storeOf(srv)
			s.secrets["key.json"] = srv.Key("revoked@test-project.iam.gserviceaccount.com")
			srv.RevokeKeys("revoked@test-project.iam.gserviceaccount.com")
			return s.connect(ctx)
		},
		Spell: func(_ context.Context, key string) (string, error) {
			return "projects/" + storeOf(srv).Spec.ProjectID + secretsPart + key, nil
		},
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) {
			s := storeOf(srv)
			s.Spec.ProjectID = "other-project"
			return s.connect(ctx)
		},
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return readFrom(ctx, storeOf(srv), url)
		},
		Server: srv.URL(),
		Put: func(_ context.Context, key string, data []byte, labels map[string]string) error {
			if !secretID.MatchString(key) {
				return errors.New("Google has no such ids")
			}
			srv.Put(key, data, emulator.Labels(labels))
			return nil
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
		// Ids cannot contain slashes.
		Key:      func(name string) string { return strings.ReplaceAll(name, "/", "_") },
		MaxWrite: maxSize,
		Metadata: []string{`{"labels":{"team":"shop"},"annotations":{"owner":"a@b"},"topics":["projects/p/topics/a"]}`, `{"labels":{"team":"bank"},"annotations":{"owner":"c@d"},"topics":[]}`},
	}
}

var failures = map[conformance.Failure]emulator.Fault{
	conformance.Denied:      {Code: codes.PermissionDenied, Message: "Permission 'secretmanager.versions.access' denied"},
	conformance.Throttled:   emulator.Throttled(),
	conformance.Unavailable: {Code: codes.Unavailable, Message: "The service is currently unavailable."},
	conformance.Hang:        {Hang: true, Code: codes.Unavailable}, // A hanging call must not take effect later.
	conformance.Dropped:     {Call: "AccessSecretVersion", Body: emulator.BodyNoPayload},
}
