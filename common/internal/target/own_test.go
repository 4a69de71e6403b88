package target_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestApplyOfTheOwnerAloneEmptiesData shows why a change of the owner applies all fields that we hold.
func TestApplyOfTheOwnerAloneEmptiesData(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	e.writes(o.wants("db", "a", "1", "b", "1"))
	e.writes(o.wants("db", "a", "1"))

	e.mustApply("db", o.manager(), map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{o.reference(true)}}})
	e.wantData("db", map[string]string{})
}

func TestOwn(t *testing.T) {
	binary := string([]byte{0, 255, '\n', 0xc3, 0x28})
	cases := map[string]struct {
		reason  string
		applied bool
		foreign func(e *env)
	}{
		"AfterCreate": {reason: "The fields of the POST are applied.", foreign: func(*env) {}},
		"AfterApply":  {reason: "An applied Secret is applied again.", applied: true, foreign: func(*env) {}},
		"Foreign": {
			reason: "Fields of others are kept.",
			foreign: func(e *env) {
				other := e.object("other")
				e.updates("db", "kubectl-edit", func(s *corev1.Secret) {
					s.Data["theirs"] = []byte("x")
					s.Labels["theirs"], s.Annotations["theirs"] = "x", "x"
					s.OwnerReferences = append(s.OwnerReferences, other.reference(false))
				})
				e.writes(e.object("third").wants("db", "third", "x"))
			},
		},
		"ForeignApplied": {
			reason: "Fields of others are kept however they were written, also shared ones.",
			foreign: func(e *env) {
				e.mustApply("db", "flux", map[string]any{
					"data":     bytesOf("theirs", "x", "a", "1"),
					"metadata": map[string]any{"labels": map[string]string{"theirs": "x"}, "annotations": map[string]string{"theirs": "x"}},
				})
			},
		},
		"ForeignOwnerWithoutEntry": {
			reason: "Fields of others are kept if managedFields do not name them.",
			foreign: func(e *env) {
				o, other := object{e: e, name: "db", uid: e.mark("db").UID}, e.object("other")
				e.updates("db", "kubectl-edit", func(s *corev1.Secret) {
					s.OwnerReferences = append(s.OwnerReferences, other.reference(false))
				})
				e.resetsManagedFields("db")
				e.updates("db", "kubectl-edit", setData("theirs", "x"))
				e.writes(o.wants("db", "a", "1", "binary", binary, "empty", ""))
			},
		},
		"Immutable": {
			reason: "Own works for an immutable Secret.",
			foreign: func(e *env) {
				yes := true
				e.updates("db", "kubectl-edit", func(s *corev1.Secret) { s.Immutable = &yes })
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			d := o.wants("db", "a", "1", "binary", binary, "empty", "")
			d.Labels["stores.direct-secrets.io/x"] = "true"
			d.Seal()
			e.writes(d)
			if tc.applied {
				e.writes(d)
			}
			tc.foreign(e)
			was, hash := e.secret("db"), e.mark("db").Hash

			// Without values, as the controller calls it.
			bare := o.wants("db")
			bare.Mark.Generation = 2
			for _, owner := range []bool{true, true, false, false, true} {
				want := was.DeepCopy()
				if owner {
					want.OwnerReferences = append(want.OwnerReferences, o.reference(true))
					e.owns(owned(bare, o.reference(true)))
				} else {
					e.owns(bare)
				}
				got := e.secret("db")
				if mark := e.mark("db"); mark.Generation != 2 || mark.UID != o.uid || mark.Hash != hash {
					t.Errorf("\n%s\nmark is %+v", tc.reason, mark)
				}
				if !observe(got, "db").Intact {
					t.Errorf("\n%s\nnot intact", tc.reason)
				}
				if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
					t.Errorf("\n%s\nOwn(%v): -want, +got:\n%s", tc.reason, owner, diff)
				}
				theirs, left := maps.Clone(was.Annotations), maps.Clone(got.Annotations)
				delete(theirs, target.MarkKey("db"))
				delete(left, target.MarkKey("db"))
				if diff := cmp.Diff(theirs, left); diff != "" {
					t.Errorf("\n%s\nannotations of others after Own(%v): -want, +got:\n%s", tc.reason, owner, diff)
				}
			}

			// Our keys are still ours: they are removed when we drop them.
			if was.Immutable != nil {
				return
			}
			e.writes(o.wants("db"))
			for k := range d.Data {
				if _, ok := e.secret("db").Data[k]; ok {
					t.Errorf("\n%s\nkey %s cannot be removed any more", tc.reason, k)
				}
			}
		})
	}
}

