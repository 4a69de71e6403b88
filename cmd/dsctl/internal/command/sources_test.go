package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// writes matches code that prints without the package output.
var writes = regexp.MustCompile(`fmt\.(Print|Fprint)|os\.Std(out|err)|io\.WriteString|\.(Out|ErrOut)\b|OrStd(out|err)`)

// allowed are the lines that pass streams to this package or to the demo, or show progress, which is cleaned.
var allowed = regexp.MustCompile(`output\.(New|Writer)\(|_, _ = fmt\.Fprint\(w, erase, text\)`)

// TestNothingElsePrints checks that no package of dsctl prints past the package output.
func TestNothingElsePrints(t *testing.T) {
	t.Parallel()
	files := 0
	check := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "/migrate/output") {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			if writes.MatchString(line) && !allowed.MatchString(line) {
				t.Errorf("%s prints without the package output: %s", path, strings.TrimSpace(line))
			}
		}
		return err
	}
	for _, folder := range []string{"..", "../../../../migrate"} {
		before := files
		if err := filepath.WalkDir(folder, check); err != nil || files == before {
			t.Errorf("%s: %d files: %v", folder, files-before, err)
		}
	}
}
