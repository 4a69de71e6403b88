package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// module is the smallest module. It represents all modules, which differ only in the binary.
const module = "generator-password"

var archs = []string{"amd64", "arm64"}

func testRelease() release {
	return release{Version: "1.2.3", Revision: "0123abcd", Created: time.Unix(1700000000, 0).UTC(), CARoots: "v0.0.1"}
}

func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason  string
		release release
		archs   []string
		modules []string
		epoch   string
		want    string
	}{
		"NoVersion": {
			reason: "A missing version is an error.",
			archs:  archs, modules: []string{module}, want: "a -version, an architecture and a module are needed",
		},
		"NoArchitecture": {
			reason:  "A missing architecture is an error.",
			release: release{Version: "1.2.3"}, modules: []string{module}, want: "a -version, an architecture and a module are needed",
		},
		"NoModule": {
			reason:  "A missing module is an error.",
			release: release{Version: "1.2.3"}, archs: archs, want: "a -version, an architecture and a module are needed",
		},
		"Epoch": {
			reason:  "A date that is not a number is an error.",
			release: release{Version: "1.2.3"}, archs: archs, modules: []string{module}, epoch: "yesterday",
			want: `SOURCE_DATE_EPOCH must be the seconds since 1970: strconv.ParseInt: parsing "yesterday": invalid syntax`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", tc.epoch)
			folder := filepath.Join(t.TempDir(), "out")
			err := run(tc.release, tc.archs, folder, false, tc.modules)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\ngot error %v, want %s", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s\nthe folder was made: %v", tc.reason, err)
			}
		})
	}
}

func TestModules(t *testing.T) {
	cases := map[string]struct {
		reason string
		dep    debug.Module
		want   debug.Module
	}{
		"Plain": {
			reason: "A module has its own name.",
			dep:    debug.Module{Path: "example.com/a", Version: "v1.0.0"},
			want:   debug.Module{Path: "example.com/a", Version: "v1.0.0"},
		},
		"Folder": {
			reason: "A module of this repository has the version that the go.mod file requires.",
			dep:    debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "../a", Version: "(devel)"}},
			want:   debug.Module{Path: "example.com/a", Version: "v1.0.0"},
		},
		"Fork": {
			reason: "A replaced module has the name of its replacement, which is the linked code.",
			dep:    debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/b", Version: "v1.1.0"}},
			want:   debug.Module{Path: "example.com/b", Version: "v1.1.0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := modules(&debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{&tc.dep}})
			want := []debug.Module{{Path: "stdlib", Version: "1.26.8"}, tc.want}
			for i := range got {
				got[i].Replace = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nmodules(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoBill checks that a file that is not a Go binary is an error rather than an empty bill of materials.
func TestNoBill(t *testing.T) {
	if got, err := billOfMaterials(testRelease(), module, program{arch: "amd64", data: []byte("#!/bin/sh")}); err == nil {
		t.Errorf("got no error and the bill\n%s", got)
	}
}

// TestLicencesOfAPackage uses modules of other forms than those in the images.
func TestLicencesOfAPackage(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"Names": {
			reason: "files with terms can have several names, and code and folders are ignored",
			files: map[string]string{"a/LICENSE-MIT": "x", "a/Copying.txt": "x", "a/unlicense": "x", "a/NOTICE": "x",
				"a/license.go": "package a", "a/licenses/x": "x", "a/LICENSES.md": "x", "a/licensing.md": "x"},
			want: []string{"licenses/example.com/a/Copying.txt", "licenses/example.com/a/LICENSE-MIT", "licenses/example.com/a/LICENSES.md",
				"licenses/example.com/a/NOTICE", "licenses/example.com/a/unlicense"},
		},
		"Unused": {
			reason: "only linked code needs its licence",
			files: map[string]string{"a/LICENSE": "x", "a/a.go": "package a\n\nimport _ \"example.com/a/b/c\"\n", "a/b/c/c.go": "package c\n",
				"a/b/LICENSE": "x", "a/d/LICENSE": "x"},
			want: []string{"licenses/example.com/a/LICENSE", "licenses/example.com/a/b/LICENSE"},
		},
		"None": {
			reason: "linked code without a licence is an error",
			files:  map[string]string{"a/README.md": "x"},
			err:    "example.com/a has no file with its licence",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			for name, content := range map[string]string{
				"a/go.mod": "module example.com/a\n", "a/a.go": "package a\n",
				"main/go.mod":  "module " + ownModules + "main\n\nrequire example.com/a v0.0.0\n\nreplace example.com/a => ../a\n",
				"main/main.go": "package main\n\nimport _ \"example.com/a\"\n\nfunc main() {}\n",
			} {
				if _, ok := tc.files[name]; !ok {
					writeTo(t, filepath.Join(tree, name), content)
				}
			}
			for name, content := range tc.files {
				writeTo(t, filepath.Join(tree, name), content)
			}
			found, err := licences(filepath.Join(tree, "main"), settings("amd64", "off"), "-deps", ".")
			var got []string
			for _, f := range found {
				if !strings.HasPrefix(f.name, "licenses/stdlib/") {
					got = append(got, f.name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if descriptor := errorText(err); descriptor != tc.err {
				t.Errorf("%s: got error %q, want %q", tc.reason, descriptor, tc.err)
			}
		})
	}
}

func writeTo(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
