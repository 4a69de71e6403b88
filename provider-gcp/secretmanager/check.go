package secretmanager

import (
	"context"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"

	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// Check lists one secret. It also passes if only the permission for that call is missing, because then the
// login works.
func (c *Client) Check(ctx context.Context) error {
	_, err := gcpconfig.Call(ctx, c.config, c.api.ListSecrets,
		&pb.ListSecretsRequest{Parent: c.parent, PageSize: 1}, params("parent", c.parent))
	if err == nil || gcpconfig.IsPermissionMissing(err) {
		return nil
	}
	return c.explainList(err, "")
}
