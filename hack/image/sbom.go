package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/uuid"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// sbomType is the media type of a bill of materials.
const sbomType = "application/vnd.cyclonedx+json"

// billOfMaterials lists the components of a module's image: the Go modules and the Go version, as recorded in
// the binary, and the CA roots.
func billOfMaterials(r release, name string, p program) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.data))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p.data)

	image := component(cyclonedx.ComponentTypeContainer, name, r.Version, "image")
	image.Properties = &[]cyclonedx.Property{{Name: "direct-secrets:platform", Value: "linux/" + p.arch}}

	for _, s := range info.Settings {
		if s.Key == "GOFIPS140" && s.Value != "off" {
			*image.Properties = append(*image.Properties, cyclonedx.Property{Name: "direct-secrets:fips140", Value: s.Value})
		}
	}

	binary := component(cyclonedx.ComponentTypeApplication, info.Main.Path, "v"+r.Version, purl(info.Main.Path, "v"+r.Version))
	binary.PackageURL = binary.BOMRef
	binary.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}

	components := []cyclonedx.Component{binary}
	var parts []string
	for _, m := range modules(info) {
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version, purl(m.Path, m.Version))
		c.PackageURL = c.BOMRef
		components = append(components, c)
		parts = append(parts, c.BOMRef)
	}
	roots := component(cyclonedx.ComponentTypeData, rootsModule, r.CARoots, purl(rootsModule, r.CARoots))
	roots.PackageURL = roots.BOMRef
	roots.Description = "Mozilla's CA roots at /" + rootsPath
	components = append(components, roots)

	bom := cyclonedx.NewBOM()
	// A bill with other contents must have another serial number. The seed contains everything that can differ.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(strings.Join([]string{name, r.Version, r.CARoots, p.arch, r.Created.String()}, " ")), sum[:]...)).URN()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.Created.Format(time.RFC3339), Component: &image}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{
		{Ref: image.BOMRef, Dependencies: &[]string{binary.BOMRef, roots.BOMRef}},
		{Ref: binary.BOMRef, Dependencies: &parts},
	}
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// sbomName returns the name of the file with a bill of materials.
func sbomName(name string) string { return name + ".cdx.json" }

// attachment returns an OCI artifact with a bill of materials that refers to subject. Registries list it among
// the referrers of that image.
func attachment(subject v1.Image, about map[string]string, name string, sbom []byte) (v1.Image, error) {
	refersTo, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	base, err := partial.CompressedToImage(emptyArtifact{})
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(sbom, sbomType),
		Annotations: map[string]string{ocispec.AnnotationTitle: sbomName(name)},
	})
	if err != nil {
		return nil, err
	}
	img = mutate.Annotations(img, map[string]string{ocispec.AnnotationCreated: about[ocispec.AnnotationCreated]}).(v1.Image)
	return mutate.Subject(img, *refersTo).(v1.Image), nil // This must be last, because every other change removes the subject.
}

// emptyArtifact is an OCI artifact of the type sbomType without content. Package mutate cannot set the type of
// an artifact. Its configuration is the one for artifacts without one
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#guidance-for-an-empty-descriptor).
type emptyArtifact struct{}

func (emptyArtifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (emptyArtifact) RawConfigFile() ([]byte, error)      { return ocispec.DescriptorEmptyJSON.Data, nil }

func (emptyArtifact) RawManifest() ([]byte, error) {
	return json.Marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: sbomType,
		Config:       ocispec.DescriptorEmptyJSON,
	})
}

func (emptyArtifact) LayerByDigest(d v1.Hash) (partial.CompressedLayer, error) {
	return nil, fmt.Errorf("an empty artifact has no layer %s", d)
}

// modules returns the modules that are linked into a binary, and Go's standard library as a further one. A
// module of this repository has the version that its users require, although it is built from its folder. A
// module that is replaced by another has the name of the replacement.
func modules(info *debug.BuildInfo) []debug.Module {
	out := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version != "" && m.Replace.Version != "(devel)" {
			m = m.Replace
		}
		out = append(out, *m)
	}
	return out
}

func component(kind cyclonedx.ComponentType, name, version, ref string) cyclonedx.Component {
	return cyclonedx.Component{Type: kind, Name: name, Version: version, BOMRef: ref}
}

// purl returns the package URL of a Go module (https://github.com/package-url/purl-spec).
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
