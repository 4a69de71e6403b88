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

	"sigs.k8s.io/yaml"
)

// A job is one of a workflow, with what runJob uses of it.
type job struct {
	Steps []struct {
		Uses string            `json:"uses"`
		With map[string]any    `json:"with"`
		Run  string            `json:"run"`
		Env  map[string]string `json:"env"`
	} `json:"steps"`
}

// A rehearsal runs jobs of the workflow "release" on this machine, with stand-ins for the network.
type rehearsal struct {
	// standins is a folder with the programs, and state the one in which they keep what is published.
	standins, state string
	// origin is the repository from which the jobs check out a commit, and in which they create tags.
	origin repo
	out    io.Writer
}

// standinNames are the programs that are replaced.
var standinNames = []string{"gh", "docker", "go", "make", "oras", "helm", "cosign"}

// newRehearsal prepares the stand-ins of a tree in a folder.
func newRehearsal(tree, folder string, origin repo, out io.Writer) (*rehearsal, error) {
	script, err := filepath.Abs(filepath.Join(tree, "hack", "release", "standin", "standin.sh"))
	if err != nil {
		return nil, err
	}
	r := &rehearsal{standins: filepath.Join(folder, "bin"), state: filepath.Join(folder, "state"), origin: origin, out: out}
	errs := []error{os.MkdirAll(r.standins, 0o755), os.MkdirAll(filepath.Join(r.state, "releases"), 0o755)}
	for _, name := range standinNames {
		errs = append(errs, os.Symlink(script, filepath.Join(r.standins, name)))
	}
	return r, errors.Join(errs...)
}

// runJob runs a job of a workflow file, as it stands, for a commit. The environment of its steps gets additions.
func (r *rehearsal) runJob(file, name, commit string, env ...string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var workflow struct {
		Jobs map[string]job `json:"jobs"`
	}
	if err := yaml.Unmarshal(raw, &workflow); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "job")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	env = slices.Concat(os.Environ(), []string{
		"PATH=" + r.standins + ":" + os.Getenv("PATH"), "STATE=" + r.state, "ORIGIN=" + r.origin.root, "GITHUB_PATH=" + os.DevNull,
		"GITHUB_SHA=" + commit, "GITHUB_REPOSITORY=direct-secrets/direct-secrets", "GITHUB_RUN_ID=1", "GITHUB_ACTOR=rehearsal",
	}, env)
	for _, step := range workflow.Jobs[name].Steps {
		action, _, _ := strings.Cut(step.Uses, "@")
		switch {
		case action == "actions/checkout":
			err = r.checkout(work, commit, step.With["fetch-depth"] != nil)
		case action == "actions/upload-artifact":
			err = r.upload(filepath.Join(work, fmt.Sprint(step.With["path"])), fmt.Sprint(step.With["name"]), step.With["if-no-files-found"] == "error")
		case step.Run != "":
			cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-c", step.Run) // As on GitHub, if a step names no shell.
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = work, slices.Clone(env), r.out, r.out
			for key, value := range step.Env {
				cmd.Env = append(cmd.Env, key+"="+value)
			}
			err = cmd.Run()
		}
		if err != nil {
			return fmt.Errorf("job %s: %s%s: %w", name, step.Uses, step.Run, err)
		}
	}
	return nil
}

// checkout clones a commit, with all tags and history or without.
func (r *rehearsal) checkout(work, commit string, whole bool) error {
	args := []string{"clone", "--quiet", "--no-checkout"}
	if !whole {
		args = append(args, "--no-tags")
	}
	if _, err := r.origin.git(append(args, r.origin.root, work)...); err != nil {
		return err
	}
	_, err := repo{work}.git("checkout", "--quiet", "--detach", commit)
	return err
}

// upload stores a file or the content of a folder as an artifact.
func (r *rehearsal) upload(from, name string, required bool) error {
	to := filepath.Join(r.state, "artifacts", name)
	info, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) && !required {
		return nil
	}
	if err := errors.Join(err, os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, filepath.Base(from)), raw, 0o600)
}

// release runs the workflow for a plan. If cut is true, it is cancelled before the last tag, and started again.
func (r *rehearsal) release(p plan, cut bool, out io.Writer) error {
	commit, err := r.origin.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if cut {
		last := p.Releases[len(p.Releases)-1].Tag
		if err := r.runWorkflow(commit, "CUT="+last); err == nil {
			return fmt.Errorf("the workflow is not cancelled at %s", last)
		}
		if _, err := fmt.Fprintf(out, "the workflow is cancelled at %s, and started again\n", last); err != nil {
			return err
		}
	}
	if err := r.runWorkflow(commit); err != nil {
		return err
	}
	for _, release := range p.Releases {
		at, err := r.origin.git("rev-parse", release.Tag)
		if err != nil {
			return err
		}
		folder := filepath.Join(r.state, "releases", release.Tag)
		draft, err := os.ReadFile(filepath.Join(folder, "draft"))
		if err != nil || at != commit || string(draft) != "false\n" {
			return fmt.Errorf("the release %s is not published: the tag is at %s, want %s: %w", release.Tag, at, commit, err)
		}
		files, err := os.ReadFile(filepath.Join(folder, "files"))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "released %s: %d files\n", release.Tag, len(strings.Fields(string(files)))); err != nil {
			return err
		}
	}
	return nil
}

// runWorkflow runs all jobs of the workflow "release".
func (r *rehearsal) runWorkflow(commit string, env ...string) error {
	if err := os.RemoveAll(filepath.Join(r.state, "artifacts")); err != nil {
		return err
	}
	for _, name := range []string{"build", "publish", "tags"} {
		if err := r.runJob(filepath.Join(r.origin.root, ".github", "workflows", "release.yaml"), name, commit, env...); err != nil {
			return err
		}
	}
	return nil
}
