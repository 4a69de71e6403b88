//go:build long

package scenarios

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// fanOutPage is the page whose example is applied.
const fanOutPage = "../../docs/reference/cluster-external-secret.md"

// TestFanOut applies the example of the page with two modules, on its own stack because it is for all
// namespaces. The module that creates the objects is killed meanwhile. The other continues, and no object is
// created twice or lost.
func TestFanOut(t *testing.T) {
	t.Parallel()
	const count = 60
	s, err := stack.Start(t.Context(), stack.Options{Audit: true, Bare: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	must(t, install(t.Context(), s))
	s.AWS.Put("shared/registry", []byte(`{"password":"pull"}`))
	must(t, s.CreateNamespace(t.Context(), "platform"))
	must(t, s.Admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "aws"},
		Data:       map[string][]byte{"id": []byte(stack.AccessKeyID), "secret": []byte(stack.SecretAccessKey)},
	}))
	wanted := []string{"platform"}
	namespace := func(name string) {
		must(t, s.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"registry": "true"}}}))
		wanted = append(wanted, name)
	}
	for i := range count {
		namespace(fmt.Sprintf("shop-%02d", i))
	}
	start := func(module string, flags ...string) *stack.Process {
		p, err := s.StartModule(t.Context(), module, flags...)
		must(t, err)
		t.Cleanup(func() {
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(p.Log())
			}
		})
		return p
	}
	// After twenty objects the API server continues to create objects, but its answers do not arrive.
	proxy, err := s.StartProxy(nil)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Stop()) })
	kubeconfig, err := proxy.Kubeconfig(t.Context(), stack.GeneratorPassword)
	must(t, err)
	posts := 0
	caught := proxy.Hold(true, func(r *http.Request, _ []byte) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/externalsecrets") {
			posts++
		}
		return posts > 20
	})
	maker := start(stack.GeneratorPassword, "--kubeconfig="+kubeconfig)
	eventually(t, func() string {
		if held, err := maker.Metric(stack.SharedDuties); held != 1 {
			return fmt.Sprintf("the shared duties are not held: %v", err)
		}
		return ""
	})
	start(stack.ProviderAWS)

	began := time.Now()
	for _, manifest := range examplesOf(t, fanOutPage, "") {
		must(t, s.Apply(t.Context(), manifest))
	}
	made := func() []v1alpha1.ExternalSecret {
		var list v1alpha1.ExternalSecretList
		must(t, s.Admin.List(t.Context(), &list))
		return list.Items
	}
	select {
	case <-caught:
	case <-time.After(time.Minute):
		t.Fatal("no twenty objects were made")
	}
	must(t, maker.Kill())
	left := len(made())
	if left == 0 || left >= count {
		t.Errorf("%d of %d objects were made before the kill", left, count)
	}
	namespace("late")

	parent := &v1alpha1.ClusterExternalSecret{}
	eventually(t, func() string {
		must(t, s.Admin.Get(t.Context(), types.NamespacedName{Name: "registry"}, parent))
		if !meta.IsStatusConditionTrue(parent.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Sprintf("the conditions are %+v", parent.Status.Conditions)
		}
		slices.Sort(wanted)
		return cmp.Diff(wanted, parent.Status.ProvisionedNamespaces)
	})
	for _, ns := range wanted {
		wantShared(t, s, ns)
	}
	wantMadeOnce(t, s, began)
	if n := len(made()); n != len(wanted) {
		t.Errorf("there are %d objects, want %d", n, len(wanted))
	}
}

// wantShared waits until the object of a namespace, and its Secret, match the page.
func wantShared(t *testing.T, s *stack.Stack, ns string) {
	t.Helper()
	want := v1alpha1.ReasonSecretSynced
	if ns == "platform" {
		want = v1alpha1.ReasonForbidden // The page says so.
	}
	key := types.NamespacedName{Namespace: ns, Name: "registry"}
	eventually(t, func() string {
		es := &v1alpha1.ExternalSecret{}
		must(t, s.Admin.Get(t.Context(), key, es))
		if c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != want {
			return fmt.Sprintf("%s: Ready is %+v, want %s", ns, c, want)
		}
		return ""
	})
	if want != v1alpha1.ReasonSecretSynced {
		return
	}
	secret := &corev1.Secret{}
	must(t, s.Admin.Get(t.Context(), key, secret))
	if got := string(secret.Data["password"]); got != "pull" {
		t.Errorf("%s: the Secret holds %q", ns, got)
	}
}

// wantMadeOnce fails if an ExternalSecret was created twice, by another user than a module, or was written in
// another way.
func wantMadeOnce(t *testing.T, s *stack.Stack, since time.Time) {
	t.Helper()
	events, err := s.ReadAuditLog(since)
	must(t, err)
	creates := map[string]int{}
	for _, e := range events {
		if e.ObjectRef.Resource != "externalsecrets" || e.ObjectRef.Subresource != "" || !e.IsWrite() || e.ResponseStatus.Code >= 300 {
			continue
		}
		if e.Verb != "create" || !strings.HasPrefix(e.UserAgent, "direct-secrets/") {
			t.Errorf("%s did %s %s/%s", e.UserAgent, e.Verb, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
		creates[e.ObjectRef.Namespace]++
	}
	for ns, n := range creates {
		if n > 1 {
			t.Errorf("%s: the object was made %d times", ns, n)
		}
	}
}
