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
		"None":      {"What a module says of itself is none.", `{"level":"INFO","msg":"panic: is a word"}` + "\n", false},
		"Race":      {"What the race detector prints.", "{}\n==================\nWARNING: DATA RACE\nWrite at\n", true},
		"Panic":     {"A module ended by it.", "{}\npanic: runtime error: index out of range\n", true},
		"Fatal":     {"So does what the runtime does not survive.", "fatal error: concurrent map writes\n", true},
		"Recovered": {"A loop went on after a panic.", `{"msg":"Reconciler error","error":"panic: boom [recovered]"}` + "\n", true},
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
