// Command image packs modules into OCI images, without a container engine. For each module it writes one
// archive (https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md in a tar file), and the
// bill of materials of each architecture:
//
//	image -version 0.1.0 -archs 'amd64 arm64' -out bin/images provider-aws provider-vault
//
// With -fips it also writes an image with the version VERSION-fips for each module, which is built with Go's validated
// cryptographic module. The names of its files have the suffix -fips after the name of the module.
//
// With -dsctl it writes an archive of dsctl for each platform instead, with their checksums and the manifest
// for krew.
//
// Run it in the folder of the root module, whose go.mod has the version of the CA roots, and which contains the
// LICENSE. An image depends only on the sources, the versions of Go and of the modules, the flags, and
// SOURCE_DATE_EPOCH.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "version of the images, without a leading v")
	revision := flag.String("revision", "", "commit that the sources are of; empty where they are of none")
	archs := flag.String("archs", "amd64 arm64", "architectures, as Go names them")
	out := flag.String("out", "bin/images", "folder of the archives")
	dsctl := flag.Bool("dsctl", false, "write archives of dsctl, and no images")
	loadable := flag.Bool("load", false, "also write an archive of each architecture that kind, containerd and Docker load without a registry")
	fips := flag.Bool("fips", false, "also write the image VERSION-fips of each module, with Go's validated cryptographic module")
	flag.Parse()
	variants := []variant{{crypto: "off"}}
	if *fips {
		variants = append(variants, variant{"-fips", fipsModule})
	}
	if *dsctl {
		if err := saveDsctl(release{Version: *version}, *out); err != nil {
			fmt.Fprintln(os.Stderr, "image:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(release{Version: *version, Revision: *revision}, strings.Fields(*archs), *out, *loadable, flag.Args(), variants...); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// A release holds the properties that the images of all modules share.
type release struct {
	// Version is that of the images, without a leading v.
	Version string
	// Revision is the commit, or empty if no commit contains the sources.
	Revision string
	// Created is the only time in an image.
	Created time.Time
	// CARoots is the version of the module with the CA roots.
	CARoots string
	// Licences are those of the project and of the CA roots.
	Licences []file
}

// A variant is an image of each module. suffix is that of its version and its files, and crypto the version of Go's
// cryptographic module, or off.
type variant struct{ suffix, crypto string }

func run(r release, archs []string, out string, loadable bool, modules []string, variants ...variant) error {
	if r.Version == "" || len(archs) == 0 || len(modules) == 0 {
		return fmt.Errorf("a -version, an architecture and a module are needed")
	}
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH must be the seconds since 1970: %w", err)
	}
	r.Created = time.Unix(seconds, 0).UTC()
	if r.CARoots, err = moduleVersion(rootsModule); err != nil {
		return err
	}
	if r.Licences, err = commonLicences("."); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, folder := range modules {
		for _, v := range variants {
			if err := save(r, v, folder, archs, out, loadable); err != nil {
				return err
			}
		}
	}
	return nil
}

// save builds a variant of the image of the module in folder, and writes its files into out.
func save(r release, v variant, folder string, archs []string, out string, loadable bool) error {
	name := filepath.Base(folder)
	r.Version += v.suffix
	programs, err := build(folder, archs, v.crypto)
	if err != nil {
		return fmt.Errorf("cannot build %s: %w", name, err)
	}
	img, err := pack(r, name, programs)
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", name, err)
	}
	name += v.suffix
	if err := img.save(out, name); err != nil {
		return fmt.Errorf("cannot write the archive of %s: %w", name, err)
	}
	if loadable {
		if err := img.saveLoadable(out, name); err != nil {
			return fmt.Errorf("cannot write the archives of %s to load: %w", name, err)
		}
	}
	fmt.Println(name, img.digest)
	return nil
}
