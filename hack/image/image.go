package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// user runs the binary. Kubernetes needs the number to see that it is not root.
	user       = "65532:65532"
	repository = "https://github.com/direct-secrets/direct-secrets"
)

// An image is what is in an archive: an index over the architectures, and a bill of materials that
// refers to the image of each.
type image struct {
	digest digest.Digest // of the index
	sboms  map[string][]byte
	top    ocispec.Index
	blobs  map[digest.Digest][]byte
}

// A program is the binary of a module for one architecture, and the licences of what is linked in.
type program struct {
	arch     string
	data     []byte
	licences []file
}

// pack makes the image of a module.
func pack(r release, name string, programs []program) (*image, error) {
	img := &image{sboms: map[string][]byte{}, blobs: map[digest.Digest][]byte{}}
	about := annotations(r, name)
	index := indexOf(about)
	var bills []ocispec.Descriptor
	for _, p := range programs {
		manifest, err := img.addPlatform(about, r, name, p)
		if err != nil {
			return nil, err
		}
		if img.sboms[p.arch], err = billOfMaterials(r, name, p); err != nil {
			return nil, err
		}
		bill, err := img.attach(manifest, about, name+"-"+p.arch, img.sboms[p.arch])
		if err != nil {
			return nil, err
		}
		manifest.Platform = &ocispec.Platform{OS: "linux", Architecture: p.arch}
		index.Manifests = append(index.Manifests, manifest)
		bills = append(bills, bill)
	}
	d, err := img.addJSON(ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return nil, err
	}
	img.digest = d.Digest
	// By this name tools find the image among the bills of materials.
	d.Annotations = map[string]string{ocispec.AnnotationRefName: r.Version}
	img.top = indexOf(nil)
	img.top.Manifests = append([]ocispec.Descriptor{d}, bills...)
	return img, nil
}

// addPlatform adds the image of one architecture. The CA roots come first: this layer is the same in
// all images. The licences change with the dependencies only, the binary always.
func (i *image) addPlatform(about map[string]string, r release, name string, p program) (ocispec.Descriptor, error) {
	config := ocispec.Image{
		Created:  &r.Created,
		Platform: ocispec.Platform{OS: "linux", Architecture: p.arch},
		Config:   ocispec.ImageConfig{User: user, Entrypoint: []string{"/" + name}, WorkingDir: "/", Labels: about},
		RootFS:   ocispec.RootFS{Type: "layers"},
	}
	manifest := ocispec.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ocispec.MediaTypeImageManifest,
		Annotations: about,
	}
	for _, l := range []struct {
		from  string
		files []file
	}{
		{"the CA roots of " + rootsModule + " " + r.CARoots, []file{{rootsPath, 0o644, caRoots()}}},
		{"the licences", slices.SortedFunc(slices.Values(slices.Concat(r.Licences, p.licences)), byName)},
		{"the binary " + name, []file{{name, 0o755, p.data}}},
	} {
		data, plain, err := layer(l.files)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, i.add(ocispec.MediaTypeImageLayerGzip, data))
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, plain)
		config.History = append(config.History, ocispec.History{Created: &r.Created, CreatedBy: l.from})
	}
	var err error
	if manifest.Config, err = i.addJSON(ocispec.MediaTypeImageConfig, config); err != nil {
		return ocispec.Descriptor{}, err
	}
	return i.addJSON(ocispec.MediaTypeImageManifest, manifest)
}

// attach adds a bill of materials that refers to subject. Registries list it among the referrers of
// that image.
func (i *image) attach(subject ocispec.Descriptor, about map[string]string, name string, sbom []byte) (ocispec.Descriptor, error) {
	bill := i.add(sbomType, sbom)
	bill.Annotations = map[string]string{ocispec.AnnotationTitle: sbomName(name)}
	i.add(ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data)
	d, err := i.addJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: sbomType,
		Config:       ocispec.DescriptorEmptyJSON,
		Layers:       []ocispec.Descriptor{bill},
		Subject:      &subject,
		Annotations:  map[string]string{ocispec.AnnotationCreated: about[ocispec.AnnotationCreated]},
	})
	d.ArtifactType = sbomType
	return d, err
}

func (i *image) add(mediaType string, data []byte) ocispec.Descriptor {
	d := digest.FromBytes(data)
	i.blobs[d] = data
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(data))}
}

func (i *image) addJSON(mediaType string, v any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return i.add(mediaType, data), nil
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
		_ = archive.Close() // the first error says more
		return err
	}
	return archive.Close()
}

// write writes the archive.
func (i *image) write(w io.Writer) error {
	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	index, err := json.Marshal(i.top)
	if err != nil {
		return err
	}
	files := tar.NewWriter(w)
	if err := writeFile(files, ocispec.ImageLayoutFile, 0o644, layout); err != nil {
		return err
	}
	if err := writeFile(files, ocispec.ImageIndexFile, 0o644, index); err != nil {
		return err
	}
	for _, d := range slices.Sorted(maps.Keys(i.blobs)) {
		name := filepath.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded())
		if err := writeFile(files, name, 0o644, i.blobs[d]); err != nil {
			return err
		}
	}
	return files.Close()
}

func indexOf(about map[string]string) ocispec.Index {
	return ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Annotations: about}
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

func sbomName(name string) string { return name + ".cdx.json" }
