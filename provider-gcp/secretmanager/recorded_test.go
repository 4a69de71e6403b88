package secretmanager

import (
	"encoding/json"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// codesByName are the codes that the facts have.
var codesByName = map[string]codes.Code{}

func init() {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		codesByName[c.String()] = c
	}
}

// TestRecorded feeds each fact to the client, and compares the emulator in the same state with it.
func TestRecorded(t *testing.T) {
	states := map[string]struct {
		prepare func(*emulator.Server)
		version string
	}{
		"no such version": {func(srv *emulator.Server) { srv.Put("db", []byte("x")) }, "7"},
		"destroyed": {func(srv *emulator.Server) {
			srv.Put("db", []byte("x"))
			srv.SetState("db", 1, pb.SecretVersion_DESTROYED)
		}, "1"},
	}
	for _, f := range conformance.Facts(t, "recorded.json") {
		t.Run(f.Operation+" "+f.State, func(t *testing.T) {
			var text string
			if err := json.Unmarshal(f.Body, &text); err != nil {
				t.Fatal(err)
			}
			srv := start(t)
			c := client(t, srv)
			state := states[f.State]
			if state.prepare != nil {
				state.prepare(srv)
			}
			want, got := status.New(codesByName[f.Code], text), status.Convert(operate(t, c, f.Operation, state.version))
			diff := cmp.Diff([]string{want.Code().String(), want.Message()}, []string{got.Code().String(), got.Message()})
			if (diff != "") != (f.Differs != "") {
				t.Errorf("the emulator differs because %q: -recorded, +emulator:\n%s", f.Differs, diff)
			}
			srv.Inject(emulator.Fault{Call: f.Operation, Code: want.Code(), Message: text})
			var err error
			if f.Operation == "GetSecret" {
				_, err = c.Observe(soon(t), provider.Target{Key: "db"})
			} else {
				_, err = c.Get(soon(t), provider.Ref{Key: "db", Version: state.version})
			}
			if err == nil || provider.ClassOf(err) != f.Want {
				t.Errorf("class of %v, want %s", err, f.Want)
			}
		})
	}
}

// operate makes a call, and returns the error of the service.
func operate(t *testing.T, c *Client, operation, version string) (err error) {
	t.Helper()
	name := c.parent + secretsPart + "db"
	switch operation {
	case "GetSecret":
		_, err = gcpconfig.Call(soon(t), c.config, c.api.GetSecret, &pb.GetSecretRequest{Name: name}, params("name", name))
	case "AccessSecretVersion":
		if version == "" {
			version = latest
		}
		name += versionsPart + version
		_, err = gcpconfig.Call(soon(t), c.config, c.api.AccessSecretVersion, &pb.AccessSecretVersionRequest{Name: name}, params("name", name))
	default:
		t.Fatalf("operation %s", operation)
	}
	return err
}
