// Package kustomize builds the kustomizations of a folder, without network and without programs.
package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// files are those of a disk, but for the contents of some.
type files struct {
	filesys.FileSystem

	contents map[string][]byte
}

// ReadFile implements filesys.FileSystem.
func (f files) ReadFile(name string) ([]byte, error) {
	if absolute, err := filepath.Abs(name); err == nil && f.contents[absolute] != nil {
		return f.contents[absolute], nil
	}
	return f.FileSystem.ReadFile(name)
}

// Build returns the objects of the kustomization in a folder as YAML documents. contents take the place of those of files, by their
// absolute path without symbolic links.
func Build(dir string, contents map[string][]byte) ([]byte, error) {
	dir, err := Real(dir)
	if err != nil {
		return nil, err
	}
	on := files{filesys.MakeFsOnDisk(), contents}
	if err := on.local(dir, map[string]bool{}); err != nil {
		return nil, err
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(on, dir)
	if err != nil {
		return nil, err
	}
	return all.AsYaml()
}

// Real returns the absolute path of a file without symbolic links.
func Real(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// local returns an error if a kustomization, or one that it uses, names something that is not on the disk. Kustomize would fetch it,
// for which it runs git.
func (f files) local(dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	root, name, err := f.kustomization(dir)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		if url := remote(value); url != "" {
			return fmt.Errorf("%s names %s, which is not fetched", name, url)
		}
		if !slices.Contains([]string{"resources", "bases", "components", "generators", "transformers", "validators"}, key) {
			continue
		}
		for _, n := range value.Content {
			at := filepath.Join(dir, n.Value)
			switch {
			case strings.Contains(n.Value, "\n"): // It is written in place.
			case !f.Exists(at):
				return fmt.Errorf("%s names %s, which is not there", name, n.Value)
			case f.IsDir(at):
				if err := f.local(at, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kustomization returns the mapping of the kustomization in a folder, and its file.
func (f files) kustomization(dir string) (*yaml.Node, string, error) {
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := filepath.Join(dir, base)
		raw, err := f.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var root yaml.Node
		if err == nil {
			err = yaml.Unmarshal(raw, &root)
		}
		if err != nil || len(root.Content) == 0 {
			return &yaml.Node{}, name, err
		}
		return root.Content[0], name, nil
	}
	return nil, "", fmt.Errorf("%s has no kustomization", dir)
}

// remote returns a value below a node that is the address of something elsewhere; "" if there is none.
func remote(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !strings.ContainsAny(n.Value, " \n") && (strings.Contains(n.Value, "://") || strings.HasPrefix(n.Value, "git@")) {
		return n.Value
	}
	for _, c := range n.Content {
		if url := remote(c); url != "" {
			return url
		}
	}
	return ""
}
