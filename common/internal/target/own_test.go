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

// Why a change of the owner alone applies all that we hold.
func TestApplyOfTheOwnerAloneEmptiesData(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	e.writes(o.wants("db", "a", "1"))
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
		"AfterCreate": {reason: "The entry of the POST is folded first.", foreign: func(*env) {}},
		"AfterApply":  {reason: "What was applied is applied again.", applied: true, foreign: func(*env) {}},
		"Foreign": {
			reason: "What others wrote is kept.",
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
			reason: "However they wrote it, and what we hold with them.",
			foreign: func(e *env) {
				e.mustApply("db", "flux", map[string]any{
					"data":     bytesOf("theirs", "x", "a", "1"),
					"metadata": map[string]any{"labels": map[string]string{"theirs": "x"}, "annotations": map[string]string{"theirs": "x"}},
				})
			},
		},
		"ForeignOwnerThatNobodyHolds": {
			reason: "Also where managedFields do not say that they did.",
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
			reason: "Also of a Secret whose data cannot change any more.",
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

			// Without values, as the loop calls it.
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

			// What was ours is ours still: it goes when we say so.
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

// plain returns a Secret without what each write changes.
func plain(s *corev1.Secret) *corev1.Secret {
	s = s.DeepCopy()
	s.ResourceVersion, s.ManagedFields = "", nil
	for k := range target.Marks(s.Annotations) {
		delete(s.Annotations, target.MarkKey(k))
	}
	return s
}

// mark returns the mark of the object of the same name.
func (e *env) mark(name string) policy.Mark {
	e.Helper()
	return target.Marks(e.secret(name).Annotations)[name]
}

// The hash in the mark stays that of the values, so that the next refresh finds nothing new.
func TestOwnKeepsTheHash(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := o.wants("db", "a", "1", "empty", "")
	e.writes(d)
	s := e.owns(owned(o.wants("db"), o.reference(true)))
	if diff := cmp.Diff(created(d).Mark, target.Marks(s.Annotations)["db"]); diff != "" {
		t.Errorf("mark: -want, +got:\n%s", diff)
	}
}

// What drifted is left as it is, and is seen as drift still: the mark says what we wrote.
func TestOwnKeepsDrift(t *testing.T) {
	const storeLabel = "stores.direct-secrets.io/x"
	cases := map[string]struct {
		reason string
		drift  func(e *env)
		want   map[string]string
	}{
		"ValueUpdated": {
			"A value that somebody changed.",
			func(e *env) { e.updates("db", "kubectl", setData("a", "x")) },
			map[string]string{"a": "x", "b": "1"},
		},
		"ValueUpdatedAndBack": {
			"Also if it is ours again.",
			func(e *env) {
				e.updates("db", "kubectl", setData("a", "x"))
				e.updates("db", "kubectl", setData("a", "1"))
			},
			map[string]string{"a": "1", "b": "1"},
		},
		"ValueApplied": {
			"A value that a tool took by force.",
			func(e *env) { e.mustApply("db", "flux", data("a", "x")) },
			map[string]string{"a": "x", "b": "1"},
		},
		"KeyRemoved": {
			"A key that somebody removed.",
			func(e *env) { e.updates("db", "kubectl", func(s *corev1.Secret) { delete(s.Data, "a") }) },
			map[string]string{"b": "1"},
		},
		"DataRemoved": {
			"All of them.",
			func(e *env) { e.updates("db", "kubectl", func(s *corev1.Secret) { s.Data = nil }) },
			map[string]string{},
		},
		"KeyRemovedAndLabelToo": {
			"Our label comes back, for the watch; the key does not.",
			func(e *env) {
				e.updates("db", "kubectl", func(s *corev1.Secret) {
					delete(s.Data, "a")
					delete(s.Labels, target.ManagedLabel(module))
				})
			},
			map[string]string{"b": "1"},
		},
		"StoreLabelRemoved": {
			"The label of a store is known to whoever reads it.",
			func(e *env) { e.updates("db", "kubectl", func(s *corev1.Secret) { delete(s.Labels, storeLabel) }) },
			map[string]string{"a": "1", "b": "1"},
		},
		"ManagedFieldsReset": {
			"Whose the keys are is not known any more.",
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
					t.Errorf("\n%s\nnot put right by an Apply", tc.reason)
				}
			})
		}
	}
}

// Under which creationPolicy we wrote is a matter of the mark alone.
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
		{"Another store: the label of the former one goes.", map[string]string{managed: "true", second: "true"}, false,
			map[string]string{managed: "true", second: "true", "theirs": "x"}},
		{"A change of the owner keeps them.", map[string]string{managed: "true"}, true,
			map[string]string{managed: "true", second: "true", "theirs": "x"}},
		{"One store again.", map[string]string{managed: "true", first: "true"}, false,
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

// A value of no bytes is a value, whether it is nil or not.
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

// recorder keeps what was sent.
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

// stringData is write-only, and belongs to a field of its own in managedFields.
func TestStringDataIsNeverSent(t *testing.T) {
	e := newEnv(t)
	r := &recorder{}
	cfg := cluster.Config()
	cfg.ContentType = "application/json"
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { r.RoundTripper = rt; return r })
	e.w = target.NewWriter(e.clientOf(cfg))
	o := e.object("db")
	d := o.wants("db", "a", "1")
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
