package events

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// TestHostileMessage matches a message of a hostile endpoint, which is as large as an answer can be, with one store.
func TestHostileMessage(t *testing.T) {
	resources := make([]string, 100_000) // They take 1.1 of the 8 MiB of an answer.
	for i := range resources {
		resources[i] = fmt.Sprintf("%08d", i)
	}
	body, err := json.Marshal(map[string]any{
		"source": "aws.ssm", "detail-type": "Parameter Store Change", "resources": resources, "detail": map[string]string{"name": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, e := range parse(body).Events {
		Keys(&v1alpha1.AWSParameterStore{}, e)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a message of %d bytes took %s for one store, want less than a second", len(body), took)
	}
}
