package restart

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const oneDeployment = `{"metadata": {"name": "app", "uid": "u"}, "spec": {"template": {"spec": {"containers": [{"envFrom": [{"secretRef": {"name": "db"}}]}]}}}}`

func TestReadList(t *testing.T) {
	t.Parallel()
	type want struct {
		Next  string
		Items []string
		Error string
	}
	cases := map[string]struct {
		reason, text string
		want         want
	}{
		"Page":      {"A page has the token of the next one.", `{"kind": "List", "metadata": {"continue": "x"}, "items": [{"a": 1}, {"b": [2]}]}`, want{"x", []string{`{"a": 1}`, `{"b": [2]}`}, ""}},
		"Unordered": {"A custom resource has its metadata after the items.", `{"items": [{}], "kind": "List", "metadata": {"continue": "x"}}`, want{"x", []string{"{}"}, ""}},
		"Empty":     {"There are no workloads.", `{"metadata": {}, "items": []}`, want{}},
		"Null":      {"A list without items is empty.", `{"metadata": {}, "items": null}`, want{}},
		"Cut":       {"An item is missing.", `{"metadata": {}, "items": [{},`, want{"", []string{"{}"}, "EOF"}},
		"CutAfter":  {"The metadata can be missing.", `{"items": [{}]`, want{"", []string{"{}"}, "unexpected EOF"}},
		"NoItems":   {"A list has items.", `{"metadata": {}}`, want{"", nil, "not a list"}},
		"NoMeta":    {"A list has metadata, which tell whether it is complete.", `{"items": []}`, want{"", nil, "not a list"}},
		"Items":     {"Items are a list.", `{"metadata": {}, "items": {}}`, want{"", nil, "want a list"}},
		"Text":      {"An answer of a proxy is not a list.", `<html>`, want{"", nil, "invalid character"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got want
			next, err := ReadList(strings.NewReader(tc.text), func(raw []byte) { got.Items = append(got.Items, string(raw)) })
			if got.Next = next; err != nil && tc.want.Error != "" && strings.Contains(err.Error(), tc.want.Error) {
				got.Error = tc.want.Error
			} else if err != nil {
				got.Error = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadListCut cuts a list after each of its bytes. It never counts as complete.
func TestReadListCut(t *testing.T) {
	t.Parallel()
	text := `{"metadata":{"continue":""},"items":[` + oneDeployment + `,` + oneDeployment + `],"kind":"DeploymentList"}`
	for i := range text {
		if _, err := ReadList(strings.NewReader(text[:i]), func([]byte) {}); err == nil {
			t.Errorf("ReadList(%s): no error", text[:i])
		}
	}
}

const (
	// large is the size of an object that etcd just stores.
	large = 1200 << 10
	// many is the number of such objects in a page.
	many = 120
)

// fill returns a text of a size.
func fill(piece string, size int) string { return strings.Repeat(piece, size/len(piece)) + piece }

// TestReadListMemory reads a page of large objects. Only one is in memory.
func TestReadListMemory(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	item := fmt.Sprintf(`{"metadata":{"name":"app","uid":"u","annotations":{"a":"%s"}},"spec":{"template":{"metadata":{"annotations":{"%s":"s.1","a":"b"}},"spec":{"containers":[{"envFrom":[{"secretRef":{"name":"db"}},{"secretRef":{"name":"other"}}]}]}}}}`,
		fill("x", large), Key("db"))
	parts := []io.Reader{strings.NewReader(`{"metadata":{},"items":[` + item)}
	for range many - 1 {
		parts = append(parts, strings.NewReader(","), strings.NewReader(item))
	}
	list := io.MultiReader(append(parts, strings.NewReader(`]}`))...)
	targets := TargetsOf([]*Object{object("s.1", nil)})
	before, most := heap(), uint64(0)
	var all []Workload
	if _, err := ReadList(list, func(raw []byte) {
		w, err := Parse(v1alpha1.WorkloadDeployment, raw, targets)
		if err != nil {
			t.Error(err)
		}
		all = append(all, w)
		most = max(most, heap())
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != many || !cmp.Equal(all[0].uses, Uses{Secrets: []string{"db"}}) || all[many-1].Annotations[Key("db")] != "s.1" {
		t.Errorf("got %d workloads, the first one is %+v; want %d, with their use and annotation of db", len(all), all[0], many)
	}
	t.Logf("%d KiB are in memory at most", (most-min(most, before))>>10)
	if most > before+8<<20 {
		t.Errorf("%d KiB are in memory, want at most 8 MiB for a page of %d MiB", (most-before)>>10, many*large>>20)
	}
	runtime.KeepAlive(item)
}

// heap returns the number of bytes that are in memory.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestParseMemory parses objects whose text is much shorter than what it decodes to.
func TestParseMemory(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	list := func(piece string) string { return "[" + fill(piece+",", large/4) + piece + "]" }
	cases := map[string]struct{ reason, object string }{
		"Containers":  {"A container has 500 bytes.", `{"spec":{"template":{"spec":{"containers":` + list("{}") + `}}}}`},
		"Volumes":     {"A volume has 250 bytes.", `{"spec":{"template":{"spec":{"volumes":` + list("{}") + `}}}}`},
		"Sources":     {"A source has 40 bytes.", `{"spec":{"template":{"spec":{"volumes":[{"projected":{"sources":` + list("{}") + `}}]}}}}`},
		"Environment": {"A variable has 40 bytes.", `{"spec":{"template":{"spec":{"containers":[{"env":` + list("{}") + `}]}}}}`},
		"Uses":        {"A use that is repeated is kept once.", `{"spec":{"template":{"spec":{"containers":[{"envFrom":` + list(`{"secretRef":{"name":"db"}}`) + `}]}}}}`},
		"Other":       {"Uses of other Secrets are not kept.", `{"spec":{"template":{"spec":{"containers":[{"envFrom":` + list(`{"secretRef":{"name":"a"}}`) + `}]}}}}`},
		"Annotations": {"An entry of a map has 100 bytes.", `{"spec":{"template":{"metadata":{"annotations":{` + fill(`"a":"",`, large/4) + `"a":""}}}}}`},
		"Own":         {"An annotation that is longer than a hash is not kept.", `{"spec":{"template":{"metadata":{"annotations":{"` + Key("db") + `":"` + fill("x", large/4) + `"}}}}}`},
		"Conditions":  {"A condition has 16 bytes.", `{"status":{"conditions":` + list("{}") + `}}`},
		"Managers":    {"A manager of fields has 100 bytes.", `{"metadata":{"managedFields":` + list("{}") + `}}`},
	}
	targets := TargetsOf([]*Object{object("s.1", nil)})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			raw := []byte(tc.object)
			runtime.ReadMemStats(&before)
			w, err := Parse(v1alpha1.WorkloadDeployment, raw, targets)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("%s Parse() allocated %d KiB for %d KiB, want at most 1 MiB", tc.reason, used>>10, len(raw)>>10)
			}
			kept := heap()
			runtime.KeepAlive(w) // It is garbage from here on.
			if left := heap(); kept > left+64<<10 {
				t.Errorf("%s The workload keeps %d KiB, want at most 64", tc.reason, (kept-left)>>10)
			}
		})
	}
}
