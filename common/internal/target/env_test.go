package target_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// module is the API group of the module under test.
const module = "test.direct-secrets.io"

var (
	api     client.Client
	cluster *controlplane.ControlPlane
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		var err error
		cluster = c
		api, err = client.New(c.Config(), client.Options{Scheme: scheme.Scheme})
		return err
	})
}

// env is a namespace on the control plane for one test, so that tests can run in parallel.
type env struct {
	*testing.T
	ctx context.Context
	ns  string
	w   *target.Writer
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{T: t, ctx: t.Context(), ns: "t-" + strings.ToLower(rand.Text()[:12]), w: target.NewWriter(api, nil)}
	e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}})
	return e
}

func (e *env) create(o client.Object, opts ...client.CreateOption) {
	e.Helper()
	if err := api.Create(e.ctx, o, opts...); err != nil {
		e.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// eventually waits until f returns an empty string; otherwise f returns what is missing.
func (e *env) eventually(f func() string) {
	e.Helper()
	controlplane.Eventually(e, f)
}

// object stands for an ExternalSecret. Another Kind is used, so that the object exists and the garbage collector keeps
// what it owns.
type object struct {
	e    *env
	name string
	uid  types.UID
}

func (e *env) object(name string) object {
	e.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name}}
	e.create(m)
	return object{e: e, name: name, uid: m.UID}
}

func (o object) manager() string { return target.Manager(o.name) }

func (o object) reference(controller bool) metav1.OwnerReference {
	no := false
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: o.name, UID: o.uid, Controller: &controller, BlockOwnerDeletion: &no,
	}
}

// wants returns a sealed Desired for a Secret; pairs are keys and values.
func (o object) wants(secret string, pairs ...string) target.Desired {
	d := target.Desired{
		NamespacedName: types.NamespacedName{Namespace: o.e.ns, Name: secret},
		Type:           corev1.SecretTypeOpaque,
		Data:           bytesOf(pairs...),
		Labels:         map[string]string{target.ManagedLabel(module): "true"},
		Mark:           policy.Mark{Name: o.name, UID: o.uid, Generation: 1, Module: module},
	}
	d.Seal()
	return d
}

func owned(d target.Desired, r metav1.OwnerReference) target.Desired {
	d.Owner = &r
	return d
}

// immutable returns d for an object that wants an immutable Secret.
func immutable(d target.Desired) target.Desired {
	d.Immutable = true
	d.Seal()
	return d
}

// created returns d with the mark of a Secret that the object created.
func created(d target.Desired) target.Desired {
	d.Mark.Created = true
	return d
}

func bytesOf(pairs ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = []byte(pairs[i+1])
	}
	return m
}

func stringsOf(m map[string][]byte) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func (e *env) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: e.ns, Name: name}
}

// secret reads a Secret live; nil if it does not exist.
func (e *env) secret(name string) *corev1.Secret {
	e.Helper()
	s, err := e.w.Get(e.ctx, e.key(name))
	if err != nil {
		e.Fatal(err)
	}
	return s
}

// writes creates the Secret or applies to it.
func (e *env) writes(d target.Desired, c ...target.Others) *corev1.Secret {
	e.Helper()
	live := e.secret(d.Name)
	if live == nil {
		s, err := e.w.Create(e.ctx, d)
		if err != nil {
			e.Fatalf("Create: %v", err)
		}
		return s
	}
	s, blocked, err := e.w.Apply(e.ctx, live, d, append(c, target.Others{})[0])
	if err != nil || len(blocked) > 0 {
		e.Fatalf("Apply: yielded %q, error %v", blocked, err)
	}
	return s
}

// owns updates the ownerReference.
func (e *env) owns(d target.Desired, c ...target.Others) *corev1.Secret {
	e.Helper()
	s, err := e.w.Own(e.ctx, e.secret(d.Name), d, append(c, target.Others{})[0])
	if err != nil {
		e.Fatalf("Own: %v", err)
	}
	return s
}

// posted creates a Secret as another field manager.
func (e *env) posted(name, manager string, pairs ...string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name}, Data: bytesOf(pairs...)}
	e.create(s, client.FieldOwner(manager))
	return s
}

