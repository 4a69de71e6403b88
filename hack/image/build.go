package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fipsModule is the version of Go's cryptographic module in FIPS images. It has the certificate #5247 of the CMVP, and is the
// version "certified" of Go's lib/fips140. Only a version with a certificate is allowed here.
const fipsModule = "v1.0.0"

// settings are the settings of the go command that change a binary, with the version of the cryptographic module. The
// user's own environment must not affect an image. gRPC's traces would add a page of text/template.
func settings(arch, crypto string) []string {
	return append(settingsOf("linux", arch), "GOFIPS140="+crypto)
}

// settingsOf returns the settings for an operating system.
func settingsOf(system, arch string) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-tags=grpcnotrace", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
	}
}

// build builds the programs of the module in folder. crypto is the version of Go's cryptographic module, or off.
func build(folder string, archs []string, crypto string) ([]program, error) {
	var out []program
	for _, arch := range archs {
		env := settings(arch, crypto)
		data, err := compile(folder, env, ".", "")
		if err != nil {
			return nil, fmt.Errorf("cannot build for %s: %w", arch, err)
		}
		terms, err := licences(folder, env, "-deps", ".")
		if err != nil {
			return nil, err
		}
		out = append(out, program{arch: arch, data: data, licences: terms})
	}
	return out, nil
}

// compile returns the static binary of a package of the module in folder. linker are further flags of the
// linker.
func compile(folder string, env []string, main, linker string) ([]byte, error) {
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }() // the folder is no longer needed
	binary := filepath.Join(work, "binary")
	flags := strings.TrimSpace("-s -w " + linker)
	if _, err := goCommand(folder, env, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", binary, main); err != nil {
		return nil, err
	}
	return os.ReadFile(binary)
}

// moduleVersion returns the version of a module that the go.mod file of the working directory requires.
func moduleVersion(path string) (string, error) {
	out, err := goCommand(".", []string{"GOWORK=off"}, "list", "-m", "-f", "{{.Version}}", path)
	return strings.TrimSpace(string(out)), err
}

// goCommand returns the output of the go command in a folder, with additions to the environment.
func goCommand(folder string, env []string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir, command.Env = folder, append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run go %s in %s: %w\n%s", strings.Join(args, " "), folder, err, &stderr)
	}
	return out, nil
}
