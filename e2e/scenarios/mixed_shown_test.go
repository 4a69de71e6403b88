//go:build long

package scenarios

import (
	crand "crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsemulator "github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	gcpemulator "github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// startGCP starts an emulator of Google for the test, and creates the store "gcp" in a namespace.
func startGCP(t *testing.T, ns string) *gcpemulator.Server {
	t.Helper()
	srv, err := gcpemulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, srv.Close()) })
	key := srv.Key("reader@test-project.iam.gserviceaccount.com")
	must(t, shared.GCPStore(t.Context(), ns, "gcp", srv.URL(), gcpemulator.DefaultProject, key, func(s *gcpv1.GCPSecretManager) {
		retries := int32(1)
		s.Spec.RetrySettings = &v1alpha1.RetrySettings{MaxRetries: &retries, RetryInterval: "10ms"}
	}))
	return srv
}

// TestMixedShown makes all four modules work on objects together, with and without errors. It then searches for
// all values in everything that the modules print and write, except in the data of Secrets.
func TestMixedShown(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-shown")
	gcp := startGCP(t, m.ns)
	values := map[string]bool{}
	value := func() string { // Each value starts with other letters, and is too long for a label or a key.
		var v strings.Builder
		for v.Len() < 300 {
			v.WriteString(crand.Text())
		}
		values[v.String()] = true
		return v.String()
	}
	const id = "shown"
	put := func() {
		t.Helper()
		shared.AWS.Put(m.key(id), []byte(value()))
		m.vault.Do(http.MethodPost, vaultMount+"/data/"+m.key(id), vaulttest.M{"data": vaulttest.M{"password": value()}})
		gcp.Put(id, []byte(value()))
	}
	put()
	gcpRef := &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "GCPSecretManager", Name: "gcp"}}
	over := func(es *v1alpha1.ExternalSecretSpec) {
		m.read(es, id)
		es.Data = append(es.Data, v1alpha1.DataEntry{SecretKey: "gcp", RemoteRef: v1alpha1.RemoteRef{Key: id}, SourceRef: gcpRef})
	}
	// The templates that fail with a generated value also fail with a value from Vault of the same name.
	all := map[string]specChange{"good": over}
	for name, change := range fails {
		all[name] = func(es *v1alpha1.ExternalSecretSpec) {
			over(es)
			es.Data[1].SecretKey = "password"
			change(es)
		}
	}
	all["property"] = func(es *v1alpha1.ExternalSecretSpec) { // The value is not JSON.
		over(es)
		es.Data[3].RemoteRef.Property = "field"
	}
	all["decode"] = func(es *v1alpha1.ExternalSecretSpec) {
		over(es)
		es.Data[1].RemoteRef.DecodingStrategy = "Base64"
	}
	for name, change := range all {
		m.create(name, change)
	}
	processes := map[string]*stack.Process{}
	run := func(which string) {
		m.run(append(slices.Clone(mixedModules), stack.ProviderGCP)...)
		for module, p := range m.processes {
			processes[module+" "+which] = p
		}
	}
	run("first")
	waitUntilReported := func() {
		t.Helper()
		for name := range all {
			if name != "good" {
				wantFailed(t, &v1alpha1.ExternalSecret{}, m.ns, name)
			}
		}
		eventually(t, func() string { return ready(m.get("good")) })
	}
	waitUntilReported()
	m.kill(slices.Collect(maps.Keys(m.processes))...)
	run("second")
	put()
	for name := range all {
		m.refresh(name)
	}
	waitUntilReported()

	// A failing server can return values in its errors.
	for _, code := range []struct {
		vault int
		gcp   codes.Code
		aws   string
	}{
		{http.StatusForbidden, codes.PermissionDenied, "AccessDeniedException"},
		{http.StatusInternalServerError, codes.Internal, "InternalServiceError"},
		{http.StatusBadRequest, codes.InvalidArgument, "InvalidParameterException"},
	} {
		repairs := []func(){
			m.vault.Inject(vaulttest.On(vaultMount+"/data/"+m.key(id)), vaulttest.RefuseWith(code.vault, value())),
			gcp.Inject(gcpemulator.Fault{Key: id, Code: code.gcp, Message: value()}),
			shared.AWS.Inject(awsemulator.Fault{Key: m.key(id), Code: code.aws, Message: value()}),
		}
		m.refresh("good")
		wantFailed(t, &v1alpha1.ExternalSecret{}, m.ns, "good")
		for _, stop := range repairs {
			stop()
		}
		waitUntilReported()
	}

	for _, data := range m.history.contents(partName("good"), inspect.GeneratorID(pw)) {
		values[string(valuesOf(data).Current["password"])] = true
	}
	holders := []string{"good", readsName("good"), partName("good"), inspect.Contributor{Group: gcpv1.Group, Purpose: v1alpha1.PartRead}.PartName("ExternalSecret", "good")}
	search(t, m.ns, processes, needlesOf(maps.Keys(values)), holders...)
	for _, name := range holders[1:] {
		if s := getSecret(t, m.ns, name); s.Type != inspect.ContributionType {
			t.Errorf("Secret %s is of type %s", name, s.Type)
		}
	}
}
