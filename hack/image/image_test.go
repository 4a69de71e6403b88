//go:build long

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
)

func init() { compression = gzip.BestSpeed }

// licensed returns a release with the licences of all images.
func licensed() (release, error) {
	var err error
	r := testRelease()
	r.Licences, err = commonLicences(filepath.Join("..", ".."))
	return r, err
}

// built and packed build and pack the module once for all tests.
var (
	built  = sync.OnceValues(func() ([]program, error) { return build(filepath.Join("..", "..", module), archs, "off") })
	packed = sync.OnceValues(func() (*image, error) {
		programs, err := built()
		if err != nil {
			return nil, err
		}
		r, err := licensed()
		if err != nil {
			return nil, err
		}
		return pack(r, module, programs)
	})
)

// unpacked is an archive as its users see it.
type unpacked struct {
	files  []string // the files of the archive
	layout layout.Path
	top    *v1.IndexManifest
	image  v1.ImageIndex
}

// open writes the archive of the image that all tests share, and reads it.
func open(t *testing.T) unpacked {
	t.Helper()
	return unpack(t, must(packed())(t))
}

func unpack(t *testing.T, img *image) unpacked {
	t.Helper()
	out := unpacked{}
	folder := t.TempDir()
	var archive bytes.Buffer
	if err := img.write(&archive); err != nil {
		t.Fatal(err)
	}
	for name, data := range filesOf(t, &archive) {
		out.files = append(out.files, name)
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data.data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out.files)
	out.layout = must(layout.FromPath(folder))(t)
	root := must(out.layout.ImageIndex())(t)
	out.top = must(root.IndexManifest())(t)
	out.image = must(root.ImageIndex(out.top.Manifests[0].Digest))(t)
	return out
}

// platform returns the image of an architecture.
func (u unpacked) platform(t *testing.T, arch string) (v1.Image, v1.Hash) {
	t.Helper()
	for _, d := range must(u.image.IndexManifest())(t).Manifests {
		if cmp.Equal(d.Platform, &v1.Platform{OS: "linux", Architecture: arch}) {
			return must(u.image.Image(d.Digest))(t), d.Digest
		}
	}
	t.Fatalf("the index has no image for linux/%s", arch)
	return nil, v1.Hash{}
}

// root returns the files in / of a container of the image.
func (u unpacked) root(t *testing.T, arch string) map[string]entry {
	t.Helper()
	img, _ := u.platform(t, arch)
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	return filesOf(t, content)
}

type entry struct {
	head tar.Header
	data []byte
}

func filesOf(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := out[h.Name]; ok {
			t.Errorf("%s is in the image twice", h.Name)
		}
		out[h.Name] = entry{head: *h, data: must(io.ReadAll(files))(t)}
	}
}

// must returns a function that fails the test on the error, and otherwise returns the value.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestArchive reads the archive like the tools of registries. The index must refer to every blob in it.
func TestArchive(t *testing.T) {
	u := open(t)
	if err := validate.Index(u.image); err != nil {
		t.Error(err)
	}
	if got := must(u.image.Digest())(t).String(); got != must(packed())(t).digest.String() {
		t.Errorf("digest is %s; printed was %s", got, must(packed())(t).digest)
	}

	type descriptor struct{ MediaType, ArtifactType, Ref, Name string }
	got := make([]descriptor, len(u.top.Manifests))
	for i, d := range u.top.Manifests {
		got[i] = descriptor{string(d.MediaType), d.ArtifactType, d.Annotations["org.opencontainers.image.ref.name"], d.Annotations["io.containerd.image.name"]}
	}
	bill := descriptor{string(types.OCIManifestSchema1), "application/vnd.cyclonedx+json", "", ""}
	if diff := cmp.Diff([]descriptor{{string(types.OCIImageIndex), "", "1.2.3", "ghcr.io/direct-secrets/" + module + ":1.2.3"}, bill, bill}, got); diff != "" {
		t.Errorf("index.json: -want, +got:\n%s", diff)
	}

	want := []string{"index.json", "oci-layout"}
	blob := func(h v1.Hash) { want = append(want, "blobs/"+h.Algorithm+"/"+h.Hex) }
	manifest := func(h v1.Hash) {
		blob(h)
		m := must(v1.ParseManifest(bytes.NewReader(must(u.layout.Bytes(h))(t))))(t)
		blob(m.Config.Digest)
		for _, l := range m.Layers {
			blob(l.Digest)
		}
	}
	for _, d := range must(u.image.IndexManifest())(t).Manifests {
		manifest(d.Digest)
	}
	blob(u.top.Manifests[0].Digest)
	for _, d := range u.top.Manifests[1:] {
		manifest(d.Digest)
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), u.files); diff != "" {
		t.Errorf("files of the archive: -want, +got:\n%s", diff)
	}
}

