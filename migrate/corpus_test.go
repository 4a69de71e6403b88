package migrate

import (
	"bytes"
	"cmp"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/migrate/output"
)

var update = flag.Bool("update", false, "write the golden files")

// corpusRole is the role that the corpus is given for a ServiceAccount that no manifest has.
const corpusRole = "arn:aws:iam::111122223333:role/flag"

// corpusOptions are those with which the corpus is converted.
func corpusOptions() Options {
	return Options{
		Namespace: "default", Roles: map[string]string{"shop/flagged": corpusRole}, Accounts: map[string]string{"shop/flagged": "flagged"}, GKECluster: "projects/shop-prod/locations/europe-west3/clusters/main",
	}
}

// corpus returns the manifests below testdata.
func corpus(t testing.TB) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("testdata/corpus", func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		base := strings.TrimSuffix(path, ext)
		if err == nil && !d.IsDir() && (ext == ".yaml" || ext == ".json") && filepath.Ext(base) != ".out" && filepath.Ext(base) != ".values" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func corpusFile(path string) ([]byte, error) { return os.ReadFile(path) }

// converted converts one manifest of the corpus.
func converted(t testing.TB, path string) Result {
	t.Helper()
	raw, err := corpusFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Convert([]Source{{Name: filepath.Base(path), Content: raw}}, corpusOptions())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}

// TestCorpus holds what becomes of each manifest, the report and the values to golden files. They were compared with the
// source of External Secrets Operator; read each difference before you write them with -update.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files := corpus(t)
	if len(files) < 150 {
		t.Errorf("the corpus has %d manifests, fewer than 150", len(files))
	}
	for _, path := range files {
		t.Run(strings.TrimPrefix(path, "testdata/corpus/"), func(t *testing.T) {
			t.Parallel()
			r := converted(t, path)
			var report bytes.Buffer
			if err := output.New(&report).Lines(r.Report.Wide()); err != nil {
				t.Fatal(err)
			}
			report.WriteString("\n")
			for _, o := range r.Report.Objects {
				for _, f := range o.Findings {
					if f.Verdict == Exact && f.Reason != "" {
						report.WriteString(o.Kind + " " + o.Name.Name + ": " + prefixed(cmp.Or(f.Field, f.To), ": ") + f.Reason + "\n")
					}
				}
			}
			if len(r.Values) > 0 {
				report.WriteString("\n" + string(r.Values))
			}
			base, ext := strings.TrimSuffix(path, filepath.Ext(path)), filepath.Ext(path)
			golden(t, base+".out"+ext, r.Files[0].Content)
			golden(t, base+".report.txt", report.Bytes())
		})
	}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", path, diff)
	}
}

// TestTwice converts what the corpus became once more, which changes nothing.
func TestTwice(t *testing.T) {
	t.Parallel()
	for _, path := range corpus(t) {
		once := converted(t, path).Files
		twice, err := Convert(once, corpusOptions())
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(string(once[0].Content), string(twice.Files[0].Content)); diff != "" {
			t.Errorf("%s: -once, +twice:\n%s", path, diff)
		}
	}
}
