//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	passwordmanifests "github.com/direct-secrets/direct-secrets/generator-password/manifests"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	awsmanifests "github.com/direct-secrets/direct-secrets/provider-aws/manifests"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	gcpemulator "github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	gcpmanifests "github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	vaultmanifests "github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// permissionsNamespace is the namespace of the scenario. Cluster objects create others in the next two.
const permissionsNamespace, permissionsFirst, permissionsSecond = "permissions", "permissions-first", "permissions-second"

// A right is a permission for one verb on one resource.
type right struct{ Group, Resource, Verb string }

// A bearer is a module with permissions, and the settings of its scenario.
type bearer struct {
	module, group string
	permissions   []byte
	// from is the part of an object's spec that reads one value, under the key value.
	from string
	// store is the reference to the store for PushSecrets, generator that to one of the module's generators.
	store, generator string
	// login is the manifest of a store that logs in with the token of a ServiceAccount.
	login string
}

var bearers = []bearer{
	{
		module: stack.ProviderAWS, group: awsv1.Group, permissions: awsmanifests.Permissions,
		from:  `{storeRef: {kind: AWSSecretsManager, name: aws}, data: [{secretKey: value, remoteRef: {key: value}}]}`,
		store: `{kind: AWSSecretsManager, name: aws}`, generator: `{kind: STSSessionToken, name: least}`,
		login: `{apiVersion: aws.direct-secrets.io/v1alpha1, kind: AWSParameterStore, metadata: {name: login, namespace: permissions},
  spec: {region: eu-central-1, role: "arn:aws:iam::111122223333:role/shop", auth: {serviceAccountRef: {name: default}}}}`,
	},
	{
		module: stack.ProviderVault, group: vaultv1.Group, permissions: vaultmanifests.Permissions,
		from:  `{storeRef: {kind: VaultKV, name: vault}, data: [{secretKey: value, remoteRef: {key: value, property: value}}]}`,
		store: `{kind: VaultKV, name: vault}`, generator: `{kind: VaultDynamicSecret, name: least}`,
		login: `{apiVersion: vault.direct-secrets.io/v1alpha1, kind: VaultKV, metadata: {name: login, namespace: permissions},
  spec: {server: "http://127.0.0.1:1", path: secret, auth: {kubernetes: {role: shop, serviceAccountRef: {name: default}}}}}`,
	},
	{
		module: stack.ProviderGCP, group: gcpv1.Group, permissions: gcpmanifests.Permissions,
		from:  `{storeRef: {kind: GCPSecretManager, name: gcp}, data: [{secretKey: value, remoteRef: {key: value}}]}`,
		store: `{kind: GCPSecretManager, name: gcp}`, generator: `{kind: GCPAccessToken, name: least}`,
		login: `{apiVersion: gcp.direct-secrets.io/v1alpha1, kind: GCPAccessToken, metadata: {name: login, namespace: permissions},
  spec: {endpoint: "http://127.0.0.1:1", auth: {workloadIdentity: {serviceAccountRef: {name: default}, audience: "//iam.googleapis.com/x"}}}}`,
	},
	{
		module: stack.GeneratorPassword, group: passwordv1.Group, permissions: passwordmanifests.Permissions,
		from:  `{dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: least}}, rewrite: [{regexp: {source: password, target: value}}]}]}`,
		store: `{kind: Password, name: least}`, generator: `{kind: Password, name: least}`,
	},
}

// granted returns the permissions in the ClusterRoles of a module, each with the names of its ClusterRoles.
func (b *bearer) granted(t *testing.T) map[right][]string {
	t.Helper()
	permissions := map[right][]string{}
	for _, doc := range stack.Documents(b.permissions) {
		var role rbacv1.ClusterRole
		must(t, yaml.UnmarshalStrict(doc, &role))
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						r := right{group, resource, verb}
						permissions[r] = append(permissions[r], role.Name)
					}
				}
			}
		}
	}
	return permissions
}

// used returns the requests of a module to the API server, and their namespaces.
func (b *bearer) used(t *testing.T, s *stack.Stack) map[right]map[string]bool {
	t.Helper()
	log, err := s.ReadAuditLog(time.Time{})
	must(t, err)
	permissions := map[right]map[string]bool{}
	for _, e := range log {
		if e.User.Username != "system:serviceaccount:"+stack.Namespace+":"+b.module || e.ObjectRef.Resource == "" {
			continue // A request without a resource is discovery, which every user is allowed to do.
		}
		r := right{e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.Verb}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		if permissions[r] == nil {
			permissions[r] = map[string]bool{}
		}
		permissions[r][e.ObjectRef.Namespace] = true
	}
	return permissions
}