// TestLoadable checks that the archive of an architecture has the name of the image in the chart, and is that image.
func TestLoadable(t *testing.T) {
	folder := t.TempDir()
	if err := must(packed())(t).saveLoadable(folder, module); err != nil {
		t.Fatal(err)
	}
	u := open(t)
	for _, arch := range archs {
		path := filepath.Join(folder, module+"-"+arch+".tar")
		manifest := must(tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) }))(t)
		if len(manifest) != 1 {
			t.Fatalf("%s: %d images; want 1", arch, len(manifest))
		}
		if diff := cmp.Diff([]string{"ghcr.io/direct-secrets/" + module + ":1.2.3"}, manifest[0].RepoTags); diff != "" {
			t.Errorf("%s: RepoTags: -want, +got:\n%s", arch, diff)
		}
		img, _ := u.platform(t, arch)
		if want, got := must(img.ConfigName())(t), must(must(tarball.ImageFromPath(path, nil))(t).ConfigName())(t); want != got {
			t.Errorf("%s: the config is %s; want %s", arch, got, want)
		}
	}
}

// TestCopy copies the image with everything that refers to it, as docs/operate/images.md describes. The library
// that copies was not used to create the image. It checks the size and the digest of everything that it reads.
func TestCopy(t *testing.T) {
	folder := t.TempDir()
	if err := must(packed())(t).save(folder, module); err != nil {
		t.Fatal(err)
	}
	archive := must(oci.NewFromTar(t.Context(), filepath.Join(folder, module+".tar")))(t)
	index := must(archive.Resolve(t.Context(), "1.2.3"))(t)
	if want := must(packed())(t).digest.String(); index.Digest.String() != want {
		t.Errorf("1.2.3 is %s; want %s", index.Digest, want)
	}
	platforms := must(content.Successors(t.Context(), archive, index))(t)
	if len(platforms) != len(archs) {
		t.Errorf("the index has %d images; want %d", len(platforms), len(archs))
	}
	mirror := memory.New()
	for _, p := range platforms {
		if err := oras.ExtendedCopyGraph(t.Context(), archive, mirror, p, oras.DefaultExtendedCopyGraphOptions); err != nil {
			t.Fatal(err)
		}
		bills := must(registry.Referrers(t.Context(), mirror, p, "application/vnd.cyclonedx+json"))(t)
		if len(bills) != 1 {
			t.Errorf("%d bills of materials were copied with the image for %s; want 1", len(bills), p.Platform.Architecture)
		}
	}
}

func TestImage(t *testing.T) {
	u := open(t)
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) {
			img, _ := u.platform(t, arch)
			config := must(img.ConfigFile())(t)
			created := time.Unix(1700000000, 0).UTC()
			labels := map[string]string{
				"org.opencontainers.image.title":         module,
				"org.opencontainers.image.description":   "The direct-secrets module generator-password.",
				"org.opencontainers.image.version":       "1.2.3",
				"org.opencontainers.image.revision":      "0123abcd",
				"org.opencontainers.image.created":       "2023-11-14T22:13:20Z",
				"org.opencontainers.image.source":        "https://github.com/direct-secrets/direct-secrets",
				"org.opencontainers.image.documentation": "https://github.com/direct-secrets/direct-secrets/tree/main/docs",
				"org.opencontainers.image.licenses":      "Apache-2.0",
			}
			want := v1.Config{User: "65532:65532", Entrypoint: []string{"/" + module}, WorkingDir: "/", Labels: labels}
			if diff := cmp.Diff(want, config.Config); diff != "" {
				t.Errorf("config: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(labels, must(img.Manifest())(t).Annotations); diff != "" {
				t.Errorf("annotations: -want, +got:\n%s", diff)
			}
			if !config.Created.Equal(created) || config.OS != "linux" || config.Architecture != arch {
				t.Errorf("image is of %v for %s/%s; want %v for linux/%s", config.Created, config.OS, config.Architecture, created, arch)
			}

			// file holds the permissions, the owner and the time of a file. The image has no shell, no user,
			// and no other file.
			type file struct {
				Mode     fs.FileMode
				UID, GID int
				Time     int64
			}
			root := u.root(t, arch)
			files := map[string]file{}
			for name, e := range root {
				files[name] = file{e.head.FileInfo().Mode(), e.head.Uid, e.head.Gid, e.head.ModTime.Unix()}
			}
			expected := map[string]file{
				"etc":                               {Mode: fs.ModeDir | 0o755},
				"etc/ssl":                           {Mode: fs.ModeDir | 0o755},
				"etc/ssl/certs":                     {Mode: fs.ModeDir | 0o755},
				"etc/ssl/certs/ca-certificates.crt": {Mode: 0o644},
				module:                              {Mode: 0o755},
			}
			for name, e := range root {
				switch { // TestLicences checks the licences.
				case !strings.HasPrefix(name+"/", "licenses/"):
				case e.head.Typeflag == tar.TypeDir:
					expected[name] = file{Mode: fs.ModeDir | 0o755}
				default:
					expected[name] = file{Mode: 0o644}
				}
			}
			if diff := cmp.Diff(expected, files); diff != "" {
				t.Errorf("files: -want, +got:\n%s", diff)
			}

			for _, l := range must(img.Layers())(t) { // Each layer has a file or folder once.
				content := must(l.Uncompressed())(t)
				filesOf(t, content)
				_ = content.Close()
			}

			binary := must(elf.NewFile(bytes.NewReader(root[module].data)))(t)
			if binary.Machine != machines[arch] {
				t.Errorf("binary is for %v; want %v", binary.Machine, machines[arch])
			}
			for _, p := range binary.Progs {
				if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
					t.Errorf("binary has a segment %v: it is not static", p.Type)
				}
			}
		})
	}
}

