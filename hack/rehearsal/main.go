// Command rehearsal releases what is due in a copy of the repository: it builds and publishes as the workflow "release" does,
// to a registry on loopback. Then it installs the published chart on a control plane, and runs the published images.
// Run it in the root of the tree. Only cosign is replaced, because signatures need the identity of the workflow.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/mod/semver"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	to := "localhost:" + port + "/direct-secrets" // oras uses plain HTTP for localhost.
	work, err := os.MkdirTemp("", "rehearsal")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	// The version is that of the workflow.
	if err := command(ctx, []string{"GOBIN=" + work}, "go", "install", "oras.land/oras/cmd/oras@v1.3.0"); err != nil {
		return err
	}
	if err := os.Setenv("PATH", work+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	if err := publish(ctx, to); err != nil {
		return fmt.Errorf("cannot publish: %w", err)
	}
	version, err := latest(ctx, to+"/charts/direct-secrets")
	if err != nil {
		return err
	}
	return install(ctx, work, to, version)
}

// publish builds and publishes each step of the releases that are due.
func publish(ctx context.Context, to string) error {
	programs, err := filepath.Abs("hack/rehearsal/bin")
	if err != nil {
		return err
	}
	return command(ctx, []string{"REGISTRY=" + to, "PATH=" + programs + ":" + os.Getenv("PATH")},
		"go", "run", "./hack/release", "publish", "bash", "-c", "hack/release-build.sh bin/release && hack/publish.sh bin/release && rm -r bin/release")
}

// latest returns the newest version of what is published, without a leading v.
func latest(ctx context.Context, repository string) (string, error) {
	out, err := exec.CommandContext(ctx, "oras", "repo", "tags", "--format", "json", repository).Output()
	if err != nil {
		return "", fmt.Errorf("cannot list %s: %w", repository, err)
	}
	var list struct{ Tags []string }
	if err := json.Unmarshal(out, &list); err != nil || len(list.Tags) == 0 {
		return "", fmt.Errorf("%s has no version: %s", repository, out)
	}
	return slices.MaxFunc(list.Tags, func(a, b string) int { return semver.Compare("v"+a, "v"+b) }), nil
}

// install installs the umbrella chart with all modules, and runs their images.
func install(ctx context.Context, work, from, version string) (err error) {
	s, err := stack.Start(ctx, stack.Options{Bare: true})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := s.Stop(); err == nil {
			err = stopped
		}
	}()
	raw, err := s.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(work, "kubeconfig")
	if err := os.WriteFile(kubeconfig, raw, 0o600); err != nil {
		return err
	}
	host, _, _ := strings.Cut(from, "/")
	args := []string{
		"install", "direct-secrets", "oci://" + from + "/charts/direct-secrets", "--version", version,
		"--namespace", stack.Namespace, "--create-namespace", "--set", "global.image.registry=" + host,
	}
	for _, module := range stack.Modules() {
		args = append(args, "--set", module+".enabled=true")
	}
	if err := command(ctx, []string{"KUBECONFIG=" + kubeconfig}, "hack/rehearsal/bin/helm", args...); err != nil {
		return err
	}
	if err := s.ServeCRDs(ctx); err != nil {
		return err
	}
	for _, module := range stack.Modules() {
		if err := runImages(ctx, s, work, module); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	return synced(ctx, s)
}

// command runs a command with additions to the environment.
func command(ctx context.Context, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), os.Stdout, os.Stderr
	return cmd.Run()
}
