// Package hack tests the scripts in this folder.
package hack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// published serves an index of binaries in envtest's format, and the archive of one version. It returns the
// address.
func published(t *testing.T, version string, checksum func([]byte) string) string {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		content := "published " + name
		must(t, files.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := files.Write([]byte(content))
		must(t, err)
	}
	must(t, files.Close())
	must(t, zipped.Close())
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/"+name {
			_, _ = w.Write(archive.Bytes())
			return
		}
		_, _ = fmt.Fprintf(w, "releases:\n  %s:\n    %s:\n      hash: %s\n      selfLink: %s/%s\n", version, name, checksum(archive.Bytes()), server.URL, name)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func sum(data []byte) string {
	digest := sha512.Sum512(data)
	return hex.EncodeToString(digest[:])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestControlPlane finds the binaries of a control plane. The test records what would be built, without
// building.
func TestControlPlane(t *testing.T) {
	version := strings.TrimSpace(string(output(t, exec.Command("./controlplane.sh", "--version"))))
	kubernetes, _, _ := strings.Cut(version, "-etcd")
	gocache := strings.TrimSpace(string(output(t, exec.Command("go", "env", "GOCACHE")))) // The folder depends on XDG_CACHE_HOME, which the cases set.
	good := published(t, kubernetes, sum)
	forged := published(t, kubernetes, func([]byte) string { return sum([]byte("another archive")) })
	all := []string{"etcd", "kube-apiserver", "kube-controller-manager"}
	cases := map[string]struct {
		reason         string
		index          string
		args           []string
		assets, cached []string
		// fromCache is set if the printed folder is the cache; built are the programs that would be built.
		fromCache  bool
		downloaded []string
		built      []string
	}{
		"AssetsOfEnvtest": {reason: "only the missing programs are built, even if others could be downloaded", index: good, assets: all[:2], built: all[2:]},
		"Cached":          {reason: "a second run finds the programs of the first", index: good, cached: all, fromCache: true},
		"Published":       {reason: "for tests the controller manager is built", index: good, fromCache: true, downloaded: all[:2], built: all[2:]},
		"Forged":          {reason: "binaries with another checksum are not taken", index: forged, args: []string{"--demo"}, fromCache: true, built: all[:1]},
		"Unreachable":     {reason: "without a network all programs are built", index: "http://127.0.0.1:1", args: []string{"--demo"}, fromCache: true, built: all[:1]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			assets, cache := filepath.Join(home, "assets"), filepath.Join(home, "direct-secrets", "controlplane", version)
			for folder, names := range map[string][]string{assets: tc.assets, cache: tc.cached} {
				must(t, os.MkdirAll(folder, 0o700))
				for _, n := range names {
					must(t, os.WriteFile(filepath.Join(folder, n), []byte("given"), 0o700))
				}
			}
			run := exec.Command("./controlplane.sh", tc.args...)
			run.Env = append(os.Environ(), "K8S=", "KUBEBUILDER_ASSETS=", "XDG_CACHE_HOME="+home, "GOCACHE="+gocache, "ENVTEST_INDEX="+tc.index, "PATH="+noting(t, home)+":"+os.Getenv("PATH"))
			if tc.assets != nil {
				run.Env = append(run.Env, "KUBEBUILDER_ASSETS="+assets)
			}
			var printed, messages bytes.Buffer
			run.Stdout, run.Stderr = &printed, &messages
			if err := run.Run(); (err != nil) != (len(tc.built) > 0) {
				t.Errorf("%s: it ends with %v, and what is built here fails:\n%s", tc.reason, err, &messages)
			}
			want := assets
			if tc.fromCache {
				want = cache
			}
			if len(tc.built) == 0 {
				if diff := cmp.Diff(want+"\n", printed.String()); diff != "" {
					t.Errorf("%s: the folder: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.downloaded, downloaded(t, cache)); diff != "" {
					t.Errorf("%s: downloaded: -want, +got:\n%s\n%s", tc.reason, diff, &messages)
				}
			}
			if diff := cmp.Diff(tc.built, noted(t, home)); diff != "" {
				t.Errorf("%s: built: -want, +got:\n%s\n%s", tc.reason, diff, &messages)
			}
		})
	}
}

func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	out, err := cmd.Output()
	must(t, err)
	return out
}

// noting returns a folder with a go command that records what it is asked to build, and fails.
func noting(t *testing.T, home string) string {
	t.Helper()
	program, err := exec.LookPath("go")
	must(t, err)
	dir := filepath.Join(home, "bin")
	must(t, os.MkdirAll(dir, 0o700))
	script := "#!/bin/sh\ncase \" $* \" in *' build '*) for a in \"$@\"; do :; done; echo \"$a\" >>'" + home + "/built'; exit 1 ;; esac\nexec '" + program + "' \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700))
	return dir
}

// noted returns the programs that the go command was asked to build.
func noted(t *testing.T, home string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "built"))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	var all []string
	for _, line := range strings.Fields(string(raw)) {
		line = strings.TrimPrefix(line, "go.etcd.io/")
		if strings.HasPrefix(line, "etcd/") {
			line = "etcd"
		}
		all = append(all, filepath.Base(line))
	}
	slices.Sort(all)
	return all
}

// downloaded returns the downloaded programs in a folder.
func downloaded(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	var all []string
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err == nil && strings.HasPrefix(string(raw), "published ") {
			all = append(all, e.Name())
		}
	}
	return all
}
