package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A history is a change whose releases are rehearsed.
type history struct {
	subject string
	// files are patterns. The first match of each gets a comment.
	files []string
	// cut is true if the workflow is cancelled before the last tag, and started again.
	cut bool
}

// histories are a change of each sort that makes other releases.
var histories = []history{
	{subject: "Explain a page", files: []string{"docs/*.md"}},
	{subject: "Fix a provider", files: []string{"provider-*/main.go"}},
	{subject: "Change the schema of a provider", files: []string{"provider-*/manifests/crds/*.yaml"}, cut: true},
	{subject: "Fix common", files: []string{"common/*/*.go"}},
	{subject: "Change the schema of common", files: []string{"common/manifests/crds/*.yaml"}},
	{subject: "Change the notes of the umbrella chart", files: []string{"charts/direct-secrets/templates/NOTES.txt"}},
}

// comments have the forms of a comment by the extension of a file.
var comments = map[string]string{".go": "\n// %s\n", ".yaml": "# %s\n", ".txt": "{{- /* %s */ -}}\n", ".md": "\n<!-- %s -->\n"}

// A rehearser releases what is due in a copy of the repository.
type rehearser struct {
	repo
	out io.Writer
	// test is a command that must pass on each commit that CI tests; empty: none.
	test []string
	// publish publishes and tags the releases of a plan. If cut is true, it is cancelled once and started again.
	publish func(p plan, cut bool) error
}

// inCopy calls a function with a copy of a repository, in a folder that also has room for other files.
func inCopy(of repo, do func(r repo, folder string) error) error {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source, err := filepath.Abs(of.root)
	if err != nil {
		return err
	}
	r := repo{filepath.Join(folder, "copy")}
	if _, err := of.git("clone", "--quiet", source, r.root); err != nil {
		return err
	}
	if _, err := r.git("checkout", "--quiet", "-B", "main"); err != nil {
		return err
	}
	return do(r, folder)
}

// publishDue releases what is due in a copy, with a command instead of the workflow.
func publishDue(of repo, command []string, out io.Writer) error {
	return inCopy(of, func(r repo, _ string) error {
		return (&rehearser{repo: r, out: out, publish: r.commandThenTags(command, out)}).releases(false)
	})
}

// commandThenTags returns a publish function that runs a command and creates the tags.
func (r repo) commandThenTags(command []string, out io.Writer) func(plan, bool) error {
	return func(p plan, _ bool) error {
		if err := r.command(command, out); err != nil {
			return err
		}
		for _, release := range p.Releases {
			if _, err := r.git("tag", release.Tag); err != nil {
				return err
			}
		}
		return nil
	}
}

// rehearse releases what is due in a copy, and then each history. It moves modules to a new common as Renovate does, and runs
// the jobs of the workflow with stand-ins for the network. The command, if there is one, must pass on each commit that CI tests.
func rehearse(of repo, test []string, out io.Writer) error {
	return inCopy(of, func(r repo, folder string) error {
		// The output of the jobs is only printed if they fail.
		log, err := os.Create(filepath.Join(folder, "log"))
		if err != nil {
			return err
		}
		jobs, err := newRehearsal(r.root, folder, r, log)
		if err != nil {
			return err
		}
		publish := func(p plan, cut bool) error { return jobs.release(p, cut, out) }
		if err := (&rehearser{repo: r, out: out, test: test, publish: publish}).all(); err != nil {
			printed, _ := os.ReadFile(log.Name()) // The error of the rehearsal matters more.
			return errors.Join(err, log.Close(), fmt.Errorf("the jobs have printed:\n%s", printed))
		}
		return log.Close()
	})
}

// all releases what is due, and each history.
func (r *rehearser) all() error {
	if err := r.releases(false); err != nil {
		return err
	}
	for _, h := range histories {
		if err := r.change(h); err != nil {
			return fmt.Errorf("%s: %w", h.subject, err)
		}
		if _, err := fmt.Fprintf(r.out, "\n== %s\n", h.subject); err != nil {
			return err
		}
		if err := r.releases(h.cut); err != nil {
			return fmt.Errorf("%s: %w", h.subject, err)
		}
	}
	return nil
}

// change makes the change of a history and commits it.
func (r *rehearser) change(h history) error {
	for _, pattern := range h.files {
		found, err := filepath.Glob(filepath.Join(r.root, pattern))
		found = slices.DeleteFunc(found, func(f string) bool { return !shipped(f) && filepath.Ext(f) != ".md" })
		if err != nil || len(found) == 0 {
			return fmt.Errorf("no file matches %s: %w", pattern, err)
		}
		raw, err := os.ReadFile(found[0])
		if err != nil {
			return err
		}
		if err := os.WriteFile(found[0], fmt.Appendf(raw, comments[filepath.Ext(pattern)], h.subject), 0o644); err != nil {
			return err
		}
	}
	return r.commit(h.subject)
}

// releases releases until nothing is due.
func (r *rehearser) releases(cut bool) error {
	for step := 1; ; step++ {
		p, err := read(r.repo)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(r.out, "Step %d\n%s", step, p); err != nil {
			return err
		}
		if err := p.refusal(); err != nil {
			return err
		}
		if len(p.Releases) == 0 {
			return nil
		}
		if err := r.release(p, cut); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
}

// release makes the releases of a plan, and moves modules to a new common.
func (r *rehearser) release(p plan, cut bool) error {
	if err := write(r.root, p); err != nil {
		return err
	}
	if err := errors.Join(r.commit("Release"), r.passes("the commit of the release")); err != nil {
		return err
	}
	p, err := read(r.repo)
	if err != nil {
		return err
	}
	if err := check(p); err != nil {
		return err
	}
	if err := r.publish(p, cut && len(p.Releases) > 1); err != nil {
		return err
	}
	if p.Releases[0].Unit != "common" {
		return r.passes("the tagged commit")
	}
	if err := r.move(p.Releases[0].To); err != nil {
		return err
	}
	return r.passes("Renovate's change")
}

// passes runs the tests.
func (r *rehearser) passes(what string) error {
	if len(r.test) == 0 {
		return nil
	}
	if err := r.command(r.test, r.out); err != nil {
		return fmt.Errorf("%s does not pass: %w", what, err)
	}
	_, err := fmt.Fprintf(r.out, "%s passes\n", what)
	return err
}

// command runs a command in the repository.
func (r repo) command(command []string, out io.Writer) error {
	if len(command) == 0 {
		return nil
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, out, os.Stderr
	return cmd.Run()
}

// move makes the change of Renovate for a release of common: see renovate.json for the files.
func (r repo) move(common string) error {
	files, err := r.git("ls-files", "go.mod", "*/go.mod", "hack/newprovider/go.mod.tmpl", "charts/*/Chart.yaml")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(files) {
		if err := replace(filepath.Join(r.root, file), `(`+commonPath+` |direct-secrets\.io/common: )v\S+`, "${1}"+common); err != nil {
			return err
		}
	}
	return r.commit("Move to common " + common)
}

// commit commits all changes, if there are any.
func (r repo) commit(subject string) error {
	if _, err := r.git("add", "--all"); err != nil {
		return err
	}
	if _, err := r.git("diff", "--cached", "--quiet"); err == nil {
		return nil
	}
	_, err := r.git("-c", "user.name=release", "-c", "user.email=release@example.com", "commit", "--quiet", "--message", subject)
	return err
}