// plain returns a Secret without the fields that each write changes.
func plain(s *corev1.Secret) *corev1.Secret {
	s = s.DeepCopy()
	s.ResourceVersion, s.ManagedFields = "", nil
	for k := range target.Marks(s.Annotations) {
		delete(s.Annotations, target.MarkKey(k))
	}
	return s
}

// mark returns the mark of the object with the same name.
func (e *env) mark(name string) policy.Mark {
	e.Helper()
	return target.Marks(e.secret(name).Annotations)[name]
}

// TestOwnKeepsDrift checks that drift stays as it is and is still seen as drift: the mark describes what we wrote.
func TestOwnKeepsDrift(t *testing.T) {
	const storeLabel = "stores.direct-secrets.io/x"
	cases := map[string]struct {
		reason string
		drift  func(e *env)
		want   map[string]string
	}{
		"ValueUpdated": {
			"A writer changed a value.",
			func(e *env) { e.updates("db", "kubectl", setData("a", "x")) },
			map[string]string{"a": "x", "b": "1"},
		},
		"KeyRemovedAndLabelToo": {
			"Our label is restored for the watch; the key is not.",
			func(e *env) {
				e.updates("db", "kubectl", func(s *corev1.Secret) {
					delete(s.Data, "a")
					delete(s.Labels, target.ManagedLabel(module))
				})
			},
			map[string]string{"b": "1"},
		},
		"ManagedFieldsReset": {
			"The owner of the keys is unknown.",
			func(e *env) { e.resetsManagedFields("db") },
			map[string]string{"a": "1", "b": "1"},
		},
	}
	for name, tc := range cases {
		for _, applied := range []bool{false, true} {
			suffix := map[bool]string{false: "AfterCreate", true: "AfterApply"}[applied]
			t.Run(name+suffix, func(t *testing.T) {
				e := newEnv(t)
				o := e.object("db")
				d := o.wants("db", "a", "1", "b", "1")
				d.Labels[storeLabel] = "true"
				d.Mark.Inputs = "inputs"
				d.Seal()
				e.writes(d)
				if applied {
					e.writes(d)
				}
				tc.drift(e)
				// The caller knows neither values nor inputs.
				for _, bare := range []target.Desired{owned(o.wants("db"), o.reference(true)), o.wants("db")} {
					e.owns(bare)
					s := e.wantData("db", tc.want)
					if got := observe(s, "db"); got.Intact {
						t.Errorf("\n%s\nIntact after Own(%v): got true; %v", tc.reason, bare.Owner != nil, s.ManagedFields)
					}
					if diff := cmp.Diff(created(d).Mark, e.mark("db")); diff != "" {
						t.Errorf("\n%s\nmark after Own(%v): -want, +got:\n%s", tc.reason, bare.Owner != nil, diff)
					}
					if s.Labels[target.ManagedLabel(module)] != "true" {
						t.Errorf("\n%s\nlabels: %v", tc.reason, s.Labels)
					}
				}

				e.writes(d)
				if s := e.wantData("db", map[string]string{"a": "1", "b": "1"}); !observe(s, "db").Intact {
					t.Errorf("\n%s\nnot reverted by an Apply", tc.reason)
				}
			})
		}
	}
}

// TestOwnMovesThePolicy checks that a changed creationPolicy changes only the mark.
func TestOwnMovesThePolicy(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := owned(o.wants("db", "a", "1"), o.reference(true))
	d.Mark.Inputs = "inputs"
	was := e.writes(d)
	was.OwnerReferences = nil
	want := created(d).Mark
	for _, p := range []v1alpha1.CreationPolicy{v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge} {
		bare := o.wants("db")
		bare.Mark.Policy, bare.Mark.Generation = p, want.Generation+1
		want.Policy, want.Generation = p, want.Generation+1
		s := e.owns(bare)
		if diff := cmp.Diff(plain(was), plain(s)); diff != "" {
			t.Errorf("Own(%s): -before, +after:\n%s", p, diff)
		}
		if diff := cmp.Diff(want, e.mark("db")); diff != "" {
			t.Errorf("mark after Own(%s): -want, +got:\n%s", p, diff)
		}
		if !observe(s, "db").Intact {
			t.Errorf("not intact after Own(%s)", p)
		}
	}
}

