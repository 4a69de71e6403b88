package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// A version is a state of a Secret, or its deletion.
type version struct {
	UID     types.UID
	Deleted bool
	Mark    string
	By      generation
	Data    map[string]string
	Owners  []types.UID
}

func newVersion(s *corev1.Secret, deleted bool) version {
	m := inspect.Marks(s.Annotations)[s.Name]
	v := version{
		UID: s.UID, Deleted: deleted,
		Mark: s.Annotations[inspect.MarkKey(s.Name)], By: generation{m.UID, m.Generation},
		Data: map[string]string{},
	}
	for k, d := range s.Data {
		v.Data[k] = string(d)
	}
	for _, o := range s.OwnerReferences {
		v.Owners = append(v.Owners, o.UID)
	}
	return v
}

// differs returns how a version differs from an expectation. A foreign key is not part of any expectation.
func differs(v version, w expectation) string {
	type content struct {
		Data   map[string]string
		Owners []types.UID
	}
	want, got := content{w.data, w.owners()}, content{Data: maps.Clone(v.Data), Owners: v.Owners}
	delete(got.Data, foreignKey)
	return cmp.Diff(want, got)
}

// wrongs checks all versions of a Secret with one name. The marks never go back, even if the Secret is created
// again. Each version has the data of its mark, and no other operator's data. The user's edits stay, except in
// the operator's keys. There an edit may stay only as long as the operator writes no data.
func wrongs(history []version, expectations []expectation) []string {
	var found []string
	var before version
	var data map[string]string // data is the data that an operator wrote last.
	newest := 0
	for i, v := range history {
		if v.Deleted {
			before = version{}
			continue
		}
		wrong := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("version %d: %s\nwas: %+v\nis:  %+v", i, fmt.Sprintf(format, args...), before, v))
		}
		if before.Data[foreignKey] != "" && v.Data[foreignKey] != foreignValue {
			wrong("the foreign key was changed")
		}
		nth := slices.IndexFunc(expectations, func(w expectation) bool { return w.generation == v.By })
		if nth < 0 {
			wrong("the mark is unknown")
			continue
		}
		if nth < newest {
			wrong("back from wish %d to %d", newest, nth)
		}
		newest = max(newest, nth)
		// A change of the owner can precede a change of the data.
		ownerOnly := v.By != before.By && !slices.Equal(v.Owners, before.Owners) && maps.Equal(v.Data, before.Data)
		same := v.Mark == before.Mark || ownerOnly
		if !same {
			data = expectations[nth].data
		}
		w := expectation{generation: v.By, data: maps.Clone(data), owned: expectations[nth].owned}
		if e := v.Data[ownKey]; same && strings.HasPrefix(e, edited) {
			w.data[ownKey] = e
		}
		if d := differs(v, w); d != "" {
			wrong("not what wish %d asks for: -want, +got:\n%s", nth, d)
		}
		before = v
	}
	return found
}

