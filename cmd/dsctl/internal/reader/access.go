package reader

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// CheckAccess asks the API server which of the requests the user is allowed to make, and adds the others to
// Refused.
func (r *Reader) CheckAccess(ctx context.Context, s *snapshot.Snapshot, requests []snapshot.Refusal) error {
	r.Progress("permissions")
	defer r.Progress("")
	for _, q := range requests {
		what := schema.ParseGroupResource(q.Resource)
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: q.Namespace, Verb: q.Verb, Group: what.Group, Resource: what.Resource},
		}}
		if err := r.Client.Create(ctx, review); err != nil {
			return fmt.Errorf("cannot check the permission to %s %s: %w", q.Verb, q.Resource, err)
		}
		if !review.Status.Allowed {
			s.Refused = append(s.Refused, q)
		}
	}
	return nil
}
