package fake

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Link returns a Link to a Client or Generator. Its answers count for a tenant of its own. kind is a label of the metrics.
func Link(kind string, made any) *provider.Link { return provider.NewLink(kind, made, tenant()) }

// Connect is Kind.Connect for a tenant of its own.
func Connect(ctx context.Context, k provider.Kind, o provider.Object, creds provider.Credentials) (*provider.Link, error) {
	return k.Connect(ctx, o, creds, tenant())
}

func tenant() *quota.Tenant { return (&quota.Quotas{}).Tenant("test") }
