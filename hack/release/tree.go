package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// chart is the part of a Chart.yaml that is used here.
type chart struct {
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Dependencies []dependency `json:"dependencies"`
}

// A dependency is that of a chart, in the form in which Helm computes the digest of Chart.lock.
type dependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	Condition  string `json:"condition,omitempty"`
}

func readChart(root, folder string) (chart, error) {
	var c chart
	raw, err := os.ReadFile(filepath.Join(root, folder, "Chart.yaml"))
	if err != nil {
		return c, err
	}
	return c, yaml.Unmarshal(raw, &c)
}

// read makes the plan for a repository, whose tree must have no uncommitted change.
func read(r repo) (plan, error) {
	dirty, err := r.git("status", "--porcelain")
	if err != nil {
		return plan{}, err
	}
	if dirty != "" {
		return plan{}, errors.New("the tree has uncommitted changes: commit them first")
	}
	units, err := r.units()
	if err != nil {
		return plan{}, err
	}
	var all []state
	for _, u := range units {
		s, err := r.state(u)
		if err != nil {
			return plan{}, err
		}
		all = append(all, s)
	}
	return decide(all), nil
}

// state reads what the plan needs to know of a unit.
func (r repo) state(u unit) (state, error) {
	s := state{unit: u, Log: func(version string) bool { return logged(r.root, u, version) }}
	var err error
	if s.Last, err = r.last(u); err != nil {
		return s, err
	}
	if s.Commits, err = r.commits(u, s.Last); err != nil {
		return s, err
	}
	if u.Chart == "" {
		return s, nil
	}
	c, err := readChart(r.root, u.Chart)
	if err != nil {
		return s, err
	}
	s.Version = c.Version
	if u.Name != umbrella {
		if s.Common, err = r.requires(u, "HEAD"); err != nil {
			return s, err
		}
	}
	if s.Last == "" {
		return s, nil
	}
	if u.Name == umbrella {
		s.Pinned, err = r.pinned(u.Prefix + s.Last)
	} else {
		s.LastCommon, err = r.requires(u, u.Prefix+s.Last)
	}
	return s, err
}

// changelog returns the path of the changelog of a unit.
func changelog(root string, u unit) string { return filepath.Join(root, u.Folders[0], "CHANGELOG.md") }

func logged(root string, u unit, version string) bool {
	raw, err := os.ReadFile(changelog(root, u))
	return err == nil && strings.Contains(string(raw), "\n## "+version+"\n")
}

// write writes the versions and changelogs of a plan.
func write(root string, p plan) error {
	for _, r := range p.Releases {
		if err := writeLog(root, r); err != nil {
			return err
		}
		charts := []string{r.unit.Chart}
		switch r.unit.Chart {
		case "":
			continue
		case filepath.Join("charts", umbrella):
			charts = append(charts, "charts/crds")
		}
		for _, c := range charts {
			path := filepath.Join(root, c, "Chart.yaml")
			if err := errors.Join(replace(path, `(?m)^((?:version|appVersion): ).*`, "${1}"+r.To[1:]), writeChanges(path, r.Changes)); err != nil {
				return err
			}
		}
	}
	return lock(root)
}

func writeLog(root string, r release) error {
	path := changelog(root, r.unit)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	title := fmt.Sprintf("# Changes of %s\n", r.Unit)
	before := strings.TrimPrefix(string(raw), title)
	if strings.Contains(before, "\n## "+r.To+"\n") {
		return nil
	}
	entry := fmt.Sprintf("\n## %s\n\n", r.To)
	for _, c := range r.Changes {
		entry += "- " + c + "\n"
	}
	return os.WriteFile(path, []byte(title+entry+before), 0o644)
}

// writeChanges writes the annotation with the changes of a chart; see https://artifacthub.io/docs/topics/annotations/helm.
func writeChanges(path string, changes []string) error {
	out := "annotations:\n  artifacthub.io/changes: |\n"
	for _, c := range changes {
		out += fmt.Sprintf("    - %q\n", c)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(raw), "\nannotations:\n") {
		return fmt.Errorf("%s has no annotations", path)
	}
	return replace(path, `(?m)^annotations:\n(?:  artifacthub\.io/changes: \|\n(?:    .*\n)*)?`, strings.ReplaceAll(out, "$", "$$"))
}

// replace replaces what matches a pattern in a file.
func replace(path, pattern, by string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, regexp.MustCompile(pattern).ReplaceAll(raw, []byte(by)), 0o644)
}

// lock makes the umbrella chart pin each chart below it to a minor version, and writes the exact ones into Chart.lock, into the
// lists of images, the static manifests and the pages that state them.
func lock(root string) error {
	path := filepath.Join(root, "charts", umbrella)
	u, err := readChart(root, filepath.Join("charts", umbrella))
	if err != nil {
		return err
	}
	var locked []dependency
	for i, d := range u.Dependencies {
		c, err := readChart(root, filepath.Join("charts", d.Name))
		if err != nil {
			return err
		}
		u.Dependencies[i].Version = "~" + strings.TrimPrefix(semver.MajorMinor("v"+c.Version), "v") + ".0"
		locked = append(locked, dependency{Name: d.Name, Version: c.Version})
		pin := `(?m)(- name: ` + regexp.QuoteMeta(d.Name) + `\n    version: ).*`
		if err := replace(filepath.Join(path, "Chart.yaml"), pin, `${1}"`+u.Dependencies[i].Version+`"`); err != nil {
			return err
		}
		for _, with := range []string{umbrella, d.Name} {
			image := `(?m)(image: \S+/` + regexp.QuoteMeta(d.Name) + `:).*`
			if err := replace(filepath.Join(root, "charts", with, "Chart.yaml"), image, "${1}"+c.Version); err != nil {
				return err
			}
		}
	}
	// Helm compares this digest: https://helm.sh/docs/helm/helm_dependency_build.
	raw, err := json.Marshal([2][]dependency{u.Dependencies, locked})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	out, err := yaml.Marshal(map[string]any{
		"dependencies": locked, "digest": "sha256:" + hex.EncodeToString(sum[:]),
		"generated": time.Unix(0, 0).UTC(), // The same tree gives the same file.
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(path, "Chart.lock"), out, 0o644); err != nil {
		return err
	}
	return errors.Join(writeManifests(root), writePages(root))
}