// sorted returns permissions as sorted text.
func sorted[V any](permissions map[right]V) []string {
	var all []string
	for r := range permissions {
		all = append(all, fmt.Sprintf("%s %s.%s", r.Verb, r.Resource, r.Group))
	}
	slices.Sort(all)
	return all
}

// TestPermissionsUsed makes each module use all its controllers, and then all modules together, with the
// permissions that they ship. The requests to the API server must match the granted permissions exactly. The
// test has its own stack, because it is for all namespaces.
func TestPermissionsUsed(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{Audit: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	st := newPermissionsScenario(t, s)
	for i := range bearers {
		st.alone(&bearers[i])
	}
	st.together()
	for i := range bearers {
		b := &bearers[i]
		granted := b.granted(t)
		var used map[right]map[string]bool
		// The last requests of a controller, such as events, can come a little later.
		eventually(t, func() string {
			used = b.used(t, s)
			idle := maps.Clone(granted)
			maps.DeleteFunc(idle, func(r right, _ []string) bool { return used[r] != nil })
			if len(idle) > 0 {
				return fmt.Sprintf("%s never uses %s", b.module, strings.Join(sorted(idle), ", "))
			}
			return ""
		})
		missing := maps.Clone(used)
		maps.DeleteFunc(missing, func(r right, _ map[string]bool) bool { return granted[r] != nil })
		if diff := cmp.Diff([]string(nil), sorted(missing)); diff != "" {
			t.Errorf("%s asks for what it has no right to: -want, +got:\n%s", b.module, diff)
		}
		for r, roles := range granted {
			if slices.Equal(roles, []string{"direct-secrets-" + b.module + "-leases"}) {
				if diff := cmp.Diff(map[string]bool{stack.Namespace: true}, used[r]); diff != "" {
					t.Errorf("%s uses %+v not only in its own namespace: -want, +got:\n%s", b.module, r, diff)
				}
			}
		}
	}
}

// A permissionsScenario is the scenario with objects of all modules.
type permissionsScenario struct {
	t     *testing.T
	s     *stack.Stack
	kinds map[string]schema.GroupVersionKind
}

// newPermissionsScenario creates all stores. No module runs yet.
func newPermissionsScenario(t *testing.T, s *stack.Stack) *permissionsScenario {
	t.Helper()
	st := &permissionsScenario{t: t, s: s, kinds: customKinds(t, s)}
	for _, ns := range []string{permissionsNamespace, permissionsFirst, permissionsSecond} {
		must(t, s.CreateNamespace(t.Context(), ns))
	}
	must(t, s.AWSStore(t.Context(), permissionsNamespace, "aws"))
	s.AWS.Put("value", []byte("from-aws"))
	vault, token := startVault(t)
	must(t, s.VaultStore(t.Context(), permissionsNamespace, "vault", vault.URL, vaultMount, token))
	vault.Do(http.MethodPost, vaultMount+"/data/value", vaulttest.M{"data": vaulttest.M{"value": "from-vault"}})
	gcp, err := gcpemulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, gcp.Close()) })
	must(t, s.GCPStore(t.Context(), permissionsNamespace, "gcp", gcp.URL(), gcpemulator.DefaultProject, gcp.Key("reader@test-project.iam.gserviceaccount.com")))
	gcp.Put("value", []byte("from-gcp"))
	st.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: templates, namespace: permissions}, data: {note: "note {{ .value }}"}}`)
	return st
}

func (st *permissionsScenario) apply(manifest string) {
	st.t.Helper()
	must(st.t, st.s.Apply(st.t.Context(), []byte(manifest)))
}

// run runs a module until stop is called or the test ends.
func (st *permissionsScenario) run(module string) (stop func()) {
	st.t.Helper()
	p, err := st.s.StartModule(st.t.Context(), module)
	must(st.t, err)
	stop = func() {
		if err := p.Stop(); err != nil {
			st.t.Error(err)
		}
	}
	st.t.Cleanup(func() {
		stop()
		if st.t.Failed() {
			st.t.Log(p.Log())
		}
	})
	return stop
}

// alone makes one module use all its controllers, including those that need no provider.
func (st *permissionsScenario) alone(b *bearer) {
	st.t.Helper()
	// This creates a store of each Kind. Most are unreachable, which their status reports. Their objects try to
	// read anyway.
	for kind, gvk := range st.kinds {
		if gvk.Group != b.group {
			continue
		}
		o := manifests[kind][0].object(st.t, gvk, !strings.HasPrefix(kind, "Cluster"))
		if o.GetNamespace() != "" {
			o.SetNamespace(permissionsNamespace)
		}
		must(st.t, unstructured.SetNestedField(o.Object, "Disabled", "spec", "gatingPolicy"))
		must(st.t, st.s.Admin.Create(st.t.Context(), o))
		typed, err := st.s.Admin.Scheme().New(gvk)
		must(st.t, err)
		if _, ok := typed.(provider.GeneratorObject); ok {
			st.apply(fmt.Sprintf(`{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: %s, namespace: permissions},
  spec: {dataFrom: [{sourceRef: {generatorRef: {kind: %s, name: least}}}]}}`, strings.ToLower(kind), kind))
		}
	}
	if b.login != "" {
		st.apply(b.login)
	}
	stop := st.run(b.module)
	st.keep(b)
	st.push(b)
	for _, k := range []struct{ kind, child, field, spec string }{
		{"ClusterExternalSecret", "ExternalSecret", "externalSecretSpec", b.from},
		{"ClusterPushSecret", "PushSecret", "pushSecretSpec", `{storeRefs: [` + b.store + `], selector: {secret: {name: none}}}`},
	} {
		st.fanOut(b.module, k.kind, k.child, k.field, k.spec)
	}
	stop()
}

// keep creates a Secret with a template, makes the operator repair it, renames it, and deletes its object.
func (st *permissionsScenario) keep(b *bearer) {
	st.t.Helper()
	es := &v1alpha1.ExternalSecret{}
	es.Namespace, es.Name = permissionsNamespace, b.module
	must(st.t, yaml.UnmarshalStrict([]byte(b.from), &es.Spec))
	es.Spec.Target.Template = &v1alpha1.Template{
		MergePolicy:  "Merge",
		TemplateFrom: []v1alpha1.TemplateFrom{{ConfigMap: &v1alpha1.TemplateSource{Name: "templates", Items: []v1alpha1.TemplateSourceItem{{Key: "note"}}}}},
	}
	must(st.t, st.s.Admin.Create(st.t.Context(), es))
	target := st.secret(b.module, "note")
	for range 4 { // The event existed before, which leads to another request.
		must(st.t, st.s.Admin.Patch(st.t.Context(), target, client.RawPatch(types.MergePatchType, []byte(`{"data":{"note":"ZHJpZnQ="}}`))))
		eventually(st.t, func() string {
			if target = st.secret(b.module, "note"); string(target.Data["note"]) == "drift" {
				return b.module + ": the Secret is not repaired"
			}
			return ""
		})
	}
	st.patch(es, `{"spec":{"target":{"name":"`+b.module+`-renamed"}}}`)
	st.secret(b.module+"-renamed", "note")
	st.waitUntilDeleted(target)
}

// push pushes generated values, and Secrets with a label, with a policy that needs a finalizer.
func (st *permissionsScenario) push(b *bearer) {
	st.t.Helper()
	for name, selector := range map[string]string{
		"generated": `{generatorRef: ` + b.generator + `}`, "labelled": `{secret: {selector: {matchLabels: {pushed: "true"}}}}`,
	} {
		st.apply(fmt.Sprintf(`{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: %s-%s, namespace: permissions},
  spec: {storeRefs: [%s], selector: %s, deletionPolicy: Delete, dataTo: [{}]}}`, name, b.module, b.store, selector))
		ps := &v1alpha1.PushSecret{}
		ps.Namespace, ps.Name = permissionsNamespace, name+"-"+b.module
		eventually(st.t, func() string {
			must(st.t, st.s.Admin.Get(st.t.Context(), client.ObjectKeyFromObject(ps), ps))
			if len(ps.Finalizers) == 0 || meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady) == nil {
				return fmt.Sprintf("PushSecret %s has finalizers %v and status %+v", ps.Name, ps.Finalizers, ps.Status)
			}
			return ""
		})
		must(st.t, st.s.Admin.Delete(st.t.Context(), ps))
		st.waitUntilDeleted(ps)
	}
}

// fanOut creates a cluster object that creates another in a namespace, changes it, and deletes it.
func (st *permissionsScenario) fanOut(name, kind, childKind, field, spec string) {
	st.t.Helper()
	st.apply(fmt.Sprintf(`{apiVersion: direct-secrets.io/v1alpha1, kind: %s, metadata: {name: %s}, spec: {namespaces: [%s], %s: %s}}`, kind, name, permissionsFirst, field, spec))
	parent, child := st.object(kind, "", name), st.object(childKind, permissionsFirst, name)
	eventually(st.t, func() string {
		if err := st.s.Admin.Get(st.t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
			return err.Error()
		}
		return ""
	})
	st.patch(parent, `{"spec":{"`+field+`":{"suspend":true}}}`)
	eventually(st.t, func() string {
		must(st.t, st.s.Admin.Get(st.t.Context(), client.ObjectKeyFromObject(child), child))
		if suspended, _, _ := unstructured.NestedBool(child.Object, "spec", "suspend"); !suspended {
			return kind + ": the child has not changed"
		}
		return ""
	})
	st.patch(parent, `{"spec":{"namespaces":["`+permissionsSecond+`"]}}`)
	st.waitUntilDeleted(child)
	eventually(st.t, func() string {
		must(st.t, st.s.Admin.Get(st.t.Context(), client.ObjectKeyFromObject(parent), parent))
		if reason, generation := readyOf(st.t, parent); reason != v1alpha1.ReasonProvisioned || generation != parent.GetGeneration() {
			return fmt.Sprintf("%s is %q of generation %d", kind, reason, generation)
		}
		return ""
	})
	must(st.t, st.s.Admin.Delete(st.t.Context(), parent))
}

// together makes all modules contribute to one object, and creates another that no module serves.
func (st *permissionsScenario) together() {
	st.t.Helper()
	for _, module := range stack.Modules() {
		st.run(module)
	}
	st.apply(`{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: no-module, namespace: permissions},
  spec: {storeRef: {kind: AcmeVault, name: acme}, data: [{secretKey: value, remoteRef: {key: value}}]}}
