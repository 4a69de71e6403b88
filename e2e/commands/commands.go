// Package commands runs the programs that users of the charts have: kubectl, helm, and the oldest supported
// helm.
package commands

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These are the programs.
const (
	Kubectl = "kubectl"
	Helm    = "helm"
	// OldestHelm is the oldest version of helm with which the charts can be installed.
	OldestHelm = "helm-3"
)

// A Shell runs programs for one cluster, with its own home folder.
type Shell struct {
	Folder string
	env    []string
}

// NewShell returns a Shell for the cluster of a kubeconfig. It neither reads nor writes the caller's home.
func NewShell(t testing.TB, kubeconfig []byte) *Shell {
	t.Helper()
	commands := os.Getenv("TEST_COMMANDS")
	if commands == "" {
		t.Fatal("set TEST_COMMANDS to the folder that hack/commands.sh prints")
	}
	home := t.TempDir()
	config := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return &Shell{Folder: home, env: []string{"HOME=" + home, "KUBECONFIG=" + config, "PATH=" + commands + string(filepath.ListSeparator) + os.Getenv("PATH")}}
}

// Run runs a program and returns its output. The error contains its stderr.
func (s *Shell) Run(ctx context.Context, program string, args ...string) (string, error) {
	c, err := s.Command(ctx, program, args...)
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Command returns a command with the Shell's folder and environment.
func (s *Shell) Command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	path, err := s.find(program)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Dir, c.Env = s.Folder, s.env
	return c, nil
}

// find searches a program in the Shell's PATH, not in that of this process.
func (s *Shell) find(program string) (string, error) {
	for _, v := range s.env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, folder := range filepath.SplitList(list) {
			if path := filepath.Join(folder, program); isProgram(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
