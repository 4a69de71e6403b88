package events

import (
	"encoding/json"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// TestRecorded feeds each fact to the client, and compares the emulator in the same state with it.
func TestRecorded(t *testing.T) {
	byName := map[string]codes.Code{"NotFound": codes.NotFound, "InvalidArgument": codes.InvalidArgument}
	for _, f := range conformance.Facts(t, "recorded.json") {
		t.Run(f.Operation+" "+f.State, func(t *testing.T) {
			var text string
			if err := json.Unmarshal(f.Body, &text); err != nil {
				t.Fatal(err)
			}
			srv := start(t)
			subscription := "project-changes"
			if f.Operation == "Acknowledge" {
				srv.AddSubscription(subscription)
			}
			s := connect(t, srv, emulator.DefaultProject, subscription)
			got := status.Convert(operate(t, s, f.Operation))
			diff := cmp.Diff([]string{f.Code, text}, []string{got.Code().String(), got.Message()})
			if (diff != "") != (f.Differs != "") {
				t.Errorf("the emulator differs because %q: -recorded, +emulator:\n%s", f.Differs, diff)
			}
			srv.Inject(emulator.Fault{Call: f.Operation, Code: byName[f.Code], Message: text})
			if err := s.explain(operate(t, s, f.Operation), f.Operation); err == nil || provider.ClassOf(err) != f.Want {
				t.Errorf("class of %v, want %s", err, f.Want)
			}
		})
	}
}

// operate makes a call, and returns the error of the service.
func operate(t *testing.T, s *Subscription, operation string) (err error) {
	t.Helper()
	switch operation {
	case "Pull":
		_, err = s.pull(t.Context())
	case "Acknowledge":
		in := &pb.AcknowledgeRequest{Subscription: s.name, AckIds: []string{"x"}}
		_, err = gcpconfig.Call(t.Context(), s.config, s.api.Acknowledge, in, s.params())
	default:
		t.Fatalf("operation %s", operation)
	}
	return err
}