// updates changes a Secret with an update of another field manager.
func (e *env) updates(name, manager string, change func(*corev1.Secret)) *corev1.Secret {
	e.Helper()
	for {
		s := e.secret(name)
		change(s)
		err := api.Update(e.ctx, s, client.FieldOwner(manager))
		if err == nil {
			return s
		}
		if !kerrors.IsConflict(err) {
			e.Fatalf("update as %s: %v", manager, err)
		}
	}
}

func setData(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
}

func seal(s *corev1.Secret) { s.Immutable = new(true) }

// applies writes all fields of a manager with a server-side apply.
func (e *env) applies(name, manager string, force bool, fields map[string]any) error {
	e.Helper()
	body := map[string]any{"apiVersion": "v1", "kind": "Secret"}
	maps.Copy(body, fields)
	meta := map[string]any{"name": name, "namespace": e.ns}
	if m, ok := fields["metadata"].(map[string]any); ok {
		maps.Copy(meta, m)
	}
	body["metadata"] = meta
	raw, err := json.Marshal(body)
	if err != nil {
		e.Fatal(err)
	}
	opts := []client.PatchOption{client.FieldOwner(manager)}
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name}}
	return api.Patch(e.ctx, s, client.RawPatch(types.ApplyPatchType, raw), opts...)
}

func (e *env) mustApply(name, manager string, fields map[string]any) {
	e.Helper()
	if err := e.applies(name, manager, true, fields); err != nil {
		e.Fatalf("apply as %s: %v", manager, err)
	}
}

// data returns the fields of an apply that set keys.
func data(pairs ...string) map[string]any { return map[string]any{"data": bytesOf(pairs...)} }

func (e *env) deletes(s *corev1.Secret) {
	e.Helper()
	if err := api.Delete(e.ctx, s); err != nil {
		e.Fatal(err)
	}
}

// wantData compares the keys and values of a Secret with want, and returns the Secret.
func (e *env) wantData(name string, want map[string]string) *corev1.Secret {
	e.Helper()
	s := e.secret(name)
	if s == nil {
		e.Fatalf("Secret %s does not exist", name)
	}
	if diff := cmp.Diff(want, stringsOf(s.Data)); diff != "" {
		e.Errorf("data of %s: -want, +got:\n%s", name, diff)
	}
	return s
}

// wantUntouched fails the test if a Secret has changed; nil stands for none.
func (e *env) wantUntouched(name string, was *corev1.Secret) {
	e.Helper()
	if diff := cmp.Diff(was, e.secret(name)); diff != "" {
		e.Errorf("Secret %s: -before, +after:\n%s", name, diff)
	}
}

// holders returns the sorted field managers of a key.
func holders(s *corev1.Secret, key string) []string {
	h := target.HoldersOf(s.ManagedFields, key, "")
	slices.Sort(h)
	return slices.Compact(h)
}

// peers answers by its functions. Without them, all ExternalSecrets exist and write every Secret.
type peers struct {
	exists func(name string, uid types.UID) bool
	writes func(name string, uid types.UID, secret string) bool
}

// Exists implements target.Peers.
func (c peers) Exists(_ context.Context, name string, uid types.UID) bool {
	return c.exists == nil || c.exists(name, uid)
}

// Writes implements target.Peers.
func (c peers) Writes(_ context.Context, name string, uid types.UID, secret string) bool {
	return c.writes == nil || c.writes(name, uid, secret)
}

// observe returns what an exclusive ExternalSecret sees, while all others exist.
func observe(s metav1.Object, name string) policy.Target {
	return target.Observe(context.Background(), s, target.Identity{Name: name, Module: module, Exclusive: true}, peers{})
}

// allExist returns answers by which all other ExternalSecrets exist and are older.
func allExist() target.Others {
	return target.Others{
		ManagerDeleted: func(string) bool { return false },
		Older:          func(string) bool { return true },
	}
}

// only returns a function that is true for one field manager.
func only(manager string) func(string) bool {
	return func(m string) bool { return m == manager }
}
