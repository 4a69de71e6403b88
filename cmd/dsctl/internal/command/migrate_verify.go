package command

import (
	"path/filepath"
	"strings"

	"github.com/direct-secrets/direct-secrets/migrate"
	"github.com/direct-secrets/direct-secrets/migrate/kustomize"
)

// verify builds each kustomization of the files before and after the conversion. Differences, and what cannot be built, are added to the
// report.
func verify(files []file, result *migrate.Result, options migrate.Options) error {
	before, after := map[string][]byte{}, map[string][]byte{}
	for i, f := range files {
		name, err := kustomize.Real(f.Name)
		if err != nil {
			continue // It is standard input.
		}
		before[name], after[name] = f.Content, result.Files[i].Content
		options.Context = append(options.Context, f.Source)
	}
	counts := &migrate.Verified{}
	result.Report.Verified = counts
	for _, f := range files {
		if !migrate.IsKustomization(filepath.ToSlash(f.Name)) || strings.Contains(string(f.Content), "kind: Component") {
			continue
		}
		counts.Kustomizations++
		dir := filepath.Dir(f.Name)
		note := migrate.Note{File: f.Name, Line: 1}
		was, err := kustomize.Build(dir, before)
		if err != nil {
			note.Reason, note.Todo = "the kustomization cannot be built: "+firstLine(err), "build it before and after the conversion, and compare"
			result.Report.Others = append(result.Report.Others, note)
			continue
		}
		is, err := kustomize.Build(dir, after)
		if err != nil {
			note.Reason, note.Todo = "the kustomization cannot be built after the conversion: "+firstLine(err), "correct it by hand"
			result.Report.Others = append(result.Report.Others, note)
			continue
		}
		differences, err := migrate.Compare(was, is, options)
		if err != nil {
			return err
		}
		if len(differences) == 0 {
			counts.Equal++
		}
		for _, d := range differences {
			note.Reason, note.Todo = "its build differs from a conversion of the former one: "+d, "change the files until it does not, or accept the difference"
			result.Report.Others = append(result.Report.Others, note)
		}
	}
	return nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