// TestCARoots compares the file with the list that it was generated from, and checks that Go looks for it at
// this path.
func TestCARoots(t *testing.T) {
	rest := open(t).root(t, "amd64")["etc/ssl/certs/ca-certificates.crt"].data
	var got []string
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		got = append(got, must(x509.ParseCertificate(block.Bytes))(t).Subject.String())
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes of the file are not a certificate", len(rest))
	}
	if len(got) <= 100 {
		t.Errorf("%d roots; want more than 100", len(got))
	}
	var want []string
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			want = append(want, must(x509.ParseCertificate(root.Certificate))(t).Subject.String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roots: -want, +got:\n%s", diff)
	}

	goroot := strings.TrimSpace(string(must(exec.Command("go", "env", "GOROOT").Output())(t)))
	source := must(os.ReadFile(filepath.Join(goroot, "src", "crypto", "x509", "root_linux.go")))(t)
	_, list, _ := bytes.Cut(source, []byte("certFiles = []string{"))
	list, _, _ = bytes.Cut(list, []byte("\n}"))
	if !bytes.Contains(list, []byte(`"/`+rootsPath+`"`)) {
		t.Errorf("crypto/x509 does not look for roots in /%s, but in\n%s", rootsPath, list)
	}
}

// TestRun runs the binary of the image in an empty environment.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), module)
	if err := os.WriteFile(path, open(t).root(t, runtime.GOARCH)[module].data, 0o700); err != nil {
		t.Fatal(err)
	}
	help := exec.CommandContext(t.Context(), path, "--help")
	help.Env = []string{"NOTHING="}
	out, err := help.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("leader-elect")) {
		t.Errorf("--help ended with %v and printed:\n%s", err, out)
	}
}

// TestReproducible builds a copy of the sources in another folder, and packs it for another time.
func TestReproducible(t *testing.T) {
	elsewhere := t.TempDir()
	for _, folder := range []string{"common", module} {
		if err := os.CopyFS(filepath.Join(elsewhere, folder), os.DirFS(filepath.Join("..", "..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	here := must(packed())(t)
	// The user's settings must not matter.
	t.Setenv("GOFLAGS", "-tags=other")
	t.Setenv("GOAMD64", "v3")
	again := must(build(filepath.Join(elsewhere, module), archs, "off"))(t)
	later := must(licensed())(t)
	var first, second bytes.Buffer
	if err := errors.Join(here.write(&first), must(pack(later, module, again))(t).write(&second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two builds of the same sources differ")
	}

	later.Created = later.Created.Add(time.Hour)
	other := unpack(t, must(pack(later, module, must(built())(t)[:1]))(t)).files
	blob := func(h v1.Hash) string { return "blobs/sha256/" + h.Hex }
	img, manifest := open(t).platform(t, archs[0])
	if slices.Contains(other, blob(manifest)) {
		t.Error("an image of another time has the same digest")
	}
	for _, l := range must(img.Manifest())(t).Layers {
		if !slices.Contains(other, blob(l.Digest)) {
			t.Errorf("the layer %s depends on the time", l.Digest)
		}
	}
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
