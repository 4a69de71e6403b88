package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// statedOfUnit and stated match where a page states a version of this project. The text before the version names a module
// in statedOfUnit. In stated it does not, and the version is that of the umbrella chart.
var (
	statedOfUnit = regexp.MustCompile(`\b((?:provider|generator)-[a-z0-9]+)(?:\.tar:|:|/v| v| IMAGE_VERSION=)(\d+\.\d+\.\d+)\b`)
	stated       = regexp.MustCompile(`(?:charts/direct-secrets --version |\bdirect-secrets-|ARCHS=\w+ IMAGE_VERSION=|charts IMAGE_VERSION=|targetRevision: |/download/v|charts/crds\?ref=v|\$module\S*:|placeholder: |umbrella chart \| .v)(\d+\.\d+\.\d+)\b`)
)

// pages returns the pages that state another version than the tree has, by path, with the version of the tree.
func pages(root string) (map[string]string, error) {
	versions, err := repo{root}.versions()
	if err != nil {
		return nil, err
	}
	stale := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", ".github/ISSUE_TEMPLATE/*"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if strings.EqualFold(filepath.Base(path), "changelog.md") {
				continue
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if text := versions.in(string(raw)); text != string(raw) {
				stale[path] = text
			}
		}
	}
	return stale, nil
}

// unitVersions are the versions of the units in the tree, by name, without the v.
type unitVersions map[string]string

// versions returns the versions that the tree has. Pages do not state that of common, so that Renovate's change of it changes no page.
func (r repo) versions() (unitVersions, error) {
	units, err := r.units()
	if err != nil {
		return nil, err
	}
	versions := unitVersions{}
	for _, u := range units {
		if u.Chart == "" {
			continue
		}
		c, err := readChart(r.root, u.Chart)
		if err != nil {
			return nil, err
		}
		versions[u.Name] = c.Version
	}
	return versions, nil
}

// in returns the text with these versions.
func (v unitVersions) in(text string) string {
	text = statedOfUnit.ReplaceAllStringFunc(text, func(s string) string {
		m := statedOfUnit.FindStringSubmatch(s)
		if v[m[1]] == "" {
			return s
		}
		return strings.TrimSuffix(s, m[2]) + v[m[1]]
	})
	return stated.ReplaceAllStringFunc(text, func(s string) string {
		return strings.TrimSuffix(s, stated.FindStringSubmatch(s)[1]) + v[umbrella]
	})
}

// writePages makes all pages state the versions of the tree.
func writePages(root string) error {
	stale, err := pages(root)
	if err != nil {
		return err
	}
	for path, text := range stale {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
