package command

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/migrate"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/output"
)

// file is a source of migrate.
type file struct {
	migrate.Source

	// out is the name of the converted file below --out.
	out string
}

// readSources reads files, and the manifests of folders. A chart or a kustomization is refused: it has to be rendered first.
func (o *options) readSources(names []string) ([]file, error) {
	var all []file
	for _, name := range names {
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			found, err := readFolder(name)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		if err := checkRendered(name); err != nil {
			return nil, err
		}
		raw, err := o.readFile(name)
		if err != nil {
			return nil, err
		}
		out := filepath.Base(name)
		if name == "-" {
			out = "stdin.yaml"
		}
		all = append(all, file{migrate.Source{Name: name, Content: raw}, out})
	}
	return all, nil
}

// readFolder reads the manifests below a folder.
func readFolder(name string) ([]file, error) {
	var all []file
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := checkRendered(path); err != nil {
			return err
		}
		if d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out, err := filepath.Rel(name, path)
		all = append(all, file{migrate.Source{Name: path, Content: raw}, out})
		return err
	})
	return all, err
}

// checkRendered refuses the files by which Helm and Kustomize know their folders.
func checkRendered(path string) error {
	switch filepath.Base(path) {
	case "Chart.yaml":
		return fmt.Errorf("%s is a chart: render it first, as with helm template", filepath.Dir(path))
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return fmt.Errorf("%s is a kustomization: render it first, as with kubectl kustomize", filepath.Dir(path))
	}
	return nil
}

// writeResult writes the files, the values and the report to where the flags say.
func (o *options) writeResult(m *migration, files []file, result migrate.Result) error {
	if err := checkOutputs(m, files); err != nil {
		return err
	}
	for i, f := range result.Files {
		content := f.Content
		if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
			content = append(bytes.Clone(content), '\n')
		}
		if m.out != "" {
			if err := writeNew(filepath.Join(m.out, files[i].out), content); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			content = append([]byte("---\n"), content...)
		}
		if err := o.out.Manifest(content); err != nil {
			return err
		}
	}
	if m.values != "" {
		if err := writeNew(m.values, result.Values); err != nil {
			return err
		}
	}
	if m.report == "" {
		return o.printReport(o.errs, result.Report)
	}
	var b bytes.Buffer
	if err := o.printReport(output.New(&b), result.Report); err != nil {
		return err
	}
	return writeNew(m.report, b.Bytes())
}

// checkOutputs refuses outputs that would take the place of each other, or of the originals.
func checkOutputs(m *migration, files []file) error {
	type output struct{ flag, of, path, instead string }
	var all []output
	for _, f := range files {
		if m.out != "" {
			all = append(all, output{"--out", f.Name, filepath.Join(m.out, f.out), "use another folder"})
		}
	}
	for _, o := range []output{{"--values", "the values", m.values, "use another file"}, {"--report", "the report", m.report, "use another file"}} {
		if o.path != "" {
			all = append(all, o)
		}
	}
	seen := map[string]string{}
	for _, o := range all {
		path := filepath.Clean(o.path)
		if other, found := seen[path]; found {
			return fmt.Errorf("%s: %s and %s would be the same file %s: %s, or convert them one after another", o.flag, other, o.of, path, o.instead)
		}
		seen[path] = o.of
		there, err := os.Stat(path)
		if err != nil {
			continue
		}
		for _, original := range files {
			if info, err := os.Stat(original.Name); err == nil && os.SameFile(info, there) {
				return fmt.Errorf("%s: %s is an original: %s", o.flag, path, o.instead)
			}
		}
	}
	return nil
}

func (o *options) printReport(to *output.Printer, r migrate.Report) error {
	switch o.format {
	case "json":
		return to.JSON(r)
	case "markdown":
		return to.Lines(r.Markdown())
	}
	return to.Lines(r.Text())
}

// writeNew writes a file and the folders above it.
func writeNew(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
