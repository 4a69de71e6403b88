package generation

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
)

// releaseUnrevoked releases a part that is being deleted while the operator changes nothing outside the cluster. Its
// credentials are not revoked later. All of them must be retired.
func (r *revoker) releaseUnrevoked(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	var stays []string
	for _, c := range rec.Retired {
		if !expired(c.Expires, r.now) {
			stays = append(stays, lifetime(c))
		}
	}
	if len(stays) > 0 {
		r.warn(rec.Retired[0].Generator, "--no-remote-changes is set, so these credentials were not revoked; revoke them at the provider if they are not in use: "+strings.Join(stays, ", "))
	}
	return r.letGo(ctx, live)
}

// lifetime describes a credential that stays valid.
func lifetime(c handoff.Retired) string {
	if c.Expires.IsZero() {
		return fmt.Sprintf("%s %q without expiry", c.Generator.Kind, c.Generator.Name)
	}
	return fmt.Sprintf("%s %q until %s", c.Generator.Kind, c.Generator.Name, c.Expires.UTC().Format(time.RFC3339))
}
