package simulation_test

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// script sends requests to a server, and records the results.
type script struct {
	t      *testing.T
	ns     string
	client client.Client
	// collected waits until the garbage collector has handled an object.
	collected func(s *script, kind, name string)
	// later advances the clock before the next request, so that managedFields get other times; nil for a real clock.
	later func()
	log   []string
	names map[string]string
}

// same replaces values that differ between two servers, uids and resourceVersions, by names in the order of their first
// use.
func (s *script) same(prefix, value string) string {
	if value == "" {
		return ""
	}
	id := prefix + value
	if s.names[id] == "" {
		n := 1
		for other := range s.names {
			if strings.HasPrefix(other, prefix) {
				n++
			}
		}
		s.names[id] = fmt.Sprintf("%s#%d", prefix, n)
	}
	return s.names[id]
}

// note records a result: the object, or the reason of the error.
func (s *script) note(what string, o *unstructured.Unstructured, err error) {
	if s.later != nil {
		s.later()
	}
	if err != nil {
		s.log = append(s.log, fmt.Sprintf("%s: %s", what, kerrors.ReasonForError(err)))
		return
	}
	o = o.DeepCopy()
	name := o.GetKind() + "/" + o.GetName()
	o.SetUID(types.UID(s.same("uid ", string(o.GetUID()))))
	o.SetResourceVersion(s.same("version of "+name+" ", o.GetResourceVersion()))
	o.SetNamespace("")
	o.SetCreationTimestamp(metav1.Time{})
	if o.GetDeletionTimestamp() != nil {
		o.SetDeletionTimestamp(&metav1.Time{})
	}
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = types.UID(s.same("uid ", string(owners[i].UID)))
	}
	if len(owners) > 0 {
		o.SetOwnerReferences(owners)
	}
	managed := o.GetManagedFields()
	// Entries are ordered by time, which has a resolution of seconds.
	slices.SortFunc(managed, func(a, b metav1.ManagedFieldsEntry) int {
		return stdcmp.Or(strings.Compare(a.Manager, b.Manager), strings.Compare(string(a.Operation), string(b.Operation)), strings.Compare(a.Subresource, b.Subresource))
	})
	for i := range managed {
		managed[i].Time = nil
		for name, seen := range s.names {
			if raw := managed[i].FieldsV1; raw != nil && strings.HasPrefix(name, "uid ") {
				raw.SetRawString(strings.ReplaceAll(raw.GetRawString(), strings.TrimPrefix(name, "uid "), seen))
			}
		}
	}
	o.SetManagedFields(managed)
	raw, merr := json.MarshalIndent(o.Object, "", " ")
	if merr != nil {
		s.t.Fatal(merr)
	}
	s.log = append(s.log, what+": "+string(raw))
}

func (s *script) object(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	if kind == "Secret" {
		o.SetAPIVersion("v1")
	}
	o.SetKind(kind)
	o.SetNamespace(s.ns)
	o.SetName(name)
	return o
}

