package secretmanager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestAPICalls(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("v"))
	srv.Inject(emulator.Fault{Call: "AccessSecretVersion", Code: codes.Unavailable, Times: 1})
	if _, err := fake.Link(t.Name(), client(t, srv)).Get(soon(t), provider.Ref{Key: "db"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"AccessSecretVersion Unavailable": 1, "AccessSecretVersion OK": 1}
	if diff := cmp.Diff(want, conformance.APICalls(t, t.Name())); diff != "" {
		t.Errorf("Retries are counted.\nrequests: -want, +got:\n%s", diff)
	}
}
