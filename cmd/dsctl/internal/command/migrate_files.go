package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/direct-secrets/direct-secrets/migrate"
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// file is a source of migrate.
type file struct {
	migrate.Source

	// out is the name of the converted file below --out.
	out string
}

// readSources reads files, and the manifests of folders.
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
		raw, err := o.readFile(name)
		if err != nil {
			return nil, err
		}
		out := filepath.Base(name)
		if name == "-" {
			out = "stdin.yaml"
		}
		all = append(all, file{migrate.Source{Name: name, Content: raw, Chart: chartOf(name)}, out})
	}
	return all, nil
}

// readFolder reads the manifests below a folder, and the files by which Kustomize knows its folders.
func readFolder(name string) ([]file, error) {
	var all []file
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular() || !isManifest(path):
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out, err := filepath.Rel(name, path)
		all = append(all, file{migrate.Source{Name: path, Content: raw, Chart: chartOf(path)}, out})
		return err
	})
	return all, err
}

// chartOf returns the folder of the chart of Helm whose template a file is; "" if it is none.
func chartOf(path string) string {
	for dir := filepath.Dir(path); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "Chart.yaml")); err == nil && filepath.Base(dir) == "templates" {
			return filepath.Dir(dir)
		}
	}
	return ""
}

// isManifest reports whether a file can hold manifests, by its name.
func isManifest(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) || filepath.Base(path) == "Kustomization"
}

// writeResult writes the files, the values and the report to where the flags say.
func (o *options) writeResult(m *migration, files []file, result migrate.Result) error {
	if err := checkOutputs(m, files); err != nil {
		return err
	}
	if err := o.writeFiles(m, files, result.Files); err != nil {
		return err
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

// writeFiles writes converted files in place, below a folder, or to standard output; or it prints what would change.
func (o *options) writeFiles(m *migration, files []file, converted []migrate.Source) error {
	for i, f := range converted {
		content := f.Content
		if m.out == "" && !m.inPlace && len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
			content = append(bytes.Clone(content), '\n') // Another document can follow.
		}
		var err error
		switch {
		case m.dryRun:
			if text := diff.Diff("a/"+f.Name, files[i].Content, "b/"+f.Name, content); len(text) > 0 {
				err = o.out.Lines(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
			}
		case m.inPlace:
			if !bytes.Equal(files[i].Content, content) {
				err = replaceFile(f.Name, content)
			}
		case m.out != "":
			err = writeNew(filepath.Join(m.out, files[i].out), content)
		case i > 0:
			err = o.out.Manifest(append([]byte("---\n"), content...))
		default:
			err = o.out.Manifest(content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceFile replaces the content of a file at once, and keeps its mode.
func replaceFile(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	to, err := os.CreateTemp(filepath.Dir(name), ".dsctl-*")
	if err != nil {
		return err
	}
	_, err = to.Write(content)
	if err = errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
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
	case "wide":
		return to.Lines(r.Wide())
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
