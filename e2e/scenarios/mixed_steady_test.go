//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// steadyModules keep the present version while the modules of a mix change theirs.
var steadyModules = []string{stack.ProviderKubernetes, stack.GeneratorKeys}

// uuids is generator-keys in its role as a contributor to other modules' objects.
var uuids = inspect.Contributor{Group: "keys." + v1alpha1.Group, Purpose: v1alpha1.PartGenerated}

// steady are objects of a mix that use the steady modules together with those of the mix. Two ExternalSecrets have values
// from AWS, Vault, another namespace and a generator. A PushSecret pushes to that namespace and to AWS.
type steady struct {
	m *mix
	// remote is the other namespace, and login the user of the store that reads and writes there.
	remote, login string
	history       *history // of remote
	since         time.Time
}

// claimingStores are the stores whose modules write the Secrets, by the names of the ExternalSecrets.
var claimingStores = map[string]v1alpha1.StoreRef{
	"claimed-by-aws":        {Kind: "AWSSecretsManager", Name: "store"},
	"claimed-by-kubernetes": {Kind: "KubernetesSecrets", Name: "other"},
}

// pushedByTwo is the PushSecret, which pushes the Secret "source" of the mix.
const pushedByTwo = "pushed-by-two"

// newSteady creates the stores, the generator and the objects.
func newSteady(m *mix) *steady {
	m.t.Helper()
	s := &steady{m: m, remote: m.ns + "-other", login: "system:serviceaccount:" + m.ns + ":reader", since: time.Now()}
	must(m.t, shared.CreateNamespace(m.t.Context(), s.remote))
	s.history = record(m.t, s.remote)
	must(m.t, shared.Apply(m.t.Context(), fmt.Appendf(nil, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader, namespace: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader, namespace: %[2]s}, rules: [
  {apiGroups: [""], resources: [secrets], verbs: [get, list, create, patch, delete]}, {apiGroups: [""], resources: [namespaces], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader, namespace: %[2]s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: ServiceAccount, name: reader, namespace: %[1]s}]}
---
{apiVersion: kubernetes.direct-secrets.io/v1alpha1, kind: KubernetesSecrets, metadata: {name: other, namespace: %[1]s},
  spec: {remoteNamespace: %[2]s, auth: {token: {bearerToken: {name: other-token, key: token}}}}}
---
{apiVersion: keys.direct-secrets.io/v1alpha1, kind: UUID, metadata: {name: id, namespace: %[1]s}}`, m.ns, s.remote)))
	reader, token := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "reader"}}, &authenticationv1.TokenRequest{}
	must(m.t, shared.Admin.SubResource("token").Create(m.t.Context(), reader, token))
	must(m.t, shared.Admin.Create(m.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "other-token"},
		StringData: map[string]string{"token": token.Status.Token}}))
	s.putKubernetes(0)
	for name, store := range claimingStores {
		m.put(name, 0)
		must(m.t, shared.Admin.Create(m.t.Context(), s.object(name, store)))
	}
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: pushedByTwo}}
	ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "KubernetesSecrets", Name: "other"}, {Kind: "AWSSecretsManager", Name: "store"}}
	ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
	ps.Spec.Data = []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "value", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: s.pushedKey(), Property: "value"}}}}
	ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete
	must(m.t, shared.Admin.Create(m.t.Context(), ps))
	return s
}

// pushedKey is the name of the pushed secret in both stores.
func (s *steady) pushedKey() string { return s.m.ns + "-" + pushedByTwo }

// object returns an ExternalSecret whose Secret is written by the module of a store.
func (s *steady) object(name string, claiming v1alpha1.StoreRef) *v1alpha1.ExternalSecret {
	es := generated(s.m.ns, name, often)
	es.Spec.StoreRef = &claiming
	es.Spec.DataFrom[0].SourceRef.GeneratorRef = &v1alpha1.StoreRef{Kind: "UUID", Name: "id"}
	from := func(kind, store string) *v1alpha1.DataSourceRef {
		return &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: kind, Name: store}}
	}
	es.Spec.Data = []v1alpha1.DataEntry{
		{SecretKey: awsKey, RemoteRef: v1alpha1.RemoteRef{Key: s.m.key(name)}, SourceRef: from("AWSSecretsManager", "store")},
		{SecretKey: vaultKey, RemoteRef: v1alpha1.RemoteRef{Key: s.m.key(name), Property: "password"}, SourceRef: vaultRef},
		{SecretKey: "kubernetes", RemoteRef: v1alpha1.RemoteRef{Key: "shared", Property: "password"}, SourceRef: from("KubernetesSecrets", "other")},
	}
	es.Spec.Target.Template = &v1alpha1.Template{MergePolicy: "Merge", Data: map[string]string{shapedKey: "{{ .aws }} {{ .vault }} {{ .kubernetes }} {{ .uuid }}"}}
	return es
}

// putKubernetes gives the Secret that is read in the other namespace its nth value.
func (s *steady) putKubernetes(n int) {
	s.m.t.Helper()
	must(s.m.t, shared.Apply(s.m.t.Context(), fmt.Appendf(nil,
		`{apiVersion: v1, kind: Secret, metadata: {name: shared, namespace: %s}, stringData: {password: %s}}`, s.remote, kubernetesValue(n))))
}

func kubernetesValue(n int) string { return fmt.Sprintf("from-kubernetes-%04d", n) }

// waitUntilInSync waits until both Secrets have the nth values of AWS and of the other namespace.
func (s *steady) waitUntilInSync(aws, kubernetes int) {
	s.m.t.Helper()
	for name := range claimingStores {
		eventually(s.m.t, func() string {
			secret := getSecret(s.m.t, s.m.ns, name)
			if missing := ready(s.m.get(name)); missing != "" || secret == nil {
				return missing + " or has no Secret"
			}
			data := newVersion(secret, false).Data
			want := map[string]string{awsKey: awsValue(name, aws), vaultKey: vaultValue(name, 0), "kubernetes": kubernetesValue(kubernetes)}
			return cmp.Diff(want, map[string]string{awsKey: data[awsKey], vaultKey: data[vaultKey], "kubernetes": data["kubernetes"]})
		})
	}
}

// waitUntilPushed waits until both stores have the nth value of the pushed Secret.
func (s *steady) waitUntilPushed(n int) {
	s.m.t.Helper()
	eventually(s.m.t, func() string {
		var got, want [2]string
		want[0] = fmt.Sprint("pushed ", n)
		want[1] = fmt.Sprintf(`{"value":%q}`, want[0])
		if pushed := getSecret(s.m.t, s.remote, s.pushedKey()); pushed != nil {
			got[0] = string(pushed.Data["value"])
		}
		value, _ := shared.AWS.Get(s.pushedKey())
		got[1] = string(value)
		return cmp.Diff(want, got) + unpushed(s.m.t, s.m.ns, pushedByTwo)
	})
}

// unpushed returns what is missing until a PushSecret is Ready, with its present generation.
func unpushed(t *testing.T, ns, name string) string {
	t.Helper()
	ps := &v1alpha1.PushSecret{}
	must(t, shared.Admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, ps))
	if c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue || ps.Status.ObservedGeneration != ps.Generation {
		return fmt.Sprintf("PushSecret %s: Ready is %+v", name, c)
	}
	return ""
}

// written returns how often the objects, the values that were generated for them, and the pushed secrets were written. In the
// other namespace each request counts, also one that changes nothing.
func (s *steady) written() map[string]int {
	s.m.t.Helper()
	n := map[string]int{"AWS: " + pushedByTwo: awsCalls(s.pushedKey(), awsWrites...)}
	for name := range claimingStores {
		n["Secret "+name] = len(s.m.history.of(name))
		n["generated values of "+name] = len(s.m.history.of(uuids.PartName("ExternalSecret", name)))
	}
	log, err := shared.ReadAuditLog(s.since)
	must(s.m.t, err)
	for _, e := range log {
		if e.User.Username == s.login && e.IsWrite() {
			n["Kubernetes: "+e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]++
		}
	}
	return n
}

// wantMore adds to what was written one new value of AWS, one of the other namespace, and one of the pushed Secret.
func (s *steady) wantMore(written map[string]int) {
	for name := range claimingStores {
		written["Secret "+name] += 2
	}
	written["AWS: "+pushedByTwo]++
	written["Kubernetes: "+s.remote+"/"+s.pushedKey()]++
}

// whole fails the test if a version of a Secret was incomplete or missing, or if there was more than one UUID for an object.
func (s *steady) whole() {
	s.m.t.Helper()
	ids := map[string]bool{}
	for name := range claimingStores {
		own := map[string]bool{}
		for i, v := range s.m.history.of(name) {
			values := []string{v.Data[awsKey], v.Data[vaultKey], v.Data["kubernetes"], v.Data["uuid"]}
			if v.Deleted || len(v.Data) != 5 || slices.Contains(values, "") || v.Data[shapedKey] != strings.Join(values, " ") {
				s.m.t.Errorf("Secret %s, version %d is incomplete or missing: %+v", name, i, v)
			}
			own[v.Data["uuid"]] = true
		}
		if len(own) != 1 {
			s.m.t.Errorf("Secret %s had the UUIDs %v, want one", name, slices.Collect(maps.Keys(own)))
		}
		maps.Copy(ids, own)
	}
	if len(ids) != len(claimingStores) {
		s.m.t.Errorf("there were the UUIDs %v, want one for each object", slices.Collect(maps.Keys(ids)))
	}
}

// end deletes the PushSecret, which deletes the pushed secrets. It fails the test if that has happened before.
func (s *steady) end() {
	s.m.t.Helper()
	s.history.end(s.m.t, s.remote)
	if slices.ContainsFunc(s.history.of(s.pushedKey()), func(v version) bool { return v.Deleted }) {
		s.m.t.Errorf("the pushed Secret was missing: %+v", s.history.of(s.pushedKey()))
	}
	must(s.m.t, shared.Admin.Delete(s.m.t.Context(), &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: s.m.ns, Name: pushedByTwo}}))
	waitUntilDeleted(s.m.t, &corev1.Secret{}, s.remote, s.pushedKey())
	eventually(s.m.t, func() string {
		if _, is := shared.AWS.Get(s.pushedKey()); is {
			return "AWS still has the pushed secret"
		}
		return ""
	})
}
