package gcpconfig

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A getter is a Client that calls a function.
type getter func(ctx context.Context) error

func (g getter) Get(ctx context.Context, _ provider.Ref) (provider.Value, error) {
	return provider.Value{}, g(ctx)
}

func TestLimit(t *testing.T) {
	const service = "/google.cloud.secretmanager.v1.SecretManagerService/"
	cases := map[string]struct {
		reason, method string
		trusted        bool
		want           int
		// all is how many calls are made at the same time, and calls how many of them find room.
		all, calls int
	}{
		"Access":    {"An answer that is larger than the largest secret is rejected.", "AccessSecretVersion", true, provider.MaxAnswer, 30, 30},
		"Get":       {"An answer that is larger than the largest settings is rejected.", "GetSecret", true, provider.MaxAnswer, 30, 30},
		"List":      {"A page of secrets can be larger.", "ListSecrets", true, 4 * provider.MaxListing, 30, 30},
		"Pull":      {"Messages can be larger.", "Pull", true, 4 * provider.MaxListing, 30, 30},
		"Other":     {"The answers of a server that is not Google's count before they arrive.", "AccessSecretVersion", false, 96 << 10, 60, 43},
		"OtherList": {"So do its lists.", "ListSecrets", false, 1 << 20, 30, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got grpc.CallOption
			calls := 0
			var call func(ctx context.Context) error
			call = func(ctx context.Context) error {
				return limit(tc.trusted)(ctx, service+tc.method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
					got = opts[len(opts)-1]
					if calls++; calls == tc.all {
						return nil
					}
					return call(ctx)
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			_, err := fake.Link("GCPSecretManager", getter(call)).Get(ctx, provider.Ref{Key: "db"})
			if diff := cmp.Diff(grpc.MaxCallRecvMsgSize(tc.want), got); diff != "" || calls != tc.calls || (err == nil) != tc.trusted {
				t.Errorf("%s\nlimit(...): %v, %d calls, -want, +got:\n%s", tc.reason, err, calls, diff)
			}
		})
	}
}
