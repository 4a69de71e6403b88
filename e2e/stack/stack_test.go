package stack

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason, log string
		want        bool
	}{
		"None":      {"An ordinary log line is not a fault.", `{"level":"INFO","msg":"panic: is a word"}` + "\n", false},
		"Race":      {"A report of the race detector is a fault.", "{}\n==================\nWARNING: DATA RACE\nWrite at\n", true},
		"Panic":     {"A panic that ended a module is a fault.", "{}\npanic: runtime error: index out of range\n", true},
		"Fatal":     {"A fatal error of the runtime is a fault.", "fatal error: concurrent map writes\n", true},
		"Recovered": {"A panic after which a controller continued is a fault.", `{"msg":"Reconciler error","error":"panic: boom [recovered]"}` + "\n", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "provider-aws-1.log"), []byte(tc.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := (&Stack{dir: dir}).faults(); (err != nil) != tc.want {
				t.Errorf("%s faults() = %v", tc.reason, err)
			}
		})
	}
}
