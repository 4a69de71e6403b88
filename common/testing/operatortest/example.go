package operatortest

import (
	"io/fs"
	"path"
	"testing"
)

// Example returns a file of the examples that a module embeds.
func Example(t testing.TB, examples fs.FS, name string) []byte {
	t.Helper()
	raw, err := fs.ReadFile(examples, path.Join("examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
