package secretsmanager

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestAPICalls(t *testing.T) {
	srv := awstest.Start(t)
	for i := range 120 {
		srv.Put(fmt.Sprintf("p/%03d", i), []byte("v"))
	}
	srv.Inject(emulator.Fault{Call: "ListSecrets", Status: 500, Times: 1})
	c := client(t, srv, awstest.WithRetries(3))
	for _, err := range fake.Link(t.Name(), c).Find(t.Context(), provider.Query{Path: "p/"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"ListSecrets 500": 1, "ListSecrets 200": 2, "BatchGetSecretValue 200": 6}
	if diff := cmp.Diff(want, conformance.APICalls(t, t.Name())); diff != "" {
		t.Errorf("Retries, pages and batches are counted.\nrequests: -want, +got:\n%s", diff)
	}
}
