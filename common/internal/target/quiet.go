package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Quiet returns a client that removes the API server's text from errors of writes to Secrets and ConfigMaps, except for the names of
// rejected fields. An admission webhook or policy may quote values in that text, and errors reach logs and statuses.
// The functions of k8s.io/apimachinery/pkg/api/errors still work on the errors.
func Quiet(c client.Client) client.Client { return quiet{c} }

type quiet struct{ client.Client }

func (q quiet) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return q.redact(o, q.Client.Create(ctx, o, opts...))
}

func (q quiet) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return q.redact(o, q.Client.Update(ctx, o, opts...))
}

func (q quiet) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return q.redact(o, q.Client.Patch(ctx, o, p, opts...))
}

func (q quiet) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return q.redact(o, q.Client.Delete(ctx, o, opts...))
}

// quota is the phrase that the API server itself uses for a ResourceQuota.
const quota = "exceeded quota"

// ofQuota reports whether an error text is about a ResourceQuota.
func ofQuota(text string) bool {
	return strings.Contains(text, quota) || strings.Contains(text, "status unknown for quota")
}

// redact removes the text from an error about a Secret or ConfigMap.
func (q quiet) redact(o client.Object, err error) error {
	var answer *kerrors.StatusError
	if !errors.As(err, &answer) {
		return err
	}
	if gvk, known := q.GroupVersionKindFor(o); known == nil && (gvk.Group != corev1.GroupName || gvk.Kind != "Secret" && gvk.Kind != "ConfigMap") {
		return err
	}
	s := *answer.ErrStatus.DeepCopy()
	text := s.Message
	s.Message = fmt.Sprintf("the API server answers code %d (%s)", s.Code, s.Reason)
	if ofQuota(text) {
		s.Message += ": " + quota
	}
	if s.Details != nil {
		for i := range s.Details.Causes {
			s.Details.Causes[i].Message = ""
		}
	}
	return &kerrors.StatusError{ErrStatus: s}
}
