package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// commonPath is the module path of common.
const commonPath = "github.com/direct-secrets/direct-secrets/common"

// umbrella is the name of the umbrella chart. Its tags have no prefix, since the root module, which has dsctl, is tagged with it.
const umbrella = "direct-secrets"

// A unit is what has a version of its own.
type unit struct {
	Name string
	// Prefix is that of its tags.
	Prefix string
	// Folders are what a release of it contains.
	Folders []string
	// Chart is the folder of its chart; empty for common.
	Chart string
}

// A commit is a change of a unit.
type commit struct {
	Subject string
	// Level is what the trailer "Release: minor" or "Release: patch" asks for; empty if there is none.
	Level string
	Files []string
	// Release is true if it has written the changelog of the unit.
	Release bool
}

// repo is the repository in a folder.
type repo struct{ root string }

func (r repo) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.root}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// units returns what has a version: common, each module with a program, and the umbrella chart.
func (r repo) units() ([]unit, error) {
	all := []unit{{Name: "common", Prefix: "common/", Folders: []string{"common"}}}
	programs, err := filepath.Glob(filepath.Join(r.root, "*-*", "main.go"))
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		name := filepath.Base(filepath.Dir(p))
		chart := filepath.Join("charts", name)
		all = append(all, unit{Name: name, Prefix: name + "/", Folders: []string{name, chart, "charts/library"}, Chart: chart})
	}
	chart := filepath.Join("charts", umbrella)
	return append(all, unit{Name: umbrella, Folders: []string{chart, "charts/crds", "charts/library", "common/manifests/crds", "cmd", "migrate", "internal", "e2e/stack", "go.mod", "go.sum"}, Chart: chart}), nil
}

// last returns the version of the last release of a unit that the present commit contains; empty if there is none.
func (r repo) last(u unit) (string, error) {
	out, err := r.git("tag", "--list", u.Prefix+"v*", "--merged", "HEAD")
	if err != nil {
		return "", err
	}
	last := ""
	for _, tag := range strings.Fields(out) {
		if v := strings.TrimPrefix(tag, u.Prefix); semver.IsValid(v) && (last == "" || semver.Compare(v, last) > 0) {
			last = v
		}
	}
	return last, nil
}

// commits returns the changes of a unit since a version, the first one first. With no version that is all.
func (r repo) commits(u unit, since string) ([]commit, error) {
	of := "HEAD"
	if since != "" {
		of = u.Prefix + since + "..HEAD"
	}
	out, err := r.git(append([]string{
		"log", "--reverse", "--no-merges", "--name-only", "--format=%x1e%s%x1f%(trailers:key=Release,valueonly,separator=%x20)%x1f", of, "--",
	}, u.Folders...)...)
	if err != nil {
		return nil, err
	}
	var all []commit
	for _, record := range strings.Split(out, "\x1e")[1:] {
		parts := strings.SplitN(record, "\x1f", 3)
		c := commit{Subject: parts[0], Level: strings.TrimSpace(parts[1])}
		files := strings.Fields(parts[2])
		c.Release = slices.Contains(files, changelog("", u))
		c.Files = slices.DeleteFunc(files, func(f string) bool { return !shipped(f) })
		if len(c.Files) > 0 {
			all = append(all, c)
		}
	}
	return all, nil
}

// shipped reports whether a file is part of what users run. Tests and pages are not.
func shipped(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, ".md") && !slices.Contains(strings.Split(file, "/"), "testdata")
}

// requires returns the version of common that a module requires in a commit.
func (r repo) requires(u unit, commit string) (string, error) {
	path := u.Folders[0] + "/go.mod"
	raw, err := r.git("show", commit+":"+path)
	if err != nil {
		return "", err
	}
	f, err := modfile.Parse(path, []byte(raw), nil)
	if err != nil {
		return "", err
	}
	for _, q := range f.Require {
		if q.Mod.Path == commonPath {
			return q.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", path, commonPath)
}

// pinned returns the versions of the charts in the lock of the umbrella chart, by name, in a commit.
func (r repo) pinned(commit string) (map[string]string, error) {
	raw, err := r.git("show", commit+":charts/"+umbrella+"/Chart.lock")
	if err != nil {
		return nil, err
	}
	var c chart
	if err := yaml.Unmarshal([]byte(raw), &c); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, d := range c.Dependencies {
		versions[d.Name] = d.Version
	}
	return versions, nil
}
