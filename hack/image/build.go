package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// settings are the go command's settings that change a binary. What the user's environment says of
// them must not reach an image.
func settings(arch string) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
	}
}

// build returns the programs of the module in folder.
func build(folder string, archs []string) ([]program, error) {
	var out []program
	for _, arch := range archs {
		data, err := compile(folder, arch)
		if err != nil {
			return nil, err
		}
		terms, err := licences(folder, settings(arch), "-deps", ".")
		if err != nil {
			return nil, err
		}
		out = append(out, program{arch: arch, data: data, licences: terms})
	}
	return out, nil
}

// compile returns the static binary of the module in folder.
func compile(folder, arch string) ([]byte, error) {
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }() // nothing of it is needed any more
	binary := filepath.Join(work, "binary")
	compiler := exec.Command("go", "build", "-C", folder, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, ".")
	compiler.Env = append(os.Environ(), settings(arch)...)
	if out, err := compiler.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build for %s: %w\n%s", arch, err, out)
	}
	return os.ReadFile(binary)
}

// moduleVersion returns the version of a module that the go.mod file of the working directory pins.
func moduleVersion(path string) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path)
	list.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the version of %s: %w\n%s", path, err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