// TestWrongs checks that wrongs finds errors, and nothing else.
func TestWrongs(t *testing.T) {
	expectations := []expectation{
		{generation: generation{"one", 1}, data: map[string]string{"value": "1", "key-1": "1"}},
		{generation: generation{"one", 2}, data: map[string]string{"value": "2", "key-2": "2"}, owned: true},
		{generation: generation{"two", 1}, data: map[string]string{"value": "3", "key-3": "3"}},
	}
	// is returns a version that matches an expectation, changed by pairs of key and value.
	is := func(n int, changed ...string) version {
		v := version{UID: "secret", Mark: fmt.Sprint(n), By: expectations[n].generation, Data: maps.Clone(expectations[n].data), Owners: expectations[n].owners()}
		for ; len(changed) > 0; changed = changed[2:] {
			v.Data[changed[0]] = changed[1]
		}
		return v
	}
	with := func(v version, change func(*version)) version {
		change(&v)
		return v
	}
	deleted := version{UID: "secret", Deleted: true}
	edit := edited + "1"
	cases := map[string]struct {
		reason  string
		history []version
		want    []string
	}{
		"Right":               {"every wish is fulfilled in turn", []version{is(0), is(1), is(2)}, nil},
		"Skipped":             {"a wish can be skipped", []version{is(0), is(2)}, nil},
		"OlderGeneration":     {"an earlier generation is written again", []version{is(1), is(0)}, []string{"version 1: back from wish 1 to 0"}},
		"OlderUID":            {"an earlier object is written again", []version{is(2), is(1)}, []string{"version 1: back from wish 2 to 1"}},
		"OlderRecreated":      {"an earlier generation is written to a new Secret", []version{is(2), deleted, is(1)}, []string{"version 2: back from wish 2 to 1"}},
		"UnknownMark":         {"a mark is unknown", []version{with(is(0), func(v *version) { v.By.Number = 7 })}, []string{"version 0: the mark is unknown"}},
		"Leftover":            {"a key of the previous generation is left", []version{is(0), is(1, "key-1", "1")}, []string{"version 1: not what wish 1 asks for"}},
		"HalfFilled":          {"a key is missing", []version{with(is(0), func(v *version) { delete(v.Data, "key-1") })}, []string{"version 0: not what wish 0 asks for"}},
		"Owner":               {"the owner is missing", []version{with(is(1), func(v *version) { v.Owners = nil })}, []string{"version 0: not what wish 1 asks for"}},
		"OwnerFirst":          {"the owner can change before the data", []version{is(0), is(0, "value", edit), with(is(1), func(v *version) { v.Data = is(0, "value", edit).Data })}, nil},
		"Edited":              {"a user edits a key, and an operator repairs it", []version{is(0), is(0, "value", edit), is(0)}, nil},
		"EditKept":            {"an operator writes data, but keeps an edit", []version{is(0), is(0, "value", edit), is(1, "value", edit)}, []string{"version 2: not what wish 1 asks for"}},
		"EditedOther":         {"an operator writes other data", []version{is(0), is(0, "value", "3")}, []string{"version 1: not what wish 0 asks for"}},
		"ForeignKey":          {"the user's own key stays", []version{is(0), is(0, foreignKey, foreignValue), is(1, foreignKey, foreignValue)}, nil},
		"ForeignKeyLost":      {"the user's own key is deleted", []version{is(0, foreignKey, foreignValue), is(1)}, []string{"version 1: the foreign key was changed"}},
		"ForeignKeyChanged":   {"the user's own key is overwritten", []version{is(0, foreignKey, foreignValue), is(1, foreignKey, "2")}, []string{"version 1: the foreign key was changed"}},
		"ForeignKeyRecreated": {"the user's own key is deleted with its Secret", []version{is(0, foreignKey, foreignValue), deleted, is(1)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range wrongs(tc.history, expectations) {
				line, _, _ := strings.Cut(w, "\n")
				line, _, _ = strings.Cut(line, ": -want")
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A history holds all versions of the Secrets of a namespace, and the generations that the statuses of its
// ExternalSecrets described.
type history struct {
	mu       sync.Mutex
	secrets  map[string][]version
	observed map[string][]generation
	changed  chan struct{}
	err      error
}

// record records a history until the test ends.
func record(t *testing.T, namespace string) *history {
	t.Helper()
	clients, err := dynamic.NewForConfig(shared.Config())
	must(t, err)
	h := &history{secrets: map[string][]version{}, observed: map[string][]generation{}, changed: make(chan struct{})}
	for _, resource := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("secrets"),
		v1alpha1.GroupVersion.WithResource("externalsecrets"),
	} {
		objects := clients.Resource(resource).Namespace(namespace)
		list, err := objects.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return objects.Watch(ctx, o) },
		})
		must(t, err)
		go func() {
			for e := range w.ResultChan() {
				h.add(e)
			}
		}()
	}
	return h
}

func (h *history) add(e watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.note(e); err != nil {
		h.err = err
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) note(e watch.Event) error {
	o, ok := e.Object.(*unstructured.Unstructured)
	if e.Type == watch.Error || !ok {
		return fmt.Errorf("the history has a gap: %+v", e.Object)
	}
	if o.GetKind() == "Secret" {
		s := &corev1.Secret{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s)
		h.secrets[s.Name] = append(h.secrets[s.Name], newVersion(s, e.Type == watch.Deleted))
		return err
	}
	n, _, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	h.observed[o.GetName()] = append(h.observed[o.GetName()], generation{o.GetUID(), n})
	return err
}

func (h *history) of(secret string) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.secrets[secret])
}

// regressions returns where a status describes an earlier generation again.
func (h *history) regressions(object string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []string
	for i, is := range h.observed[object] {
		if i == 0 {
			continue
		}
		if was := h.observed[object][i-1]; was.UID == is.UID && was.Number > is.Number {
			found = append(found, fmt.Sprintf("the status went back from generation %d to %d", was.Number, is.Number))
		}
	}
	return found
}

// until waits until ok returns true for the last version of a Secret.
func (h *history) until(ctx context.Context, secret, what string, ok func(version) bool) error {
	return h.wait(ctx, func() string {
		var last version
		if all := h.secrets[secret]; len(all) > 0 {
			last = all[len(all)-1]
		}
		if ok(last) {
			return ""
		}
		return fmt.Sprintf("the Secret never %s, but is %+v", what, last)
	})
}

// untilObserved waits until the status of an ExternalSecret describes a generation.
func (h *history) untilObserved(ctx context.Context, object string, want generation) error {
	return h.wait(ctx, func() string {
		if all := h.observed[object]; len(all) > 0 && all[len(all)-1] == want {
			return ""
		}
		return fmt.Sprintf("the status never describes %+v, but %+v", want, h.observed[object])
	})
}

// wait waits until missing, which may read the history, returns an empty string.
func (h *history) wait(ctx context.Context, missing func() string) error {
	deadline := time.After(waitTimeout)
	for {
		h.mu.Lock()
		what, changed, err := missing(), h.changed, h.err
		h.mu.Unlock()
		if err != nil || what == "" {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return errors.New(what)
		}
	}
}
