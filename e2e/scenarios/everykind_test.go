package scenarios

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	gcpemulator "github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// vaultMount is the KV engine that the scenarios read.
const vaultMount = "secret"

// kinds maps the names in testdata/everykind.yaml to the Kinds of stores and generators.
var kinds = map[string]string{
	"sm": "AWSSecretsManager", "ssm": "AWSParameterStore", "kv": "VaultKV", "gcp": "GCPSecretManager",
	"ecr": "ECRAuthorizationToken", "sts": "STSSessionToken", "dynamic": "VaultDynamicSecret", "token": "GCPAccessToken", "password": "Password",
}

var (
	reads     = []string{"sm", "ssm", "kv", "gcp"}
	generates = []string{"ecr", "sts", "dynamic", "token", "password"}
)

// A place is a namespace with a store of every Kind, and their servers.
type place struct {
	t     *testing.T
	stack *stack.Stack
	ns    string
	vault *vaulttest.Server
	gcp   *gcpemulator.Server
}

func newPlace(t *testing.T, s *stack.Stack, ns string) *place {
	t.Helper()
	p := &place{t: t, stack: s, vault: vaulttest.Start(t)}
	p.vault.Mount(vaultMount, "2")
	p.vault.MountAccounts("accounts")
	p.vault.AccountRole("accounts", "app", vaulttest.M{"ttl": 600, "max_ttl": 86400})
	var err error
	p.gcp, err = gcpemulator.Start()
	must(t, err)
	t.Cleanup(func() { must(t, p.gcp.Close()) })
	return p.in(ns)
}

// in returns the place in another namespace, with the same servers.
func (p *place) in(ns string) *place {
	p.t.Helper()
	other := *p
	other.ns = ns
	must(p.t, p.stack.CreateNamespace(p.t.Context(), ns))
	p.stack.AWS.AddRole(emulator.Role{ARN: other.role(), WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:" + ns + ":default", Audience: "sts.amazonaws.com"},
	}})
	return &other
}

func (p *place) role() string { return "arn:aws:iam::000000000000:role/" + p.ns }

// put gives the secret of each store its nth value.
func (p *place) put(n int) {
	p.t.Helper()
	for _, store := range reads {
		p.putTo(store, p.ns+"-"+store, p.value(store, n))
	}
}

// putTo stores a value as the property "value" of a secret.
func (p *place) putTo(store, key, value string) {
	p.t.Helper()
	object := fmt.Sprintf(`{"value":%q}`, value)
	switch store {
	case "sm":
		p.stack.AWS.Put(key, []byte(object))
	case "ssm":
		p.stack.AWS.PutParameter(key, object)
	case "gcp":
		p.gcp.Put(key, []byte(object))
	case "kv":
		p.vault.Do(http.MethodPost, vaultMount+"/data/"+key, vaulttest.M{"data": vaulttest.M{"value": value}})
	default:
		p.t.Fatalf("there is no store %s", store)
	}
}

func (p *place) value(store string, n int) string { return fmt.Sprintf("%s %s %d", p.ns, store, n) }

// apply applies testdata/everykind.yaml, with namespaced Kinds or with the cluster Kinds.
func (p *place) apply(cluster bool) {
	p.t.Helper()
	prefix, in, conditions := "", "", ""
	if cluster {
		prefix, in, conditions = "Cluster", ", namespace: "+p.ns, "\n  conditions:\n  - namespaces: ["+p.ns+"]"
	}
	text, err := os.ReadFile("testdata/everykind.yaml")
	must(p.t, err)
	page, err := template.New("").Funcs(template.FuncMap{
		"sel": func(key string) string { return "{name: credentials, key: " + key + in + "}" },
	}).Parse(string(text))
	must(p.t, err)
	var out bytes.Buffer
	must(p.t, page.Execute(&out, map[string]any{
		"Cluster": prefix, "In": in, "Conditions": conditions, "Prefix": p.ns, "Stores": kinds, "Reads": reads, "Generates": generates,
		"Region": stack.Region, "AWS": p.stack.AWS.URL(), "AWSKeyID": stack.AccessKeyID, "AWSKey": stack.SecretAccessKey, "AWSRole": p.role(),
		"Vault": p.vault.URL, "VaultToken": p.vault.RootToken,
		"GCP": p.gcp.URL(), "GCPProject": gcpemulator.DefaultProject, "GCPKey": string(p.gcp.Key("reader@test-project.iam.gserviceaccount.com")),
	}))
	for _, doc := range stack.Documents(out.Bytes()) {
		o := &unstructured.Unstructured{}
		must(p.t, yaml.Unmarshal(doc, &o.Object))
		if !strings.HasPrefix(o.GetKind(), "Cluster") {
			o.SetNamespace(p.ns)
		}
		doc, err := yaml.Marshal(o.Object)
		must(p.t, err)
		must(p.t, p.stack.Apply(p.t.Context(), doc))
	}
}

