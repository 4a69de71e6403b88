package restart

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestNamesOfTargets holds the workloads of a namespace of which each uses all targets. They are in memory while they restart.
func TestNamesOfTargets(t *testing.T) {
	const targets, workloads = 500, 300
	all, uses := Targets{map[string]string{}, map[string]string{}}, make([]string, targets)
	for i := range uses {
		name := fmt.Sprintf("%0253d", i)
		all.add(name)
		uses[i] = fmt.Sprintf(`{"secretRef":{"name":%q}}`, name)
	}
	raw := []byte(`{"metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"envFrom":[` + strings.Join(uses, ",") + `]}]}}}}`)
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	list := make([]Workload, workloads)
	for i := range list {
		var err error
		if list[i], err = Parse(v1alpha1.WorkloadDeployment, raw, all); err != nil {
			t.Fatal(err)
		}
	}
	if kib := (held() - before) >> 10; kib > 8<<10 {
		t.Errorf("%d workloads of %d KiB that use %d targets take %d KiB, want at most 8 MiB", workloads, len(raw)>>10, targets, kib)
	}
	runtime.KeepAlive(list)
}