---
{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: together, namespace: permissions},
  spec: {storeRef: {kind: AWSSecretsManager, name: aws}, data: [
    {secretKey: aws, remoteRef: {key: value}},
    {secretKey: vault, remoteRef: {key: value, property: value}, sourceRef: {storeRef: {kind: VaultKV, name: vault}}},
    {secretKey: gcp, remoteRef: {key: value}, sourceRef: {storeRef: {kind: GCPSecretManager, name: gcp}}}],
    dataFrom: [{sourceRef: {generatorRef: {kind: ClusterPassword, name: least}}}]}}`)
	made := st.secret("together", "password")
	for _, of := range []string{"aws", "vault", "gcp"} {
		if is := string(made.Data[of]); is != "from-"+of {
			st.t.Errorf("the Secret of all modules holds %q under %s", is, of)
		}
	}
	eventually(st.t, func() string {
		es := &v1alpha1.ExternalSecret{}
		must(st.t, st.s.Admin.Get(st.t.Context(), types.NamespacedName{Namespace: permissionsNamespace, Name: "no-module"}, es))
		if c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonProviderNotRunning {
			return fmt.Sprintf("the object that no module serves is %+v", c)
		}
		return ""
	})
}

func (st *permissionsScenario) object(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (st *permissionsScenario) patch(o client.Object, merge string) {
	st.t.Helper()
	must(st.t, st.s.Admin.Patch(st.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(merge))))
}

// secret waits until a Secret has a key.
func (st *permissionsScenario) secret(name, key string) *corev1.Secret {
	st.t.Helper()
	found := &corev1.Secret{}
	eventually(st.t, func() string {
		err := st.s.Admin.Get(st.t.Context(), types.NamespacedName{Namespace: permissionsNamespace, Name: name}, found)
		if err != nil || len(found.Data[key]) == 0 {
			return fmt.Sprintf("Secret %s has no key %s: %v", name, key, err)
		}
		return ""
	})
	return found
}

func (st *permissionsScenario) waitUntilDeleted(o client.Object) {
	st.t.Helper()
	eventually(st.t, func() string {
		if err := st.s.Admin.Get(st.t.Context(), client.ObjectKeyFromObject(o), o); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("%T %s is still there: %v", o, o.GetName(), err)
		}
		return ""
	})
}
