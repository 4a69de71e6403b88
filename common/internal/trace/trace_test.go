package trace

import (
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResult(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"None":     {nil, "ok"},
		"Conflict": {kerrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "db", errors.New("s3cret")), "Conflict"},
		"Wrapped":  {errors.Wrap(kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", nil), "s3cret"), "Forbidden"},
		"Other":    {errors.New("s3cret"), "error"},
	} {
		if diff := cmp.Diff(c.want, Result(c.err)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}
