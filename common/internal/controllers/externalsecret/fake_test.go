package externalsecret

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"

	corev1 "k8s.io/api/core/v1"

	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
)

const fakeGroup = "fake.direct-secrets.io"

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, fakev1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fakeReferrers(t *testing.T, reader client.Reader, o Options) *referrers.Referrers {
	t.Helper()
	r, err := referrers.New(reader, scheme(t), fake.NewServer().Kinds(), fakeGroup, "", o.Namespaced)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
