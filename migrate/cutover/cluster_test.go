package cutover

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// clusterObject returns a ClusterExternalSecret of External Secrets Operator.
func clusterObject(spec map[string]any) *unstructured.Unstructured {
	o := esoObject(map[string]any{"externalSecretSpec": spec})
	o.SetKind(clusterKind)
	o.SetNamespace("")
	return o
}

// ourCluster returns a ClusterExternalSecret of direct-secrets that is created here.
func ourCluster(policy v1alpha1.CreationPolicy, ready metav1.ConditionStatus, namespaces ...string) *v1alpha1.ClusterExternalSecret {
	o := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{fromAnnotation: "eso"}}}
	o.Spec.ExternalSecretSpec.Target.CreationPolicy = policy
	o.Status = v1alpha1.FanOutStatus{ObservedGeneration: 2, ProvisionedNamespaces: namespaces, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: ready, Reason: "PartlyProvisioned", Message: "one failed"},
	}}
	return o
}

func TestNextOfCluster(t *testing.T) {
	t.Parallel()
	const is, not = metav1.ConditionTrue, metav1.ConditionFalse
	same, other := &v1alpha1.Difference{Exists: true}, &v1alpha1.Difference{Exists: true, Data: v1alpha1.NameDifference{Changed: []string{"a"}}}
	free := secretOf(func(*corev1.Secret) {})
	owned := secretOf(func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "db"}}
	})
	again := secretOf(func(s *corev1.Secret) { s.UID = "again" })
	stopped := clusterObject(stoppedSpec())
	planned := ours(v1alpha1.CreateNone, is, same)
	of := func(from *unstructured.Unstructured, to *v1alpha1.ExternalSecret, s *corev1.Secret) state {
		return state{from: from, to: to, secret: s, journal: entry{UID: "eso", SecretUID: "secret"}, name: "db"}
	}
	active, idle := esoObject(map[string]any{}), esoObject(stoppedSpec())
	cases := map[string]struct {
		reason   string
		from     *unstructured.Unstructured
		to       *v1alpha1.ClusterExternalSecret
		children []state
		step     step
		why      string
	}{
		"Create":  {"It is created first.", clusterObject(nil), nil, []state{of(active, nil, owned)}, stepCreate, ""},
		"Foreign": {"An object of a user stays.", clusterObject(nil), &v1alpha1.ClusterExternalSecret{}, nil, stepGiveBack, "a ClusterExternalSecret of direct-secrets with this name exists already; delete it first"},
		"Deleted": {"A user deleted it.", nil, nil, nil, stepGiveBack, "it was deleted meanwhile"},
		"Observed": {"No operator has seen it.", clusterObject(nil), func() *v1alpha1.ClusterExternalSecret {
			o := ourCluster(v1alpha1.CreateNone, is)
			o.Generation = 3
			return o
		}(), nil, stepWait, "no operator of direct-secrets has reconciled it; check that a module is installed"},
		"Failed":    {"It cannot be made in a namespace.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, not, "shop"), []state{of(active, planned, owned)}, stepWait, "direct-secrets cannot make its ExternalSecrets: PartlyProvisioned: one failed"},
		"Made":      {"The ExternalSecret is missing.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, is), []state{of(active, nil, owned)}, stepWait, "shop: direct-secrets has not made the ExternalSecret"},
		"More":      {"A namespace of which External Secrets Operator knows nothing.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, is, "shop", "mail"), []state{of(active, planned, owned)}, stepGiveBack, "direct-secrets would write a Secret in the namespace mail, too"},
		"Differs":   {"One Secret would change.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(active, planned, owned), of(active, ours(v1alpha1.CreateNone, is, other), owned)}, stepGiveBack, "mail: direct-secrets would change the Secret: changes key a"},
		"Stop":      {"All compare equal, so the ClusterExternalSecret is stopped.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(active, planned, owned)}, stepStopESO, ""},
		"StopNone":  {"Also if it makes nothing.", clusterObject(nil), ourCluster(v1alpha1.CreateNone, is), nil, stepStopESO, ""},
		"Stopping":  {"External Secrets Operator has not passed it on.", stopped, ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(active, planned, owned)}, stepWait, "External Secrets Operator has not changed its ExternalSecrets; check that it runs"},
		"Release":   {"Then the Secrets are released.", stopped, ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(idle, planned, free), of(idle, planned, owned)}, stepRelease, ""},
		"Adopt":     {"Then they are adopted.", stopped, ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(idle, planned, free), of(idle, planned, free)}, stepAdopt, ""},
		"Again":     {"A Secret was made again.", stopped, ourCluster(v1alpha1.CreateNone, is, "shop"), []state{of(idle, planned, free), of(idle, planned, again)}, stepGiveBack, "mail: the Secret was created again meanwhile"},
		"Adopting":  {"The ExternalSecrets still compare.", stopped, ourCluster(v1alpha1.CreateOwner, is, "shop"), []state{of(idle, planned, free)}, stepWait, "shop: direct-secrets has not changed the ExternalSecret"},
		"Done":      {"All are taken over.", stopped, ourCluster(v1alpha1.CreateOwner, is, "shop"), []state{of(idle, ours(v1alpha1.CreateOwner, is, nil), free)}, stepDone, ""},
		"TakenBack": {"A tool changed the object back.", clusterObject(map[string]any{}), ourCluster(v1alpha1.CreateOwner, is, "shop"), []state{of(idle, ours(v1alpha1.CreateOwner, is, nil), free)}, stepGiveBack, "the object of External Secrets Operator was changed back; suspend the tool that manages it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterState{from: tc.from, to: tc.to, children: tc.children, journal: entry{UID: "eso", Children: []child{{Namespace: "shop", Name: "db"}, {Namespace: "mail", Name: "db"}}}}
			if len(tc.children) < 2 {
				s.journal.Children = s.journal.Children[:1]
			}
			step, why := s.next(Options{})
			if diff := cmp.Diff([]any{tc.step, tc.why}, []any{step, why}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
