package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// rootsPath is one of the files in which Go looks for CA roots on Linux.
	rootsPath = "etc/ssl/certs/ca-certificates.crt"
	// rootsModule is the source of the CA roots: Mozilla's list, as packaged by the Go project.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
)

// epoch is the time of every file. It is not that of the release, so that an unchanged layer keeps its digest,
// and is neither pushed nor pulled again.
var epoch = time.Unix(0, 0)

// caRoots returns Mozilla's roots for servers. It omits roots that Mozilla trusts only for certificates issued
// before some date, because a PEM file cannot contain that date.
func caRoots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// compression is the compression level of layers. Tests use a lower one, because compression takes most of
// their time with the race detector.
var compression = gzip.DefaultCompression

// A file is a file of an image. Its name has no leading slash.
type file struct {
	name string
	mode int64
	data []byte
}

// layer returns a compressed layer with files that root owns and every user can read.
func layer(of []file) (v1.Layer, error) {
	var content bytes.Buffer
	files := tar.NewWriter(&content)
	folders := map[string]bool{}
	for _, f := range of {
		for i, c := range f.name {
			if c != '/' || folders[f.name[:i]] {
				continue
			}
			folders[f.name[:i]] = true
			if err := files.WriteHeader(header(tar.TypeDir, f.name[:i+1], 0o755, 0)); err != nil {
				return nil, err
			}
		}
		if err := writeFile(files, f.name, f.mode, f.data); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(opener,
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(compression), tarball.WithCompressedCaching)
}

func writeFile(files *tar.Writer, name string, mode int64, data []byte) error {
	if err := files.WriteHeader(header(tar.TypeReg, name, mode, len(data))); err != nil {
		return err
	}
	_, err := files.Write(data)
	return err
}

func header(kind byte, name string, mode int64, size int) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: int64(size), ModTime: epoch, Format: tar.FormatUSTAR}
}
