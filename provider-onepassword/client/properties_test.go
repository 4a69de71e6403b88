package client

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

// TestProperties reads items through the emulator.
func TestProperties(t *testing.T) {
	type further = map[string]provider.Further
	web, api := &emulator.Section{ID: "s1", Label: "web"}, &emulator.Section{ID: "s2", Label: "api"}
	refused := func(names string) provider.Further {
		return provider.Further{Refused: "several fields or files have this name; read them in data by property: " + names + "; for extract and the whole item, rename all but one in 1Password"}
	}
	data := func(v string) provider.Further { return provider.Further{Data: []byte(v)} }
	fileID := strings.Repeat("f", 26)
	cases := map[string]struct {
		reason  string
		item    emulator.Item
		data    string
		binary  map[string][]byte
		further further
	}{
		"Label": {"A field has its label as its name, and its ID as a further one.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "host", Value: "h"}}}, `{"host":"h"}`, nil, further{"f1": data("h")}},
		"Section": {"A field of a section is also read with the section.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "host", Value: "h", Section: web}}}, `{"host":"h"}`, nil, further{"web.host": data("h"), "f1": data("h")}},
		"SectionByID": {"A field can name its section by ID alone.",
			emulator.Item{Sections: []emulator.Section{*web}, Fields: []emulator.Field{{ID: "f1", Label: "host", Value: "h", Section: &emulator.Section{ID: "s1"}}}},
			`{"host":"h"}`, nil, further{"web.host": data("h"), "f1": data("h")}},
		"Empty": {"An empty field exists.", emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "host"}}}, `{"host":""}`, nil, further{"f1": data("")}},
		"NoLabel": {"A field without a label is read by its ID.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Value: "h", Section: web}}}, `{"f1":"h"}`, nil, nil},
		"Ambiguous": {"A label of two fields is refused with the names that work, and both are read with their sections.",
			emulator.Item{Fields: []emulator.Field{{ID: "f2", Label: "host", Value: "h", Section: web}, {ID: "f1", Label: "host", Value: "i", Section: api}}},
			`{"api.host":"i","web.host":"h"}`, nil, further{"host": refused("api.host, web.host"), "f1": data("i"), "f2": data("h")}},
		"Renamed": {"Once all but one are renamed, as the refusal says, nothing is refused, so extract reads the item, and the other keeps its key.",
			emulator.Item{Fields: []emulator.Field{{ID: "f2", Label: "host", Value: "h", Section: web}, {ID: "f1", Label: "api-host", Value: "i", Section: api}}},
			`{"api-host":"i","host":"h"}`, nil, further{"web.host": data("h"), "f2": data("h"), "api.api-host": data("i"), "f1": data("i")}},
		"SameSection": {"Two fields with one label in one section are read by their IDs.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "host", Value: "h", Section: web}, {ID: "f2", Label: "host", Value: "i", Section: web}}},
			`{"f1":"h","f2":"i"}`, nil, further{"host": refused("f1, f2"), "web.host": refused("f1, f2")}},
		"ID": {"An ID is a better name than a label, so the label of another field cannot hide the password of the item.",
			emulator.Item{Fields: []emulator.Field{{ID: "password", Label: "password", Value: "p"}, {ID: "f1", Label: "password", Value: "other", Section: api}}},
			`{"api.password":"other","password":"p"}`, nil, further{"f1": data("other")}},
		"Dots": {"A label with a dot is a better name than a section and a label.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "web.host", Value: "a"}, {ID: "f2", Label: "host", Value: "b", Section: web}}},
			`{"host":"b","web.host":"a"}`, nil, further{"f1": data("a"), "f2": data("b")}},
		"OTP": {"A one-time password has its URI as the value, which does not change, and its code by a name of 1Password.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "code", Type: "OTP", Value: "otpauth://totp/a", TOTP: "123456"}}},
			`{"code":"otpauth://totp/a"}`, nil, further{"f1": data("otpauth://totp/a"), "code?attribute=otp": data("123456"), "f1?attribute=otp": data("123456")}},
		"OTPName": {"The label of another field is not hidden by a code.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Label: "code", Type: "OTP", Value: "u", TOTP: "1"}, {ID: "f2", Label: "code?attribute=otp", Value: "2"}}},
			`{"code":"u","code?attribute=otp":"2"}`, nil, further{"f1": data("u"), "f1?attribute=otp": data("1"), "f2": data("2")}},
		"TextFile": {"A text file is a property like a field.",
			emulator.Item{Files: []emulator.File{{ID: fileID, Name: "ca.pem", Content: []byte("pem\n")}}}, `{"ca.pem":"pem\n"}`, nil, further{fileID: data("pem\n")}},
		"BinaryFile": {"Another file is returned byte for byte.",
			emulator.Item{Files: []emulator.File{{ID: fileID, Name: "a.jks", Content: []byte{0xff, 0}}}}, `{}`, map[string][]byte{"a.jks": {0xff, 0}}, further{fileID: data("\xff\x00")}},
		"LargeFile": {"A file that no Secret can hold is refused, and does not affect the fields.",
			emulator.Item{Fields: []emulator.Field{{ID: "f1", Value: "h"}}, Files: []emulator.File{{ID: fileID, Name: "a", Content: make([]byte, corev1.MaxSecretSize+1)}}},
			`{"f1":"h"}`, nil, further{
				"a": {Refused: "the file has 1048577 bytes, and a Secret holds at most 1048576; store a smaller file"}, fileID: {Refused: "the file has 1048577 bytes, and a Secret holds at most 1048576; store a smaller file"},
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			tc.item.Title = "db"
			srv.Add(vaultName, tc.item)
			got, err := client(t, srv).Get(soon(t), provider.Ref{Key: "db"})
			if err != nil {
				t.Fatal(err)
			}
			want := provider.Value{Key: "db", Version: got.Version, Data: []byte(tc.data), Binary: tc.binary, Further: tc.further}
			if tc.binary == nil {
				want.Binary = map[string][]byte{}
			}
			if tc.further == nil {
				want.Further = further{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManyFiles reads an item whose files together are more than one answer.
func TestManyFiles(t *testing.T) {
	srv := start(t)
	item := emulator.Item{Title: "db"}
	for _, name := range []string{"a", "b", "c"} {
		item.Files = append(item.Files, emulator.File{Name: name, Content: bytes.Repeat([]byte("x"), corev1.MaxSecretSize*3/4)})
	}
	srv.Add(vaultName, item)
	v, err := client(t, srv).Get(soon(t), provider.Ref{Key: "db"})
	if err != nil {
		t.Fatal(err)
	}
	if srv.Count("GetFileContent") != 2 || !strings.HasPrefix(v.Further["c"].Refused, "the item has more than 1572864 bytes of files") {
		t.Errorf("%d files are read, and the last one has %q", srv.Count("GetFileContent"), v.Further["c"].Refused)
	}
}
