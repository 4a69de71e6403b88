package gcpconfig

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestLimit(t *testing.T) {
	const service = "/google.cloud.secretmanager.v1.SecretManagerService/"
	cases := map[string]struct {
		reason, method string
		want           int
	}{
		"Access": {"An answer that is larger than the largest secret is rejected.", "AccessSecretVersion", provider.MaxAnswer},
		"Get":    {"An answer that is larger than the largest settings is rejected.", "GetSecret", provider.MaxAnswer},
		"List":   {"A page of secrets can be larger.", "ListSecrets", 4 * provider.MaxListing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got grpc.CallOption
			err := limit(t.Context(), service+tc.method, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				got = opts[len(opts)-1]
				return nil
			})
			if diff := cmp.Diff(grpc.MaxCallRecvMsgSize(tc.want), got); diff != "" || err != nil {
				t.Errorf("%s\nlimit(...): %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
