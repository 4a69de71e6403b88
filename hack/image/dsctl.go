package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// dsctlPackage is the package of the command-line tool, relative to the root of the tree.
	dsctlPackage = "./cmd/dsctl"
	// downloads is the address of the files of releases.
	downloads = "https://github.com/direct-secrets/direct-secrets/releases/download"
)

// A platform is a platform for dsctl, in Go's names.
type platform struct{ os, arch string }

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

// An archive contains dsctl for one platform.
type archive struct {
	platform

	name, binary string
	data         []byte
}

func (a *archive) sum() string {
	sum := sha256.Sum256(a.data)
	return hex.EncodeToString(sum[:])
}

// saveDsctl builds dsctl for each platform, and writes the archives with their checksums and the manifest for
// krew.
func saveDsctl(r release, out string) error {
	if r.Version == "" {
		return fmt.Errorf("a -version is needed")
	}
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var archives []archive
	for _, p := range platforms {
		env := settingsOf(p.os, p.arch)
		data, err := compile(".", env, dsctlPackage, "-X main.version=v"+r.Version)
		if err != nil {
			return err
		}
		terms, err := licences(".", env, "-deps", dsctlPackage)
		if err != nil {
			return err
		}
		a, err := packDsctl(p, data, append(terms, file{name: "LICENSE", mode: 0o644, data: own}))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, a.name), a.data, 0o644); err != nil { //nolint:gosec // It is to be published.
			return err
		}
		fmt.Println(a.name, a.sum())
		archives = append(archives, a)
	}
	manifest, err := krewManifest(r, archives)
	if err != nil {
		return err
	}
	return writeAll(out, map[string][]byte{"SHA256SUMS": checksums(archives), "direct-secrets.yaml": manifest})
}

func writeAll(folder string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil { //nolint:gosec // They are to be published.
			return err
		}
	}
	return nil
}

// packDsctl returns the archive for a platform: the program, and the licences of all linked code.
func packDsctl(p platform, program []byte, terms []file) (archive, error) {
	a := archive{platform: p, name: fmt.Sprintf("dsctl-%s-%s.tar.gz", p.os, p.arch), binary: "dsctl"}
	if p.os == "windows" {
		a.binary += ".exe"
	}
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	files := tar.NewWriter(zipped)
	slices.SortFunc(terms, byName)
	for _, f := range append([]file{{name: a.binary, mode: 0o755, data: program}}, terms...) {
		if err := writeFile(files, f.name, f.mode, f.data); err != nil {
			return a, err
		}
	}
	for _, c := range []interface{ Close() error }{files, zipped} {
		if err := c.Close(); err != nil {
			return a, err
		}
	}
	a.data = content.Bytes()
	return a, nil
}

// checksums returns the input for `sha256sum --check`.
func checksums(archives []archive) []byte {
	var b strings.Builder
	for i := range archives {
		fmt.Fprintf(&b, "%s  %s\n", archives[i].sum(), archives[i].name)
	}
	return []byte(b.String())
}

// krewManifest returns the manifest with which krew installs dsctl as a plugin of kubectl; see
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
func krewManifest(r release, archives []archive) ([]byte, error) {
	var all []any
	for i := range archives {
		a := &archives[i]
		all = append(all, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": a.os, "arch": a.arch}},
			"uri":      fmt.Sprintf("%s/v%s/%s", downloads, r.Version, a.name),
			"sha256":   a.sum(),
			"bin":      a.binary,
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "direct-secrets"},
		"spec": map[string]any{
			"version":          "v" + r.Version,
			"homepage":         "https://github.com/direct-secrets/direct-secrets",
			"shortDescription": "Report what is wrong with synced secrets",
			"description": "Reports what is wrong with the objects of direct-secrets, why, and the fix. Lists objects of all Kinds, follows secrets\n" +
				"from stores to workloads, refreshes and suspends objects, and renders them offline. It prints no value of a secret\nunless asked to.\n",
			"platforms": all,
		},
	})
}
