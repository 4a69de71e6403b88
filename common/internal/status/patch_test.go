package status

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// resource is the name of ExternalSecrets in errors of the API server.
var resource = schema.GroupResource{Group: v1alpha1.Group, Resource: "externalsecrets"}

func TestDifference(t *testing.T) {
	type status = v1alpha1.ExternalSecretStatus
	base := status{ObservedGeneration: 1, ObservedRefreshRequest: "r", Binding: &v1alpha1.Binding{Name: "db"}, Difference: &v1alpha1.Difference{Exists: true, Type: "x"}, Parts: []v1alpha1.PartStatus{{Module: "gcp"}}}
	cases := map[string]struct {
		reason string
		change func(*status)
		want   string
	}{
		"Nothing":  {"Equal fields are not sent.", func(*status) {}, `{}`},
		"Changed":  {"Only changed fields are sent, so that unknown fields and those of other owners are kept.", func(s *status) { s.ObservedGeneration = 2 }, `{"observedGeneration":2}`},
		"Added":    {"A new field is sent.", func(s *status) { s.Sources = []v1alpha1.SourceStatus{{Key: "a"}} }, `{"sources":[{"key":"a"}]}`},
		"Removed":  {"A removed field is sent as null.", func(s *status) { s.ObservedRefreshRequest, s.Binding = "", nil }, `{"binding":null,"observedRefreshRequest":null}`},
		"Nested":   {"A field that is removed within another one is sent as null.", func(s *status) { s.Difference = &v1alpha1.Difference{Exists: true} }, `{"difference":{"type":null}}`},
		"NotParts": {"Entries of other modules are not sent.", func(s *status) { s.Binding.Name = "x" }, `{"binding":{"name":"x"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := base.DeepCopy()
			tc.change(next)
			diff, err := difference(&base, next, []string{"parts"})
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(diff)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(body)); diff != "" {
				t.Errorf("\n%s\ndifference(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPatch writes a status to an API server that answers each patch with the next error.
func TestPatch(t *testing.T) {
	conflict := kerrors.NewConflict(resource, "db", errBoom)
	notFound := kerrors.NewNotFound(resource, "db")
	type args struct {
		// next is the status to write; nil for the unchanged status.
		next    *v1alpha1.ExternalSecretStatus
		answers []error
		live    *v1alpha1.ExternalSecret
		getErr  error
	}
	type want struct {
		// Patches are the bodies of the requests.
		Patches []string
		// Written is the resourceVersion of the written object; empty if none was written.
		Written string
		Err     error
	}
	next := &v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "InvalidSpec", Message: "m"}}}
	body := func(version, status string) string {
		return `{"metadata":{"resourceVersion":"` + version + `"},"status":` + status + `}`
	}
	const full = `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}],"observedGeneration":2}`
	live := func(uid string) *v1alpha1.ExternalSecret {
		es := &v1alpha1.ExternalSecret{}
		es.UID, es.ResourceVersion, es.Status.ObservedGeneration = "uid", "9", 2
		if uid != "" {
			es.UID = "other"
		}
		return es
	}
	changed := live("")
	changed.Generation = 3
	refreshed := live("")
	refreshed.Status.RefreshTime = &metav1.Time{Time: time.Unix(1, 0)}

	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"Same":            {"An unchanged status is not written.", args{}, want{}},
		"Written":         {"A changed status is one patch, guarded by the version of the object.", args{next: next, answers: []error{nil}}, want{Patches: []string{body("5", full)}, Written: "10"}},
		"Conflict":        {"After a conflict, the object is read live and the difference from its status is written.", args{next: next, answers: []error{conflict, nil}, live: live("")}, want{Patches: []string{body("5", full), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`)}, Written: "10"}},
		"ConflictTwice":   {"After a second conflict, it is read and written again.", args{next: next, answers: []error{conflict, conflict, nil}, live: live("")}, want{Patches: []string{body("5", full), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`)}, Written: "10"}},
		"ConflictOther":   {"The status of another incarnation is not written.", args{next: next, answers: []error{conflict}, live: live("other")}, want{Patches: []string{body("5", full)}}},
		"ConflictSpec":    {"The result for an old spec is not written after a change of the spec.", args{next: next, answers: []error{conflict}, live: changed}, want{Patches: []string{body("5", full)}}},
		"ConflictDeleted": {"A deleted object needs no status.", args{next: next, answers: []error{conflict}, getErr: notFound}, want{Patches: []string{body("5", full)}}},
		"ConflictUnread":  {"If the object cannot be read after a conflict, that is an error.", args{next: next, answers: []error{conflict}, getErr: errBoom}, want{Patches: []string{body("5", full)}, Err: errBoom}},
		"Overtaken":       {"The status is not written if another operator has refreshed the object.", args{next: next, answers: []error{conflict}, live: refreshed}, want{Patches: []string{body("5", full)}, Err: ErrOvertaken}},
		"Deleted":         {"A deleted object needs no status.", args{next: next, answers: []error{notFound}}, want{Patches: []string{body("5", full)}}},
		"Refused":         {"Any other answer is an error.", args{next: next, answers: []error{errBoom}}, want{Patches: []string{body("5", full)}, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			answers := tc.args.answers
			c := &test.MockClient{
				MockStatusPatch: func(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					got.Patches = append(got.Patches, string(data))
					err, answers = answers[0], answers[1:]
					obj.SetResourceVersion("10")
					return err
				},
				MockGet: func(_ context.Context, _ client.ObjectKey, obj client.Object) error {
					if tc.args.live != nil {
						tc.args.live.DeepCopyInto(obj.(*v1alpha1.ExternalSecret))
					}
					return tc.args.getErr
				},
			}
			es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", ResourceVersion: "5"}}
			st := tc.args.next
			if st == nil {
				st = &v1alpha1.ExternalSecretStatus{}
			}
			k := Kind[*v1alpha1.ExternalSecret, v1alpha1.ExternalSecretStatus]{
				New:       func() *v1alpha1.ExternalSecret { return &v1alpha1.ExternalSecret{} },
				Status:    func(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus { return &es.Status },
				Overtaken: func(seen, live *v1alpha1.ExternalSecretStatus) bool { return seen.RefreshTime != live.RefreshTime },
			}
			out, written, err := k.Patch(t.Context(), c, es, es.ResourceVersion, &es.Status, st)
			if got.Err = err; written {
				got.Written = out.ResourceVersion
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nPatch(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownFieldsSurvive writes an object whose status has fields of a later version, which this version does not
// know. The object is read, changed and patched; the API server merges the patch.
func TestUnknownFieldsSurvive(t *testing.T) {
	const later = `{"binding":{"name":"db","ofTheFuture":1},"observedGeneration":1,"observedRefreshRequest":"r","ofTheFuture":{"a":1}}`
	stored := map[string]any{}
	seen := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", ResourceVersion: "5"}}
	for _, into := range []any{&stored, &seen.Status} {
		if err := json.Unmarshal([]byte(later), into); err != nil {
			t.Fatal(err)
		}
	}
	c := &test.MockClient{MockStatusPatch: func(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
		if diff := cmp.Diff(types.MergePatchType, patch.Type()); diff != "" {
			t.Fatalf("type of the patch: -want, +got:\n%s", diff)
		}
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		var sent struct{ Status map[string]any }
		if err := json.Unmarshal(data, &sent); err != nil {
			return err
		}
		mergePatch(stored, sent.Status)
		return nil
	}}
	next := seen.Status.DeepCopy()
	next.ObservedGeneration, next.ObservedRefreshRequest, next.Binding.Name = 2, "", "other"
	k := Kind[*v1alpha1.ExternalSecret, v1alpha1.ExternalSecretStatus]{
		New:    func() *v1alpha1.ExternalSecret { return &v1alpha1.ExternalSecret{} },
		Status: func(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus { return &es.Status },
	}
	if _, _, err := k.Patch(t.Context(), c, seen, seen.ResourceVersion, &seen.Status, next); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"binding": map[string]any{"name": "other", "ofTheFuture": 1.0}, "observedGeneration": 2.0, "ofTheFuture": map[string]any{"a": 1.0},
	}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("Patch(): touches a field that this version does not know: -want, +got:\n%s", diff)
	}
}

// mergePatch applies a merge patch to an object, as in RFC 7386.
func mergePatch(into, patch map[string]any) {
	for name, v := range patch {
		change, isObject := v.(map[string]any)
		switch {
		case v == nil:
			delete(into, name)
		case isObject:
			child, ok := into[name].(map[string]any)
			if !ok {
				child = map[string]any{}
			}
			mergePatch(child, change)
			into[name] = child
		default:
			into[name] = v
		}
	}
}

// TestApply applies one field to an API server that answers as specified.
func TestApply(t *testing.T) {
	type want struct {
		Versions []string
		Written  bool
		Err      error
	}
	conflict := kerrors.NewConflict(resource, "db", errBoom)
	cases := map[string]struct {
		reason  string
		answers []error
		// live is the uid of the object that is read after a conflict, getErr the error of that read.
		live   types.UID
		getErr error
		want   want
		// changed is true if the fields of the caller have changed meanwhile.
		changed bool
	}{
		"Changed":  {reason: "Fields that another process has written are not replaced.", answers: []error{conflict}, live: "uid", want: want{[]string{"5"}, false, conflict}, changed: true},
		"Applied":  {"The fields are applied to the seen object.", []error{nil}, "", nil, want{[]string{"5"}, true, nil}, false},
		"Conflict": {"After a conflict, the fields are applied to the live object.", []error{conflict, nil}, "uid", nil, want{[]string{"5", "9"}, true, nil}, false},
		"Other":    {"The status of another incarnation is not written.", []error{conflict}, "other", nil, want{Versions: []string{"5"}}, false},
		"Deleted":  {"An object that was deleted after a conflict needs no status.", []error{conflict}, "", kerrors.NewNotFound(resource, "db"), want{Versions: []string{"5"}}, false},
		"Unread":   {"If the object cannot be read after a conflict, that is an error.", []error{conflict}, "", errBoom, want{[]string{"5"}, false, errBoom}, false},
		"NotFound": {"A deleted object needs no status.", []error{kerrors.NewNotFound(resource, "db")}, "", nil, want{Versions: []string{"5"}}, false},
		"Refused":  {"Any other answer is an error.", []error{errBoom}, "", nil, want{[]string{"5"}, false, errBoom}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			c := &test.MockClient{
				MockStatusPatch: func(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					sent := &v1alpha1.PushSecret{}
					if err := json.Unmarshal(data, sent); err != nil {
						return err
					}
					got.Versions = append(got.Versions, sent.ResourceVersion)
					return tc.answers[len(got.Versions)-1]
				},
				MockGet: func(_ context.Context, _ client.ObjectKey, obj client.Object) error {
					obj.SetUID(tc.live)
					obj.SetResourceVersion("9")
					return tc.getErr
				},
			}
			o := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", ResourceVersion: "5"}}
			got.Written, got.Err = Apply(t.Context(), c, "PushSecret", o, "m", map[string]any{"stores": []any{}}, &v1alpha1.PushSecret{}, func() bool { return !tc.changed })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nApply(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