func (s *script) get(kind, name string) *unstructured.Unstructured {
	o := s.object(kind, name)
	s.note("get "+name, o, s.client.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	return o
}

func (s *script) create(o *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	s.note("create "+o.GetName(), o, s.client.Create(context.Background(), o, client.FieldOwner(manager)))
	return o
}

func (s *script) secret(name, key, value string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := s.object("Secret", name)
	o.Object["data"] = map[string]any{key: value}
	for _, f := range change {
		f(o)
	}
	return o
}

// patch sends a patch; for an apply it adds metadata.
func (s *script) patch(kind, name string, t types.PatchType, body map[string]any, manager string, force bool) *unstructured.Unstructured {
	if t == types.ApplyPatchType {
		meta, _ := body["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["name"], meta["namespace"] = name, s.ns
		body["metadata"], body["kind"], body["apiVersion"] = meta, kind, s.object(kind, name).GetAPIVersion()
	}
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.raw(kind, name, t, raw, manager, force)
}

func (s *script) raw(kind, name string, t types.PatchType, raw []byte, manager string, force bool) *unstructured.Unstructured {
	opts := []client.PatchOption{client.FieldOwner(manager)}
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	o := s.object(kind, name)
	s.note(fmt.Sprintf("%s by %s", t, manager), o, s.client.Patch(context.Background(), o, client.RawPatch(t, raw), opts...))
	return o
}

func (s *script) status(name string, t types.PatchType, body map[string]any, manager string) {
	if t == types.ApplyPatchType {
		meta, _ := body["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["name"], meta["namespace"] = name, s.ns
		body["metadata"], body["kind"], body["apiVersion"] = meta, "ExternalSecret", v1alpha1.GroupVersion.String()
	}
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	o := s.object("ExternalSecret", name)
	opts := []client.SubResourcePatchOption{client.FieldOwner(manager)}
	if t == types.ApplyPatchType {
		opts = append(opts, client.ForceOwnership)
	}
	s.note("status by "+manager, o, s.client.Status().Patch(context.Background(), o, client.RawPatch(t, raw), opts...))
}

func (s *script) delete(o *unstructured.Unstructured, opts ...client.DeleteOption) {
	err := s.client.Delete(context.Background(), o, opts...)
	s.log = append(s.log, fmt.Sprintf("delete %s: %s", o.GetName(), kerrors.ReasonForError(err)))
}

func (s *script) externalSecret(name string) *unstructured.Unstructured {
	o := s.object("ExternalSecret", name)
	o.Object["spec"] = map[string]any{
		"storeRef": map[string]any{"kind": "FakeStore", "name": "main"},
		"data":     []any{map[string]any{"secretKey": "value", "remoteRef": map[string]any{"key": "db"}}},
	}
	return o
}

func data(key, value string) map[string]any {
	return map[string]any{"data": map[string]any{key: value}}
}

func guarded(o *unstructured.Unstructured, body map[string]any) map[string]any {
	body["metadata"] = map[string]any{"uid": string(o.GetUID()), "resourceVersion": o.GetResourceVersion()}
	return body
}

const one, two, three = "MQ==", "Mg==", "Mw=="

var scripts = map[string]func(s *script){
	"CreateTwice": func(s *script) {
		s.create(s.secret("a", "k", one), "x")
		s.create(s.secret("a", "k", two), "x")
		s.get("Secret", "a")
		s.get("Secret", "absent")
		with := s.secret("b", "k", one)
		with.SetResourceVersion("5")
		s.create(with, "x")
	},
	"ApplyCreates": func(s *script) {
		s.patch("Secret", "a", types.ApplyPatchType, data("k", one), "x", true)
		s.patch("Secret", "a", types.ApplyPatchType, data("k", one), "x", true)
		s.patch("Secret", "b", types.ApplyPatchType, map[string]any{"metadata": map[string]any{"uid": "unknown"}, "data": map[string]any{"k": one}}, "x", true)
	},
	"TwoManagers": func(s *script) {
		s.create(s.secret("a", "k", one), "x")
		s.patch("Secret", "a", types.ApplyPatchType, data("k", two), "y", false)
		s.patch("Secret", "a", types.ApplyPatchType, data("k", one), "y", false)
		s.patch("Secret", "a", types.ApplyPatchType, data("k", three), "z", false)
		s.patch("Secret", "a", types.ApplyPatchType, data("k", three), "z", true)
		s.patch("Secret", "a", types.ApplyPatchType, data("l", one), "y", true)
		s.patch("Secret", "a", types.ApplyPatchType, map[string]any{}, "z", true)
		s.patch("Secret", "a", types.ApplyPatchType, map[string]any{}, "y", true)
	},
	"ApplyGuarded": func(s *script) {
		old := s.create(s.secret("a", "k", one), "x")
		is := s.patch("Secret", "a", types.ApplyPatchType, guarded(old, data("k", two)), "y", true)
		s.patch("Secret", "a", types.ApplyPatchType, guarded(old, data("k", three)), "y", true)
		s.patch("Secret", "a", types.ApplyPatchType, guarded(is, data("k", three)), "y", true)
		s.delete(is)
		s.patch("Secret", "a", types.ApplyPatchType, guarded(is, data("k", one)), "y", true)
		s.create(s.secret("a", "k", one), "x")
		s.patch("Secret", "a", types.ApplyPatchType, map[string]any{"metadata": map[string]any{"uid": string(is.GetUID())}, "data": map[string]any{"k": two}}, "y", true)
		s.get("Secret", "a")
	},
	"ManagedFields": func(s *script) {
		is := s.create(s.secret("a", "k", one), "x")
		entries := is.GetManagedFields()
		entries[0].Operation, entries[0].Manager = metav1.ManagedFieldsOperationApply, "y"
		fold := func(version string) []byte {
			raw, err := json.Marshal([]map[string]any{
				{"op": "add", "path": "/metadata/managedFields", "value": entries},
				{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
			})
			if err != nil {
				s.t.Fatal(err)
			}
			return raw
		}
		s.raw("Secret", "a", types.JSONPatchType, fold("7"), "y", false)
		s.raw("Secret", "a", types.JSONPatchType, fold(is.GetResourceVersion()), "y", false)
		s.patch("Secret", "a", types.ApplyPatchType, map[string]any{}, "y", true)
	},
	"MergePatch": func(s *script) {
		is := s.create(s.secret("a", "k", one), "x")
		s.patch("Secret", "a", types.MergePatchType, data("l", two), "y", false)
		s.patch("Secret", "a", types.MergePatchType, guarded(is, data("l", three)), "y", false)
		s.patch("Secret", "a", types.MergePatchType, map[string]any{"data": map[string]any{"k": nil}}, "y", false)
		s.patch("Secret", "a", types.MergePatchType, map[string]any{"data": map[string]any{"k": nil}}, "y", false)
		s.patch("Secret", "absent", types.MergePatchType, data("l", three), "y", false)
	},
	"Secrets": func(s *script) {
		is := s.create(s.secret("a", "k", one, func(o *unstructured.Unstructured) { o.Object["immutable"] = true }), "x")
		s.patch("Secret", "a", types.ApplyPatchType, data("k", two), "y", true)
		s.patch("Secret", "a", types.MergePatchType, map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": "v"}}}, "y", false)
		s.patch("Secret", "a", types.MergePatchType, map[string]any{"type": string(corev1.SecretTypeTLS)}, "y", false)
		is.Object["metadata"] = s.get("Secret", "a").Object["metadata"]
		is.SetAnnotations(map[string]string{"a": "b"})
		s.note("update", is, s.client.Update(context.Background(), is, client.FieldOwner("z")))
	},
	"Delete": func(s *script) {
		old := s.create(s.secret("a", "k", one), "x")
		s.patch("Secret", "a", types.MergePatchType, data("l", two), "y", false)
		uid, other, version := old.GetUID(), types.UID("other"), old.GetResourceVersion()
		s.delete(old, client.Preconditions{UID: &uid, ResourceVersion: &version})
		s.delete(old, client.Preconditions{UID: &other})
		s.delete(old, client.Preconditions{UID: &uid})
		s.delete(old)
	},
	"Finalizers": func(s *script) {
		es := s.externalSecret("a")
		es.SetFinalizers([]string{"example.com/one"})
		is := s.create(es, "x")
		s.delete(is)
		s.get("ExternalSecret", "a")
		s.delete(is)
		s.get("ExternalSecret", "a")
		s.patch("ExternalSecret", "a", types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": nil}}, "y", false)
		s.get("ExternalSecret", "a")
	},
	"Generation": func(s *script) {
		is := s.create(s.externalSecret("a"), "x")
		s.patch("ExternalSecret", "a", types.MergePatchType, map[string]any{"spec": map[string]any{"refreshPolicy": "OnChange"}}, "y", false)
		s.patch("ExternalSecret", "a", types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}, "y", false)
		s.patch("ExternalSecret", "a", types.MergePatchType, map[string]any{"status": map[string]any{"observedGeneration": 7}}, "y", false)
		s.patch("ExternalSecret", "a", types.MergePatchType, guarded(is, map[string]any{"spec": map[string]any{"suspend": true}}), "y", false)
	},
	"Status": func(s *script) {
		is := s.create(s.externalSecret("a"), "x")
		s.status("a", types.MergePatchType, guarded(is, map[string]any{"status": map[string]any{"observedGeneration": 1}}), "y")
		s.status("a", types.MergePatchType, guarded(is, map[string]any{"status": map[string]any{"observedGeneration": 2}}), "y")
		s.status("a", types.MergePatchType, map[string]any{"spec": map[string]any{"suspend": true}, "metadata": map[string]any{"labels": map[string]any{"a": "b"}}}, "y")
		part := func(module string) map[string]any {
			return map[string]any{"metadata": map[string]any{"uid": string(is.GetUID())}, "status": map[string]any{"parts": []any{map[string]any{"module": module, "name": module}}}}
		}
		s.status("a", types.ApplyPatchType, part("one"), "one")
		s.status("a", types.ApplyPatchType, part("two"), "two")
		s.status("a", types.ApplyPatchType, map[string]any{"status": map[string]any{}}, "one")
		s.status("absent", types.ApplyPatchType, map[string]any{"status": map[string]any{}}, "one")
		s.status("a", types.ApplyPatchType, map[string]any{"metadata": map[string]any{"uid": "other"}, "status": map[string]any{}}, "one")
		s.status("a", types.ApplyPatchType, guarded(is, map[string]any{"status": map[string]any{"observedGeneration": 4}}), "one")
		s.status("a", types.MergePatchType, map[string]any{"metadata": map[string]any{"uid": "other"}, "status": map[string]any{"observedGeneration": 5}}, "one")
	},
	"Collector": func(s *script) {
		owner := s.create(s.externalSecret("a"), "x")
		owned := func(name string, uid types.UID) {
			s.create(s.secret(name, "k", one, func(o *unstructured.Unstructured) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret", Name: "a", UID: uid}})
			}), "x")
		}
		owned("lives", owner.GetUID())
		owned("orphan", "11111111-2222-3333-4444-555555555555")
		s.collected(s, "Secret", "orphan")
		s.get("Secret", "lives")
		s.get("Secret", "orphan")
		s.delete(owner)
		s.collected(s, "Secret", "lives")
		s.get("Secret", "lives")
	},
}

// TestScripts sends the same requests to the simulated API server and to a real one.
func TestScripts(t *testing.T) {
	for name, requests := range scripts {
		t.Run(name, func(t *testing.T) {
			plane := testenv.Shared(t)
			server := simulation.NewProjectServer()
			simulated := &script{t: t, ns: "shop", client: simulation.NewClient(server, simulation.AtOnce), names: map[string]string{}, collected: func(*script, string, string) {
				for _, key := range server.Orphans() {
					server.Collect(key)
				}
			}}
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scripts-"}}
			if err := plane.API.Create(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			c := testenv.NewClient(t, plane, ns.Name)
			actual := &script{t: t, ns: ns.Name, client: plane.API, names: map[string]string{}, collected: func(s *script, kind, name string) {
				c.Eventually(func() string {
					o := s.object(kind, name)
					if err := plane.API.Get(t.Context(), client.ObjectKeyFromObject(o), o); !kerrors.IsNotFound(err) {
						return name + "  still exists"
					}
					return ""
				})
			}}
			synctest.Test(t, func(t *testing.T) {
				simulated.t, simulated.later = t, func() { time.Sleep(2 * time.Second) }
				requests(simulated)
			})
			requests(actual)
			if diff := cmp.Diff(actual.log, simulated.log); diff != "" {
				t.Errorf("the simulated API server does not answer as a real one. -real, +simulated:\n%s", diff)
			}
		})
	}
}
