package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	gcr "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// user is the user and group of the process. Kubernetes needs numbers to see that it is not root.
	user       = "65532:65532"
	repository = "https://github.com/direct-secrets/direct-secrets"
	// imagePrefix is the start of the name that the chart gives to the image of a module.
	imagePrefix = "ghcr.io/direct-secrets/"
	// annotationName is the annotation in index.json from which containerd takes the name of an imported image.
	annotationName = "io.containerd.image.name"
)

// An image is the content of an archive: an index of the architectures, and a bill of materials that refers to
// the image of each.
type image struct {
	digest v1.Hash           // the digest of the index of the architectures
	top    v1.ImageIndex     // the index.json of the archive
	sboms  map[string][]byte // the bills of materials by architecture
	// name is that of the image in the chart, and platforms are its images by architecture.
	name      gcr.Tag
	platforms map[string]v1.Image
}

// A program is the binary of a module for one architecture, with the licences of all linked code.
type program struct {
	arch     string
	data     []byte
	licences []file
}

// pack returns the image of a module.
func pack(r release, name string, programs []program) (*image, error) {
	tag, err := gcr.NewTag(imagePrefix+name+":"+r.Version, gcr.StrictValidation)
	if err != nil {
		return nil, err
	}
	img := &image{sboms: map[string][]byte{}, name: tag, platforms: map[string]v1.Image{}}
	about := annotations(r, name)
	var platforms, bills []mutate.IndexAddendum
	for _, p := range programs {
		platform, err := platformImage(about, r, name, p)
		if err != nil {
			return nil, err
		}
		img.platforms[p.arch] = platform
		if img.sboms[p.arch], err = billOfMaterials(r, name, p); err != nil {
			return nil, err
		}
		bill, err := attachment(platform, about, name+"-"+p.arch, img.sboms[p.arch])
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, mutate.IndexAddendum{
			Add: platform, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
		bills = append(bills, mutate.IndexAddendum{Add: bill})
	}
	index := mutate.Annotations(mutate.AppendManifests(empty.Index, platforms...), about).(v1.ImageIndex)
	// Tools use this name to find the image among the bills of materials.
	named := v1.Descriptor{Annotations: map[string]string{ocispec.AnnotationRefName: r.Version, annotationName: tag.Name()}}
	img.top = mutate.AppendManifests(empty.Index, slices.Insert(bills, 0, mutate.IndexAddendum{Add: index, Descriptor: named})...)
	img.digest, err = index.Digest()
	return img, err
}

// platformImage returns the image of one architecture. The first layer has the CA roots, and is the same in all
// images. The layer of the licences changes only with the dependencies, that of the binary always.
func platformImage(about map[string]string, r release, name string, p program) (v1.Image, error) {
	created := v1.Time{Time: r.Created}
	img, err := mutate.ConfigFile(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			Created: created, OS: "linux", Architecture: p.arch,
			Config: v1.Config{User: user, Entrypoint: []string{"/" + name}, WorkingDir: "/", Labels: about},
			RootFS: v1.RootFS{Type: "layers"},
		})
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		from  string
		files []file
	}{
		{"the CA roots of " + rootsModule + " " + r.CARoots, []file{{rootsPath, 0o644, caRoots()}}},
		{"the licences", slices.SortedFunc(slices.Values(slices.Concat(r.Licences, p.licences)), byName)},
		{"the binary " + name, []file{{name, 0o755, p.data}}},
	} {
		content, err := layer(l.files)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: content, History: v1.History{Created: created, CreatedBy: l.from}})
		if err != nil {
			return nil, err
		}
	}
	return mutate.Annotations(img, about).(v1.Image), nil
}

// save writes the archive and the bills of materials into a folder.
func (i *image) save(folder, name string) error {
	for arch, sbom := range i.sboms {
		if err := os.WriteFile(filepath.Join(folder, sbomName(name+"-"+arch)), sbom, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, name+".tar"))
	if err != nil {
		return err
	}
	if err := i.write(archive); err != nil {
		_ = archive.Close() // the first error is more helpful
		return err
	}
	return archive.Close()
}

// saveLoadable writes an archive of each architecture that container engines load: `kind load image-archive`, `docker load` and
// `ctr images import`. It has no bill of materials, which these would take for an image.
func (i *image) saveLoadable(folder, name string) error {
	for arch, platform := range i.platforms {
		if err := tarball.WriteToFile(filepath.Join(folder, name+"-"+arch+".tar"), i.name, platform); err != nil {
			return err
		}
	}
	return nil
}

// write writes the archive. go-containerregistry can write OCI layouts only into folders.
func (i *image) write(w io.Writer) error {
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // the folder is no longer needed
	if _, err := layout.Write(folder, i.top); err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	tree := os.DirFS(folder)
	if err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return writeFile(archive, name, 0o644, data)
	}); err != nil {
		return err
	}
	return archive.Close()
}

func annotations(r release, name string) map[string]string {
	out := map[string]string{
		ocispec.AnnotationTitle:         name,
		ocispec.AnnotationDescription:   "The direct-secrets module " + name + ".",
		ocispec.AnnotationVersion:       r.Version,
		ocispec.AnnotationCreated:       r.Created.Format("2006-01-02T15:04:05Z"),
		ocispec.AnnotationSource:        repository,
		ocispec.AnnotationDocumentation: repository + "/tree/main/docs",
		ocispec.AnnotationLicenses:      "Apache-2.0",
	}
	if r.Revision != "" {
		out[ocispec.AnnotationRevision] = r.Revision
	}
	return out
}
