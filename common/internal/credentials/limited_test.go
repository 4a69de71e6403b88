package credentials_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestLimitedTo(t *testing.T) {
	limited := func(f credentials.Fence) provider.Credentials {
		return credentials.NewReader(nil, room.NewReader(nil, &quota.Quotas{}), f, nil)
	}
	cases := map[string]struct {
		reason string
		creds  provider.Credentials
		want   string
	}{
		"Namespaced": {"A namespaced store works for its own namespace.", limited(credentials.Fence{Namespace: "shop"}), "shop"},
		"Each":       {"With ManifestNamespace a client works for one namespace.", limited(credentials.Fence{Cluster: true, Namespace: "shop"}), "shop"},
		"Shared":     {"Otherwise the client of a cluster store works for several.", limited(credentials.Fence{Cluster: true}), ""},
		"Unknown":    {"Credentials that report no namespace count as shared.", fake.Credentials{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := provider.NamespaceOf(tc.creds); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
