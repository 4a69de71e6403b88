// Command modzip writes a folder as one version of a Go module into a file-system module
// proxy (https://go.dev/ref/mod#goproxy-protocol):
//
//	modzip <folder> <module path> <version> <proxy folder>
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: modzip <folder> <module path> <version> <proxy folder>")
		os.Exit(2)
	}
	if err := pack(os.Args[1], module.Version{Path: os.Args[2], Version: os.Args[3]}, os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "modzip:", err)
		os.Exit(1)
	}
}

func pack(folder string, m module.Version, proxy string) error {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	out := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": m.Version})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"list":              []byte(m.Version + "\n"),
		m.Version + ".info": info,
		m.Version + ".mod":  mod,
	} {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
			return err
		}
	}

	archive, err := os.Create(filepath.Join(out, m.Version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(archive, m, folder); err != nil {
		_ = archive.Close() // the first error is more helpful
		return err
	}
	return archive.Close()
}