func TestLabels(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := o.wants("db", "a", "1")
	first, second := target.StoreLabel("g", "K", e.ns, "first"), target.StoreLabel("g", "K", e.ns, "second")
	managed := target.ManagedLabel(module)

	d.Labels[first] = "true"
	d.Seal()
	e.writes(d)
	e.updates("db", "kubectl-label", func(s *corev1.Secret) { s.Labels["theirs"] = "x" })
	for _, step := range []struct {
		reason string
		labels map[string]string
		own    bool
		want   map[string]string
	}{
		{"With another store, the label of the former one is removed.", map[string]string{managed: "true", second: "true"}, false,
			map[string]string{managed: "true", second: "true", "theirs": "x"}},
		{"A change of the owner keeps the labels.", map[string]string{managed: "true"}, true,
			map[string]string{managed: "true", second: "true", "theirs": "x"}},
		{"The first store is used again.", map[string]string{managed: "true", first: "true"}, false,
			map[string]string{managed: "true", first: "true", "theirs": "x"}},
	} {
		d.Labels = step.labels
		d.Seal()
		if step.own {
			e.owns(owned(d, o.reference(true)))
		} else {
			e.writes(d)
		}
		if diff := cmp.Diff(step.want, e.secret("db").Labels); diff != "" {
			t.Errorf("\n%s\nlabels: -want, +got:\n%s", step.reason, diff)
		}
	}
}

// TestEmptyValues checks that an empty value is a value, whether it is nil or not.
func TestEmptyValues(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := o.wants("db", "a", "1")
	d.Data["empty"], d.Data["nil"] = []byte{}, nil
	d.Seal()
	want := map[string]string{"a": "1", "empty": "", "nil": ""}
	for _, verb := range []string{"Create", "Apply", "Apply again"} {
		s := e.writes(d)
		e.wantData("db", want)
		if !observe(s, "db").Intact {
			t.Errorf("not intact after %s", verb)
		}
	}
}

// recorder records the requests.
type recorder struct {
	http.RoundTripper

	mu   sync.Mutex
	sent []string
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		r.sent = append(r.sent, req.Method+" "+req.Header.Get("Content-Type")+" "+string(body))
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(req)
}

// TestStringDataIsNeverSent checks requests for stringData, which is write-only and has its own field in managedFields.
func TestStringDataIsNeverSent(t *testing.T) {
	e := newEnv(t)
	r := &recorder{}
	cfg := cluster.Config()
	cfg.ContentType = "application/json"
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { r.RoundTripper = rt; return r })
	e.w = target.NewWriter(e.clientOf(cfg), nil)
	o := e.object("db")
	d := o.wants("db", "a", "1", "b", "1")
	e.writes(d)
	e.writes(o.wants("db", "a", "2"))
	e.owns(owned(d, o.reference(true)))

	var verbs []string
	for _, s := range r.sent {
		if strings.Contains(s, "stringData") {
			t.Errorf("sent %s", s)
		}
		verbs = append(verbs, strings.Join(strings.Fields(s)[:2], " "))
	}
	want := []string{"POST application/json", "PATCH application/json-patch+json", "PATCH application/apply-patch+yaml", "PATCH application/apply-patch+yaml"}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Errorf("requests: -want, +got:\n%s", diff)
	}
	for _, s := range r.sent[2:] {
		_, body, _ := strings.Cut(s, "{")
		var got struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		if err := json.Unmarshal([]byte("{"+body), &got); err != nil || got.Metadata.UID == "" || got.Metadata.ResourceVersion == "" {
			t.Errorf("an apply without guard: %s, %v", s, err)
		}
	}
}

func (e *env) clientOf(cfg *rest.Config) client.Client {
	e.Helper()
	c, err := client.New(cfg, client.Options{Scheme: api.Scheme()})
	if err != nil {
		e.Fatal(err)
	}
	return c
}
