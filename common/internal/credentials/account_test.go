package credentials_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestServiceAccountAnnotations(t *testing.T) {
	namespaced := func(e *env) credentials.Fence { return e.fence(false) }
	cluster := func(e *env) credentials.Fence { return e.fence(true) }
	manifest := func(e *env) credentials.Fence { return credentials.Fence{Cluster: true, Namespace: e.mine} }
	const mine, others = "mine", "others"
	cases := map[string]struct {
		reason          string
		fence           func(e *env) credentials.Fence
		name, namespace string // of the reference
		// value is the namespace whose ServiceAccount has the annotation.
		value   string
		class   provider.Class
		message []string
		// read is the namespace, name and state that the watch receives.
		read []string
	}{
		"OwnNamespace":     {"A namespaced store reads a ServiceAccount of its own namespace.", namespaced, "annotated", "", mine, "", nil, []string{mine, "annotated present"}},
		"None":             {"A ServiceAccount without annotations is no error, and is watched.", namespaced, "reader", "", "", "", nil, []string{mine, "reader present"}},
		"Another":          {"A namespaced store cannot name another namespace.", namespaced, "annotated", others, "", provider.Invalid, []string{"ServiceAccount annotated must not name a namespace", "remove the namespace"}, nil},
		"Cluster":          {"A cluster store reads in the namespace that the reference names.", cluster, "annotated", others, others, "", nil, []string{others, "annotated present"}},
		"ClusterNamesNone": {"A cluster store needs a reference with a namespace.", cluster, "annotated", "", "", provider.Invalid, []string{"ServiceAccount annotated needs a namespace"}, nil},
		"Manifest":         {"With authenticationScope ManifestNamespace, a cluster store reads in the namespace of the object that refers to it.", manifest, "annotated", "", mine, "", nil, []string{mine, "annotated present"}},
		"Missing":          {"The message names the missing ServiceAccount, and the watch waits for it.", namespaced, "nope", "", "", provider.Invalid, []string{"/nope does not exist", "create it or correct the reference"}, []string{mine, "nope absent"}},
		"Forbidden":        {"Without permission, the message names the setting of the chart.", namespaced, "annotated", "", "", provider.Denied, []string{"grant it get, list and watch on serviceaccounts", "serviceAccountTokens.enabled"}, nil},
		"HostileName":      {"A path is not accepted as a name.", namespaced, "annotated/../../x", "", "", provider.Invalid, []string{"ServiceAccount name", "correct the reference"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			namespaces := map[string]string{mine: e.mine, others: e.others}
			for _, ns := range namespaces {
				e.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "annotated", Annotations: map[string]string{"client": "of " + ns}}})
			}
			c := api
			if tc.class == provider.Denied {
				c = e.unauthorizedClient
			}
			var read []string
			r := credentials.NewReader(c, room.NewReader(c, &quota.Quotas{}), tc.fence(e), func(o watch.ObjectRef, version string) {
				read = append(read, o.Resource.Resource, o.Namespace, o.Name+map[bool]string{true: " present", false: " absent"}[version != ""])
			})
			got, err := provider.AnnotationsOf(e.ctx, r, v1alpha1.ServiceAccountSelector{Name: tc.name, Namespace: namespaces[tc.namespace]})
			w := want{class: tc.class, message: tc.message}
			if tc.value != "" {
				w.value = "of " + namespaces[tc.value]
			}
			w.compare(t, tc.reason, got["client"], err)
			var wantRead []string
			if tc.read != nil {
				wantRead = []string{"serviceaccounts", namespaces[tc.read[0]], tc.read[1]}
			}
			if diff := cmp.Diff(wantRead, read); diff != "" {
				t.Errorf("\n%s\nread: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnnotationsOf(t *testing.T) {
	_, err := provider.AnnotationsOf(t.Context(), fake.Credentials{}, v1alpha1.ServiceAccountSelector{Name: "shop"})
	want{class: provider.Unavailable, message: []string{"ServiceAccount shop cannot be read"}}.compare(t, "Credentials that do not read ServiceAccounts are an error.", "", err)
}
