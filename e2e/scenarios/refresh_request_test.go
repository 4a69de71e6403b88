package scenarios

import (
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestDocumentedRefresh runs the commands of the pages that request a refresh, for an object whose refresh fails and for one
// whose refresh succeeds. They end in both cases, and tell them apart.
func TestDocumentedRefresh(t *testing.T) {
	t.Parallel()
	const namespace = "documented-refresh"
	must(t, shared.CreateNamespace(t.Context(), namespace))
	must(t, shared.AWSStore(t.Context(), namespace, "store"))
	start(t, namespace)
	shared.AWS.Put(namespace+"/db", []byte("v"))
	must(t, shared.Admin.Create(t.Context(), pair(namespace, "db", namespace+"/db", namespace+"/db")))
	wantReady(t, namespace, "db", v1alpha1.ReasonSecretSynced)
	shell := newPageShell(t, shared)
	for _, tc := range []struct {
		reason string
		exists bool
	}{{"a remote secret is missing", false}, {"all can be read", true}} {
		if tc.exists {
			shared.AWS.Put(namespace+"/db", []byte("v"))
		} else {
			shared.AWS.Delete(namespace + "/db")
		}
		for _, page := range []string{"docs/guides/rotation.md", "docs/guides/gitops.md"} {
			ran := 0
			for _, b := range readPage(t, page).blocks {
				if !strings.Contains(b.text, v1alpha1.RefreshRequestAnnotation) || b.info[0] != "sh" {
					continue
				}
				ran++
				// The pages use the second as the request.
				b.text = strings.NewReplacer("-n shop", "-n "+namespace, "date +%s", "date +%s%N").Replace(b.text)
				out, err := shell.run(t.Context(), b)
				if ended := strings.Count(out, "condition met"); (err == nil) != tc.exists || ended == 0 {
					t.Errorf("%s:%d: %s: %v\n%s", page, b.line, tc.reason, err, out)
				}
			}
			if ran != 1 {
				t.Errorf("%s has %d blocks that request a refresh, want one", page, ran)
			}
		}
	}
}
