// Package kustomize builds the kustomizations of a folder, without network and without programs.
package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	if absolute, err := filepath.Abs(name); err == nil {
		if content, found := f.contents[absolute]; found {
			return content, nil
		}
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
	defer cutOff()()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(on, dir)
	if err != nil {
		return nil, err
	}
	return all.AsYaml()
}

// building is held while the process is cut off, and cut is true then.
var (
	building sync.Mutex
	cut      atomic.Bool
)

// The default transport asks for a proxy before it connects. It is not replaced for the time of a build: other goroutines read
// that variable.
var transport = func() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		panic("the default transport is none that can be cut off")
	}
	t.Proxy = proxy
	return t
}()

func proxy(r *http.Request) (*url.URL, error) {
	if cut.Load() {
		return nil, fmt.Errorf("%s is not fetched", r.URL.Redacted())
	}
	return http.ProxyFromEnvironment(r)
}

// cutOff keeps Kustomize from running git, which it looks up in PATH, and from HTTP, for which it uses the default transport. It returns
// what undoes that.
func cutOff() func() {
	building.Lock()
	path := os.Getenv("PATH")
	cut.Store(true)
	transport.CloseIdleConnections() // A connection that is open needs no proxy.
	_ = os.Setenv("PATH", "")        // It fails only for malformed names.
	return func() {
		_ = os.Setenv("PATH", path)
		cut.Store(false)
		building.Unlock()
	}
}

// Real returns the absolute path of a file without symbolic links.
func Real(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// local returns an error that says so if a kustomization, or one that it uses, names something that is not on the disk. Kustomize would
// say that it cannot fetch it.
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
		if !slices.Contains([]string{"resources", "bases", "components"}, strings.ToLower(root.Content[i].Value)) {
			continue
		}
		for _, n := range root.Content[i+1].Content {
			at := filepath.Join(dir, n.Value)
			switch {
			case n.Kind != yaml.ScalarNode:
			case !f.Exists(at):
				return fmt.Errorf("%s names %s, which is not there, and is not fetched", name, n.Value)
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
