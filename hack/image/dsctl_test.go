//go:build long

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDsctlArchive checks the files of an archive of dsctl, and that it is reproducible.
func TestDsctlArchive(t *testing.T) {
	cases := map[string]struct {
		reason string
		on     platform
		name   string
		want   map[string]string
	}{
		"Linux": {
			reason: "the archive has an executable program and the licences", on: platform{"linux", "arm64"}, name: "dsctl-linux-arm64.tar.gz",
			want: map[string]string{"dsctl": "755 program", "LICENSE": "644 own", "licenses/x/NOTICE": "644 x"},
		},
		"Windows": {
			reason: "the program for Windows has its suffix", on: platform{"windows", "amd64"}, name: "dsctl-windows-amd64.tar.gz",
			want: map[string]string{"dsctl.exe": "755 program", "LICENSE": "644 own", "licenses/x/NOTICE": "644 x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			build := func() archive {
				return must(packDsctl(tc.on, []byte("program"), []file{
					{name: "licenses/x/NOTICE", mode: 0o644, data: []byte("x")}, {name: "LICENSE", mode: 0o644, data: []byte("own")},
				}))(t)
			}
			a := build()
			got := map[string]string{}
			for file, e := range filesOf(t, must(gzip.NewReader(bytes.NewReader(a.data)))(t)) {
				got[file] = fmt.Sprintf("%o %s", e.head.Mode, e.data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || a.name != tc.name {
				t.Errorf("%s: %s: -want, +got:\n%s", tc.reason, a.name, diff)
			}
			if again := build(); again.sum() != a.sum() {
				t.Errorf("%s: another build has another checksum", tc.reason)
			}
		})
	}
}

func TestKrewManifest(t *testing.T) {
	archives := []archive{
		{platform: platform{"linux", "amd64"}, name: "dsctl-linux-amd64.tar.gz", binary: "dsctl", data: []byte("a")},
		{platform: platform{"windows", "amd64"}, name: "dsctl-windows-amd64.tar.gz", binary: "dsctl.exe", data: []byte("b")},
	}
	want := `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: direct-secrets
spec:
  description: |
    Reports what is wrong with the objects of direct-secrets, why, and the fix. Lists objects of all Kinds, follows secrets
    from stores to workloads, refreshes and suspends objects, and renders them offline. It prints no value of a secret
    unless asked to.
  homepage: https://github.com/direct-secrets/direct-secrets
  platforms:
  - bin: dsctl
    selector:
      matchLabels:
        arch: amd64
        os: linux
    sha256: ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
    uri: https://github.com/direct-secrets/direct-secrets/releases/download/v0.1.1/dsctl-linux-amd64.tar.gz
  - bin: dsctl.exe
    selector:
      matchLabels:
        arch: amd64
        os: windows
    sha256: 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d
    uri: https://github.com/direct-secrets/direct-secrets/releases/download/v0.1.1/dsctl-windows-amd64.tar.gz
  shortDescription: Report what is wrong with synced secrets
  version: v0.1.1
`
	got := must(krewManifest(release{Version: "0.1.1"}, archives))(t)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	sums := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  dsctl-linux-amd64.tar.gz\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  dsctl-windows-amd64.tar.gz\n"
	if diff := cmp.Diff(sums, string(checksums(archives))); diff != "" {
		t.Errorf("checksums: -want, +got:\n%s", diff)
	}
}
