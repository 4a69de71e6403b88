package operator_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestMetricsAuth reads metrics with and without a token that is allowed to.
func TestMetricsAuth(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	e := testenv.New(t, func(f *operator.Flags) { f.MetricsAddress, f.MetricsAuth = address, true })
	admin, err := client.New(e.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	token := func(name string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.NS, Name: name}}
		e.Create(account)
		request := &authenticationv1.TokenRequest{}
		if err := admin.SubResource("token").Create(e.Ctx, account, request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	unauthorized, reader := token("stranger"), token("reader")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: e.NS}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.NS},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: e.NS},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: e.NS, Name: "reader"}},
	}
	for _, o := range []client.Object{role, binding} { // The control plane ends with the tests of the package.
		if err := admin.Create(e.Ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	https := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // The certificate is self-signed.
	get := func(header string) (status int, body string) {
		t.Helper()
		e.Eventually(func() string {
			req, err := http.NewRequestWithContext(e.Ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
			if err != nil {
				return err.Error()
			}
			if header != "" {
				req.Header.Set("Authorization", header)
			}
			resp, err := https.Do(req)
			if err != nil {
				return err.Error()
			}
			raw, err := io.ReadAll(resp.Body)
			status, body = resp.StatusCode, string(raw)
			if err != nil || resp.Body.Close() != nil {
				return fmt.Sprint("cannot read the answer: ", err)
			}
			return ""
		})
		return status, body
	}
	for _, tc := range []struct {
		reason, header string
		want           int
	}{
		{"a token is needed", "", http.StatusUnauthorized},
		{"another way to log in does not count", "Basic " + reader, http.StatusUnauthorized},
		{"an invalid token is refused", "Bearer invalid", http.StatusUnauthorized},
		{"a ServiceAccount without the permission is refused", "Bearer " + unauthorized, http.StatusForbidden},
		{"a ServiceAccount with the permission reads metrics", "Bearer " + reader, http.StatusOK},
		{"the answer is kept", "Bearer " + reader, http.StatusOK},
	} {
		status, body := get(tc.header)
		if diff := cmp.Diff([]any{tc.want, tc.want == http.StatusOK}, []any{status, strings.Contains(body, "directsecrets_build_info")}); diff != "" {
			t.Errorf("%s: status, and whether there are metrics: -want, +got:\n%s", tc.reason, diff)
		}
	}
}
