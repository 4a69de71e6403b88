package fake

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Link returns a Link to a Client or Generator. Its answers count for a tenant of its own. kind is a label of the metrics.
func Link(kind string, made any) *provider.Link { return provider.NewLink(kind, made, tenant()) }

// Writer returns the Writer of a Client as operators use it: through a Link. It panics if the Client is none.
func Writer(c provider.Client) provider.Writer {
	return linked{Link("Test", c), c.(provider.Writer).Features()}
}

type linked struct {
	*provider.Link

	features provider.Features
}

// Features implements provider.Writer.
func (l linked) Features() provider.Features { return l.features }

// Connect is Kind.Connect for a tenant of its own.
func Connect(ctx context.Context, k provider.Kind, o provider.Object, creds provider.Credentials) (*provider.Link, error) {
	return k.Connect(ctx, o, creds, tenant())
}

func tenant() *quota.Tenant { return (&quota.Quotas{}).Tenant("test") }