func (p *place) data(name string) map[string]string {
	p.t.Helper()
	s := &corev1.Secret{}
	if err := p.stack.Admin.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: name}, s); err != nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range s.Data {
		out[k] = string(v)
	}
	return out
}

// wantData waits until a Secret has the wanted data.
func (p *place) wantData(name string, want map[string]string) {
	p.t.Helper()
	eventually(p.t, func() string {
		if diff := cmp.Diff(want, p.data(name)); diff != "" {
			return fmt.Sprintf("Secret %s/%s: -want, +got:\n%s\n%s", p.ns, name, diff, p.condition(name))
		}
		return ""
	})
}

// condition returns the Ready condition of an ExternalSecret as text.
func (p *place) condition(name string) string {
	es := &v1alpha1.ExternalSecret{}
	if err := p.stack.Admin.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: name}, es); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason + ": " + c.Message
	}
	return "no condition"
}

// refresh requests a refresh of an ExternalSecret.
func (p *place) refresh(name, request string) {
	p.t.Helper()
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, request)
	must(p.t, p.stack.Admin.Patch(p.t.Context(), es, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// made waits until a Secret of a generator has all keys, and returns its data.
func (p *place) made(name string, keys ...string) map[string]string {
	p.t.Helper()
	var data map[string]string
	eventually(p.t, func() string {
		data = p.data(name)
		if diff := cmp.Diff(slices.Sorted(slices.Values(keys)), slices.Sorted(maps.Keys(data))); diff != "" {
			return fmt.Sprintf("Secret %s/%s: -want, +got:\n%s\n%s", p.ns, name, diff, p.condition(name))
		}
		return ""
	})
	return data
}

// served waits until everything that needs no ServiceAccount token works, and has been synced again after a
// change.
func (p *place) served() {
	p.t.Helper()
	password := p.made("password", "password")["password"]
	p.made("ecr", "username", "password", "proxy_endpoint", "expires_at")
	p.made("dynamic", "username", "password", "groups", "limits", "note")
	p.made("token", "username", "password", "expiry")
	for n := 1; n <= 2; n++ {
		if n > 1 {
			p.put(n)
			for _, name := range append(reads, "mixed") {
				p.refresh(name, fmt.Sprint(n))
			}
		}
		for _, store := range reads {
			p.wantData(store, map[string]string{"value": p.value(store, n)})
			p.wantData("pushed-"+store, map[string]string{"value": password})
		}
		eventually(p.t, func() string {
			data := p.data("mixed")
			if made := data["password"]; made == "" || made == password {
				return "Secret mixed lacks a password, or has that of Secret password: " + p.condition("mixed")
			}
			delete(data, "password")
			return cmp.Diff(map[string]string{"aws": p.value("sm", n), "vault": p.value("kv", n)}, data)
		})
	}
}

// tokenDenied waits until the object reports that the operator is not allowed to create the ServiceAccount
// token.
func (p *place) tokenDenied() {
	p.t.Helper()
	eventually(p.t, func() string {
		if condition := p.condition("sts"); !strings.Contains(condition, "serviceaccounts/token") {
			return "ExternalSecret sts says " + condition
		}
		return ""
	})
	if p.data("sts") != nil {
		p.t.Error("there is a Secret sts")
	}
}

// ended deletes everything, and waits until nothing is left in the cluster or in the stores.
func (p *place) ended() {
	p.t.Helper()
	for _, o := range []client.Object{&v1alpha1.PushSecret{}, &v1alpha1.ExternalSecret{}} {
		must(p.t, p.stack.Admin.DeleteAllOf(p.t.Context(), o, client.InNamespace(p.ns)))
	}
	eventually(p.t, func() string {
		var pushes v1alpha1.PushSecretList
		must(p.t, p.stack.Admin.List(p.t.Context(), &pushes, client.InNamespace(p.ns)))
		var secrets corev1.SecretList
		must(p.t, p.stack.Admin.List(p.t.Context(), &secrets, client.InNamespace(p.ns)))
		if len(pushes.Items) > 0 || len(secrets.Items) > 1 {
			return fmt.Sprintf("%d PushSecrets and %d Secrets are left, want 0 and the credentials", len(pushes.Items), len(secrets.Items))
		}
		return ""
	})
	if _, ok := p.stack.AWS.Get(p.ns + "-pushed-sm"); ok {
		p.t.Error("what was pushed to Secrets Manager is still there")
	}
}

// forbidden returns the requests that the API server denied to the modules.
func forbidden(t *testing.T, s *stack.Stack, since time.Time) map[string]int {
	t.Helper()
	log, err := s.ReadAuditLog(since)
	must(t, err)
	out := map[string]int{}
	requests := 0
	for _, e := range log {
		if !strings.HasPrefix(e.UserAgent, "direct-secrets/") {
			continue
		}
		requests++
		if e.ResponseStatus.Code == http.StatusForbidden {
			out[strings.Join([]string{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource}, " ")]++
		}
	}
	if requests == 0 {
		t.Error("no request of a module is in the audit log")
	}
	return out
}

// A kindCase is a case of TestEveryKind.
type kindCase struct {
	reason string
	ns     string
	// count is the number of namespaces.
	count   int
	chosen  bool
	cluster bool
}

// TestEveryKind runs the modules as the chart deploys them. They read, generate and push with every Kind, for
// all namespaces and for selected ones. Only requests for ServiceAccount tokens are forbidden, until a value of
// the chart allows them.
func TestEveryKind(t *testing.T) {
	cases := map[string]kindCase{"ChosenNamespaces": {"Namespaced Kinds in two namespaces, with Roles only.", "every-chosen", 2, true, false}}
	maps.Copy(cases, furtherKindCases)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			since := time.Now()
			s, operators := shared, "operators-every"
			if !tc.chosen {
				var err error
				s, err = stack.Start(t.Context(), stack.Options{Audit: true, Bare: true})
				must(t, err)
				t.Cleanup(func() { must(t, s.Stop()) })
				operators = stack.Namespace
			}
			places := []*place{newPlace(t, s, tc.ns)}
			scope := []string{}
			for n := 1; n < tc.count; n++ {
				places = append(places, places[0].in(fmt.Sprintf("%s-%02d", tc.ns, n)))
			}
			for _, p := range places {
				p.put(1)
				if tc.chosen {
					scope = append(scope, p.ns)
				}
			}
			values := stack.Values{"scope": stack.Values{"namespaces": scope}, "crds": stack.Values{"enabled": s != shared}}
			i, err := upgrade(t.Context(), s, "direct-secrets", operators, stack.Values{"global": values})
			must(t, err)
			must(t, s.ServeCRDs(t.Context()))
			for _, module := range builtModules {
				process, err := i.StartModule(t.Context(), module, patient...)
				must(t, err)
				// `make e2e-fips` builds the modules like FIPS images.
				if os.Getenv("GOFIPS140") != "" && !strings.Contains(process.Log(), `"fips140":"on","cryptoModule":"v1.`) {
					t.Errorf("%s does not run in FIPS 140-3 mode", module)
				}
				t.Cleanup(func() {
					must(t, process.Stop())
					if t.Failed() {
						t.Log(process.Log())
					}
				})
			}
			for _, p := range places {
				p.apply(tc.cluster)
			}
			for _, p := range places {
				p.served()
				p.tokenDenied()
			}
			refused := forbidden(t, s, since)
			if refused["create serviceaccounts token"] == 0 {
				t.Errorf("%s\nNo token was denied.", tc.reason)
			}
			delete(refused, "create serviceaccounts token")
			if len(refused) > 0 {
				t.Errorf("%s\nThe chart grants too few permissions: %v", tc.reason, refused)
			}

			values["serviceAccountTokens"] = stack.Values{"enabled": true}
			_, err = upgrade(t.Context(), s, "direct-secrets", operators, stack.Values{"global": values})
			must(t, err)
			for _, p := range places {
				p.refresh("sts", "1")
				p.made("sts", "access_key_id", "secret_access_key", "session_token", "expiration")
				p.ended()
			}
		})
	}
}

// live returns the nth of a series of objects that each read their own secret. Four of five read one store; the
// fifth reads two, and a generated password.
func (p *place) live(name string, n int) *v1alpha1.ExternalSecret {
	p.t.Helper()
	store, key := reads[n%len(reads)], p.ns+"-"+name
	if n%5 == 4 {
		store = "sm"
	}
	p.putTo(store, key, "a value of "+name)
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: kinds[store], Name: store},
			Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: key, Property: "value"}}},
		},
	}
	if n%5 == 4 {
		p.putTo("kv", key, "another value of "+name)
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
			SecretKey: "other", RemoteRef: v1alpha1.RemoteRef{Key: key, Property: "value"},
			SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: kinds["kv"], Name: "kv"}},
		})
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: kinds["password"], Name: "password"}}}}
	}
	return es
}
