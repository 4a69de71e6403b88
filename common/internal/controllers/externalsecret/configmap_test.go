package externalsecret_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

const onConfigMaps = "TestConfigMapTarget"

// onBoth are the tables of Secrets that also hold for ConfigMaps.
var onBoth = map[string]func(*testing.T){
	"Creation": TestCreationPolicy, "None": TestNone, "Adoption": TestAdoptionIsWhole, "Foreign": TestForeignSecret,
	"Merge": TestMergeConflict, "NotFound": TestNotFound, "Deletion": TestDeletion, "Rename": TestRename, "Unlabelled": TestUnlabelled,
}

// TestConfigMapTarget runs the tables of Secrets with ConfigMaps.
func TestConfigMapTarget(t *testing.T) {
	for name, test := range onBoth {
		t.Run(name, test)
	}
}

// TestConfigMapRefused checks what a ConfigMap cannot be. A Secret of the same name stays as it is.
func TestConfigMapRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		on     bool
		value  string
		there  *corev1.ConfigMap
		want   string
	}{
		"Off":    {"An operator without the permission says what to set.", false, "x", nil, "in the chart, set configMapTargets.enabled"},
		"Bytes":  {"A value that is not text is not changed.", true, "\xff", nil, `the value of key "value" is not text`},
		"Binary": {"The binaryData of another client stay.", true, "x", &corev1.ConfigMap{BinaryData: map[string][]byte{"a": {0xff}}}, `ConfigMap "db" has binaryData`},
		"Served": {"Otherwise it is written.", true, "x", nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newOwnEnv(t, func(f *operator.Flags) { f.ConfigMapTargets = tc.on })
			e.Backend.Put("db", []byte(tc.value))
			secret := e.plain("db", "value", "theirs")
			if tc.there != nil {
				tc.there.ObjectMeta = e.Meta("db")
				e.Create(tc.there)
			}
			e.Create(e.ExternalSecret("db", into(v1alpha1.Target{Kind: v1alpha1.TargetConfigMap})))
			if tc.want == "" {
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				written := &corev1.ConfigMap{}
				if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(secret), written); err != nil || written.Data["value"] != tc.value {
					t.Errorf("%s: the ConfigMap has %v: %v", tc.reason, written.Data, err)
				}
			} else {
				e.Eventually(func() string {
					if c := e.Condition(e.Get("db")); !strings.Contains(c, tc.want) {
						return tc.reason + " Ready is " + c + ", want " + tc.want
					}
					return ""
				})
			}
			e.wantUnchanged(secret)
		})
	}
}

// asConfigMaps makes an environment of TestConfigMapTarget use ConfigMaps wherever a test names a Secret.
func asConfigMaps(t *testing.T, e *testenv.Env) *testenv.Env {
	if !strings.HasPrefix(t.Name(), onConfigMaps+"/") {
		return e
	}
	e.Flags = append(e.Flags, func(f *operator.Flags) { f.ConfigMapTargets = true })
	plane := *e.Plane
	plane.API = configMaps{e.API}
	e.Plane = &plane
	return e
}

// configMaps is a client for which each Secret is a ConfigMap, and each ExternalSecret writes one.
type configMaps struct{ client.WithWatch }

// under calls f with a Secret that has the name of its target.
func (c configMaps) under(o client.Object, f func(c client.Client) error) error {
	if es, ok := o.(*v1alpha1.ExternalSecret); ok {
		es.Spec.Target.Kind = v1alpha1.TargetConfigMap
	}
	if _, ok := o.(*corev1.Secret); !ok {
		return f(c.WithWatch)
	}
	o.SetName(v1alpha1.ConfigMapTarget + o.GetName())
	defer func() { o.SetName(strings.TrimPrefix(o.GetName(), v1alpha1.ConfigMapTarget)) }()
	return f(target.ConfigMapClient{Client: c.WithWatch})
}

func (c configMaps) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*corev1.Secret); !ok {
		err := c.WithWatch.Get(ctx, key, o, opts...)
		if es, ok := o.(*v1alpha1.ExternalSecret); ok {
			if es.Status.Binding != nil {
				es.Status.Binding.Name = strings.TrimPrefix(es.Status.Binding.Name, v1alpha1.ConfigMapTarget)
			}
			for i := range es.Status.Conditions {
				es.Status.Conditions[i].Message = strings.ReplaceAll(es.Status.Conditions[i].Message, v1alpha1.ConfigMapTarget, "")
			}
		}
		return err
	}
	o.SetName(key.Name)
	key.Name = v1alpha1.ConfigMapTarget + key.Name
	return c.under(o, func(c client.Client) error { return c.Get(ctx, key, o, opts...) })
}

func (c configMaps) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.under(o, func(c client.Client) error { return c.Create(ctx, o, opts...) })
}

func (c configMaps) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.under(o, func(c client.Client) error { return c.Delete(ctx, o, opts...) })
}

func (c configMaps) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	body, err := p.Data(o)
	var apply map[string]any
	if p.Type() == types.ApplyPatchType && json.Unmarshal(body, &apply) == nil && apply["stringData"] != nil { // A ConfigMap has only data.
		data := map[string]any{}
		for k, v := range apply["stringData"].(map[string]any) {
			data[k] = []byte(v.(string))
		}
		apply["data"] = data
		delete(apply, "stringData")
		body, err = json.Marshal(apply)
		p = client.RawPatch(p.Type(), body)
	}
	if err != nil {
		return err
	}
	return c.under(o, func(c client.Client) error { return c.Patch(ctx, o, p, opts...) })
}

func (c configMaps) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	s, ok := o.(*corev1.Secret)
	if !ok {
		return c.under(o, func(c client.Client) error { return c.Update(ctx, o, opts...) })
	}
	m := &corev1.ConfigMap{ObjectMeta: s.ObjectMeta, Immutable: s.Immutable, Data: map[string]string{}}
	for k, v := range s.Data {
		m.Data[k] = string(v)
	}
	maps.Copy(m.Data, s.StringData)
	err := c.WithWatch.Update(ctx, m, opts...)
	s.ObjectMeta = m.ObjectMeta
	return err
}

func (c configMaps) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	secrets, ok := list.(*corev1.SecretList)
	if !ok {
		return c.WithWatch.List(ctx, list, opts...)
	}
	found := &corev1.ConfigMapList{}
	if err := c.WithWatch.List(ctx, found, opts...); err != nil {
		return err
	}
	secrets.ListMeta = found.ListMeta
	for i := range found.Items {
		secrets.Items = append(secrets.Items, *secretOf(&found.Items[i]))
	}
	return nil
}

func (c configMaps) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if _, ok := list.(*corev1.SecretList); !ok {
		return c.WithWatch.Watch(ctx, list, opts...)
	}
	w, err := c.WithWatch.Watch(ctx, &corev1.ConfigMapList{}, opts...)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		m, ok := e.Object.(*corev1.ConfigMap)
		if ok {
			e.Object = secretOf(m)
		}
		return e, ok && m.Name != "kube-root-ca.crt"
	}), nil
}

func secretOf(m *corev1.ConfigMap) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: m.ObjectMeta, Immutable: m.Immutable, Data: map[string][]byte{}}
	for k, v := range m.Data {
		s.Data[k] = []byte(v)
	}
	return s
}
