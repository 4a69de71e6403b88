package client

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

const mark = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"

var db = provider.Target{Key: "db"}

func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	if err == nil || provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) {
		t.Errorf("%s\nerror %v (%s), want %s with %q", reason, err, provider.ClassOf(err), class, part)
	}
}

func observe(t *testing.T, c *Client, at provider.Target) provider.Observed {
	t.Helper()
	o, err := c.Observe(soon(t), at)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func create(t *testing.T, c *Client, data string) provider.Written {
	t.Helper()
	w, err := c.Create(soon(t), db, []byte(data), mark)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// writes are the calls that change something.
var writes = []string{"CreateItem", "PatchItem", "ReplaceItem", "DeleteItem"}

func TestWriteRefused(t *testing.T) {
	long := strings.Repeat("a", maxText+1)
	cases := map[string]struct{ reason, key, metadata, value, part string }{
		"Control":   {"A key that is no title is rejected.", "a\x00b", ``, `{}`, "is not the title or ID of an item"},
		"Space":     {"A title with a space at its end might not be found again.", "db ", ``, `{}`, `item "db ": does not exist, and cannot be created`},
		"ID":        {"An ID would be the title of another item.", strings.Repeat("a", 26), ``, `{}`, "is an ID"},
		"Unknown":   {"The error names an unknown setting.", "db", `{"labels":{}}`, `{}`, `"labels"`},
		"Reserved":  {"The tag of the mark is rejected.", "db", `{"tags":{"direct-secrets.io_created-by":"x"}}`, `{}`, `metadata.tags: "direct-secrets.io_created-by" is reserved`},
		"TagName":   {"A name with an equals sign would be another name and value.", "db", `{"tags":{"a=b":""}}`, `{}`, `metadata.tags: "a=b" is not a tag`},
		"TagLength": {"A long tag is rejected.", "db", `{"tags":{"a":"` + long + `"}}`, `{}`, `metadata.tags: "a"`},
		"TagEmpty":  {"An empty tag is rejected.", "db", `{"tags":{"":""}}`, `{}`, `metadata.tags: ""`},
		"Text":      {"A value that is no object is rejected.", "db", ``, `hunter2`, "is not a JSON object of strings"},
		"Nested":    {"A property in a property is rejected.", "db", ``, `{"a":{"b":"c"}}`, "write a dot in a label as \\., such as tls\\.crt"},
		"Null":      {"A value without an object is rejected.", "db", ``, `null`, "is not a JSON object of strings"},
		"Member":    {"A null is not an empty text.", "db", ``, `{"a":null}`, "is not a JSON object of strings"},
		"Twice":     {"A property that occurs twice is rejected.", "db", ``, `{"a":"1","a":"2"}`, "is not a JSON object of strings"},
		"Half":      {"An escape that is not text is rejected, and not changed.", "db", ``, `{"a":"\ud800"}`, "is not a JSON object of strings"},
		"Encoding":  {"A value that is not text is rejected, and not changed.", "db", ``, "{\"a\":\"\xff\"}", "is not a JSON object of strings"},
		"Size":      {"A value that could not be read is rejected.", "db", ``, `{"a":"` + strings.Repeat("x", corev1.MaxSecretSize) + `"}`, "the value has 1048584 bytes"},
		"Label":     {"A property without a name is rejected.", "db", ``, `{"":"x"}`, `property "": is not the label of a new field`},
		"LongLabel": {"A long label is rejected.", "db", ``, `{"` + long + `":"x"}`, "is not the label of a new field"},
		"Note":      {"An empty note would be written again and again.", "db", ``, `{"notesPlain":""}`, `property "notesPlain": is the note of the item`},
		"OTP":       {"The name of a one-time password is no label.", "db", ``, `{"a?attribute=otp":"x"}`, `property "a?attribute=otp"`},
	}
	srv := start(t)
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := provider.Target{Key: tc.key}
			if tc.metadata != "" {
				at.Metadata = []byte(tc.metadata)
			}
			_, err := c.Create(soon(t), at, []byte(tc.value), mark)
			fails(t, tc.reason, err, provider.Invalid, tc.part)
		})
	}
	if n := srv.Count(writes...); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// TestUpdateFields writes a value to an item, and compares its fields by ID.
func TestUpdateFields(t *testing.T) {
	web := &emulator.Section{ID: "s1", Label: "web"}
	item := emulator.Item{
		Title: "db", Category: "LOGIN", Tags: []string{"prod", "team=shop"},
		Fields: []emulator.Field{
			{ID: "username", Label: "username", Value: "ada"},
			{ID: "password", Label: "pass~/word", Value: "old"},
			{ID: "f~/1", Label: "host", Section: web, Value: "a"},
			{ID: "twin1", Label: "twin", Value: "1"},
			{ID: "twin2", Label: "twin", Value: "2"},
			{ID: "notesPlain", Purpose: "NOTES", Label: "notesPlain"},
		},
		Files: []emulator.File{{ID: strings.Repeat("f", 26), Name: "ca.crt", Content: []byte("pem")}},
	}
	was := map[string]string{"username": "ada", "password": "old", "f~/1": "a", "twin1": "1", "twin2": "2", "notesPlain": ""}
	with := func(change map[string]string, without ...string) map[string]string {
		all := maps.Clone(was)
		maps.Copy(all, change)
		for _, id := range without {
			delete(all, id)
		}
		return all
	}
	const rest = `"username":"ada","pass~/word":"old","host":"a","twin1":"1","twin2":"2","ca.crt":"pem"`
	cases := map[string]struct {
		reason, value string
		want          map[string]string // values by ID, or "new LABEL"
		part          string            // of the error
	}{
		"Same":      {"The same value writes nothing.", `{` + rest + `}`, was, ""},
		"Changed":   {"Only the field that differs is written.", `{` + strings.Replace(rest, `"old"`, `"new"`, 1) + `}`, with(map[string]string{"password": "new"}), ""},
		"Escaped":   {"An ID with a slash is one field.", `{` + strings.Replace(rest, `"host":"a"`, `"host":"b"`, 1) + `}`, with(map[string]string{"f~/1": "b"}), ""},
		"Ambiguous": {"Fields with one label are written by their IDs.", `{` + strings.Replace(rest, `"twin1":"1"`, `"twin1":"3"`, 1) + `}`, with(map[string]string{"twin1": "3"}), ""},
		"Added":     {"A new property is a new field.", `{` + rest + `,"port":"5432"}`, with(map[string]string{"new port": "5432"}), ""},
		"Note":      {"A note is written to the field that each item has.", `{` + rest + `,"notesPlain":"x"}`, with(map[string]string{"notesPlain": "x"}), ""},
		"Removed":   {"A property that is missing is removed.", `{` + strings.Replace(rest, `"username":"ada",`, ``, 1) + `}`, with(nil, "username"), ""},
		"File":      {"A file cannot be written.", `{` + strings.Replace(rest, `"pem"`, `"x"`, 1) + `}`, was, `property "ca.crt": is a file`},
		"NoFile":    {"A file cannot be removed.", `{` + strings.Replace(rest, `,"ca.crt":"pem"`, ``, 1) + `}`, was, `property "ca.crt": is a file`},
		"ID":        {"The ID of a field that has a label would be another field.", `{` + rest + `,"password":"x"}`, was, `property "password": is also a name of other fields or files; use another name, or one of: pass~/word`},
		"Section":   {"The same is true for a section with a label.", `{` + rest + `,"web.host":"x"}`, was, `use another name, or one of: host`},
		"SameLabel": {"A label of several fields is refused with their IDs.", `{` + rest + `,"twin":"x"}`, was, `one of: twin1, twin2`},
		"BadLabel":  {"A name that is no label is refused.", `{` + rest + `," x":"x"}`, was, `property " x"`},
		"NoObject":  {"A value that is no object is refused.", `hunter2`, was, "is not a JSON object of strings"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			id := srv.Add(vaultName, item)
			c := client(t, srv)
			o := observe(t, c, db)
			w, err := c.Update(soon(t), db, o, []byte(tc.value))
			if tc.part != "" {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
			} else if after := observe(t, c, db); err != nil || w.Version != after.Version || (w.Version == o.Version) != (name == "Same") {
				t.Errorf("%s\nUpdate(...) = %+v, %v; seen before %q, after %q", tc.reason, w, err, o.Version, after.Version)
			}
			got := map[string]string{}
			for _, f := range srv.Item(id).Fields {
				if _, old := was[f.ID]; !old {
					f.ID = "new " + f.Label
				}
				got[f.ID] = f.Value
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfields: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(item.Tags, srv.Item(id).Tags); diff != "" {
				t.Errorf("%s\ntags: -want, +got:\n%s", tc.reason, diff)
			}
			if n := srv.Count(writes...); n > 1 || n == 1 && tc.part != "" {
				t.Errorf("%s\n%d writes", tc.reason, n)
			}
		})
	}
}

// TestSameID writes to an item of which two fields have one ID, so that a change of one could be a change of the other.
func TestSameID(t *testing.T) {
	item := emulator.Item{Title: "db", Fields: []emulator.Field{
		{ID: "x", Label: "a", Value: "1"}, {ID: "x", Label: "b", Value: "2"}, {ID: "y", Label: "c", Value: "3"},
	}}
	cases := map[string]struct{ reason, value, part, want string }{
		"Other":   {"A field with its own ID is written.", `{"a":"1","b":"2","c":"4"}`, "", `{"a":"1","b":"2","c":"4"}`},
		"Changed": {"A change of one of the two is refused.", `{"a":"1","b":"4","c":"3"}`, `property "b": another field of the item has the same ID`, `{"a":"1","b":"2","c":"3"}`},
		"Removed": {"So is its removal.", `{"a":"1","c":"3"}`, `property "b": another field of the item has the same ID`, `{"a":"1","b":"2","c":"3"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Add(vaultName, item)
			c := client(t, srv)
			_, err := c.Update(soon(t), db, observe(t, c, db), []byte(tc.value))
			if tc.part != "" {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
			} else if err != nil {
				t.Errorf("%s\nUpdate(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, string(observe(t, c, db).Data)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNote creates an item with a note, and removes it again.
func TestNote(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	create(t, c, `{"a":"1","notesPlain":"text"}`)
	if diff := cmp.Diff(`{"a":"1","notesPlain":"text"}`, string(observe(t, c, db).Data)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := c.Update(soon(t), db, observe(t, c, db), []byte(`{"a":"1"}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"a":"1"}`, string(observe(t, c, db).Data)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if fields := srv.Items(vaultName)[0].Fields; len(fields) != 2 || fields[1].Purpose != purposeNotes {
		t.Errorf("An item has one note: %+v", fields)
	}
}

// during makes the next call of a name wait, and meanwhile calls other, like another client.
func during(t *testing.T, srv *emulator.Server, call string, other func()) {
	t.Helper()
	ctx, before := soon(t), srv.Count(call)
	release := srv.Inject(emulator.Fault{Call: call, Hang: true})
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer release()
		if err := srv.Wait(ctx, before+1, call); err != nil {
			t.Error(err)
		}
		other()
	}()
}

// TestUpdateOverlap makes another client write between the last read of an update and the update.
func TestUpdateOverlap(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	create(t, c, `{"a":"1","b":"1"}`)
	o := observe(t, c, db)
	during(t, srv, "PatchItem", func() { srv.SetField(vaultName, "db", "b", "theirs") })
	_, err := c.Update(soon(t), db, o, []byte(`{"a":"ours","b":"1","c":"ours"}`))
	fails(t, "An overlap is reported, also of a write with several changes.", err, provider.Unavailable, "its values are in the item's history")
	if diff := cmp.Diff(`{"a":"ours","b":"theirs","c":"ours"}`, string(observe(t, c, db).Data)); diff != "" {
		t.Errorf("Both fields are written: -want, +got:\n%s", diff)
	}
}

// TestCreateOverlap makes another client create an item with the title at the same time.
func TestCreateOverlap(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	during(t, srv, "CreateItem", func() { srv.Put(vaultName, "db", map[string]string{"a": "theirs"}, nil) })
	_, err := c.Create(soon(t), db, []byte(`{"a":"ours"}`), mark)
	fails(t, "A second item with the title is a conflict.", err, provider.Conflict, "another client created it at the same time")
	o := observe(t, c, db)
	if diff := cmp.Diff([]string{`{"a":"theirs"}`, ""}, []string{string(o.Data), o.Mark}); diff != "" {
		t.Errorf("Only the item of the other client remains: -want, +got:\n%s", diff)
	}
}

// TestLag creates an item that lists lack for a while: it exists nevertheless, and is not created twice.
func TestLag(t *testing.T) {
	srv := start(t, emulator.WithLag(4))
	c := client(t, srv)
	w := create(t, c, `{"a":"1"}`)
	if o := observe(t, c, db); o.Version != w.Version || o.Mark != mark {
		t.Errorf("Observe(...) = %+v after %+v", o, w)
	}
	_, err := c.Create(soon(t), db, []byte(`{"a":"2"}`), mark)
	fails(t, "An item that lists lack exists.", err, provider.Conflict, "another client created it meanwhile")
	if n := srv.Count("CreateItem"); n != 1 {
		t.Errorf("%d creations", n)
	}
}

// TestUnanswered creates an item, and loses the answer.
func TestUnanswered(t *testing.T) {
	srv := start(t, emulator.WithLag(1))
	c := client(t, srv)
	srv.Inject(emulator.Fault{Call: "CreateItem", Times: 1, Body: []byte("lost")})
	_, err := c.Create(soon(t), db, []byte(`{"a":"1"}`), mark)
	fails(t, "A creation without an answer fails.", err, provider.Unavailable, "is not that of the Connect server")
	_, err = c.Create(soon(t), db, []byte(`{"a":"1"}`), mark)
	fails(t, "It is not repeated before the item must be listed.", err, provider.Unavailable, `item "db": Connect did not answer when the item was created; it is created again at`)
	if o := observe(t, c, db); o.Mark != mark || srv.Count("CreateItem") != 1 {
		t.Errorf("the item has mark %q after %d creations", o.Mark, srv.Count("CreateItem"))
	}
	c.unanswered["other"] = time.Now()
	if _, err := c.Create(soon(t), provider.Target{Key: "other"}, []byte(`{"a":"1"}`), mark); err != nil {
		t.Errorf("After that time, an item is created again: %v", err)
	}
}

// TestHidden deletes items, of which some have a property that is not in the value.
func TestHidden(t *testing.T) {
	field := func(id, label string) emulator.Field { return emulator.Field{ID: id, Label: label, Value: "1"} }
	file := func(content string) emulator.File {
		return emulator.File{ID: strings.Repeat("f", 26), Name: "file", Content: []byte(content)}
	}
	cases := map[string]struct {
		reason string
		item   emulator.Item
		part   string
	}{
		"Text":      {"An item whose value has everything is deleted.", emulator.Item{Fields: []emulator.Field{field("a", "")}, Files: []emulator.File{file("pem")}}, ""},
		"Ambiguous": {"Fields with one label are in the value by their IDs.", emulator.Item{Fields: []emulator.Field{field("a", "x"), field("b", "x")}}, ""},
		"Binary":    {"A file that is not text is kept.", emulator.Item{Files: []emulator.File{file("\xff")}}, "has files or fields that a push does not know: " + strings.Repeat("f", 26)},
		"Large":     {"A file that is not read is kept.", emulator.Item{Files: []emulator.File{file(strings.Repeat("x", corev1.MaxSecretSize+1))}}, strings.Repeat("f", 26)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			tc.item.Title = "db"
			srv.Add(vaultName, tc.item)
			c := client(t, srv)
			err := c.Delete(soon(t), db, observe(t, c, db))
			if n := len(srv.Items(vaultName)); tc.part == "" && (err != nil || n != 0) {
				t.Errorf("%s\nDelete(...): %v; %d items are left", tc.reason, err, n)
			} else if tc.part != "" {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
			}
		})
	}
}

// TestTags sets tags by name, and keeps the others and the mark.
func TestTags(t *testing.T) {
	cases := map[string]struct {
		reason   string
		tags     []string
		metadata string
		want     []string
		drift    []string
	}{
		"None":    {"Without metadata all tags stay.", []string{"a", "b=1"}, ``, []string{"a", "b=1"}, nil},
		"Same":    {"The same tags do not differ.", []string{"a", "b=1"}, `{"tags":{"a":"","b":"1"}}`, []string{"a", "b=1"}, nil},
		"Added":   {"A missing tag is added.", []string{"a"}, `{"tags":{"b":"1","c":""}}`, []string{"a", "b=1", "c"}, []string{"tags.b", "tags.c"}},
		"Changed": {"A tag of the same name is replaced.", []string{"b=0", "a"}, `{"tags":{"b":"1"}}`, []string{"b=1", "a"}, []string{"tags.b"}},
		"Twice":   {"Another tag of the name stays, because someone else set it.", []string{"b=2", "b=1", "b"}, `{"tags":{"b":"1"}}`, []string{"b=2", "b=1", "b"}, nil},
		"Marked":  {"The mark stays.", []string{markTag + "=" + mark}, `{"tags":{"b":"1"}}`, []string{markTag + "=" + mark, "b=1"}, []string{"tags.b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			id := srv.Add(vaultName, emulator.Item{Title: "db", Tags: tc.tags, Fields: []emulator.Field{{Label: "a", Value: "1"}}})
			c := client(t, srv)
			at := db
			if tc.metadata != "" {
				at.Metadata = []byte(tc.metadata)
			}
			o := observe(t, c, at)
			if diff := cmp.Diff(tc.drift, o.Drift); diff != "" {
				t.Errorf("%s\ndrift: -want, +got:\n%s", tc.reason, diff)
			}
			w, err := c.Update(soon(t), at, o, nil)
			if err != nil || w.Version != o.Version {
				t.Errorf("%s\nUpdate(...) = %+v, %v; want version %q", tc.reason, w, err, o.Version)
			}
			if diff := cmp.Diff(tc.want, srv.Item(id).Tags); diff != "" {
				t.Errorf("%s\ntags: -want, +got:\n%s", tc.reason, diff)
			}
			if n := srv.Count(writes...); n != min(len(tc.drift), 1) {
				t.Errorf("%s\n%d writes", tc.reason, n)
			}
		})
	}
}

// TestTagsUnclear wants another value of a name that several tags have: each of them can be one that someone else set.
func TestTagsUnclear(t *testing.T) {
	srv := start(t)
	tags := []string{"team=a", "team=b"}
	id := srv.Add(vaultName, emulator.Item{Title: "db", Tags: tags})
	c := client(t, srv)
	at := provider.Target{Key: "db", Metadata: []byte(`{"tags":{"team":"c"}}`)}
	_, err := c.Update(soon(t), at, observe(t, c, at), nil)
	fails(t, "No tag is lost.", err, provider.Invalid, `metadata.tags: the item has several tags "team": team=a, team=b; remove all but one in 1Password, or add "team=c" there`)
	if diff := cmp.Diff(tags, srv.Item(id).Tags); diff != "" {
		t.Errorf("tags: -want, +got:\n%s", diff)
	}
}

// TestTagsRead reads tags as metadata.
func TestTagsRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		tags   []string
		want   map[string]string
	}{
		"Names":   {"A tag is a name, or a name and a value.", []string{"prod", "team=a"}, map[string]string{"prod": "", "team": "a"}},
		"Several": {"No value of a name is lost, in any order of the tags.", []string{"team=b", "team=a"}, map[string]string{"team": "a,b"}},
		"Bare":    {"A tag without a value adds none.", []string{"team=a", "team"}, map[string]string{"team": "a"}},
		"Equals":  {"A value can have an equals sign.", []string{"team=a=b"}, map[string]string{"team": "a=b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Add(vaultName, emulator.Item{Title: "db", Tags: tc.tags})
			v, err := client(t, srv).Get(soon(t), provider.Ref{Key: "db", Metadata: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, v.Metadata); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWriteErrors makes writes fail.
func TestWriteErrors(t *testing.T) {
	calls := map[string]func(*testing.T, *Client) error{
		"CreateItem": func(t *testing.T, c *Client) error {
			_, err := c.Create(soon(t), provider.Target{Key: "new"}, []byte(`{}`), mark)
			return err
		},
		"PatchItem": func(t *testing.T, c *Client) error {
			_, err := c.Update(soon(t), db, observe(t, c, db), []byte(`{"a":"2"}`))
			return err
		},
		"DeleteItem": func(t *testing.T, c *Client) error { return c.Delete(soon(t), db, observe(t, c, db)) },
	}
	cases := map[string]struct {
		reason string
		status int
		class  provider.Class
		part   string
	}{
		"Denied":   {"A token that only reads needs more.", http.StatusForbidden, provider.Denied, "grant the token of spec.auth.secretRef.connectTokenSecretRef write access to the vault"},
		"Conflict": {"1Password refuses writes to a vault that overlap.", http.StatusConflict, provider.Conflict, "another client changes the vault at the same time"},
		"Invalid":  {"A request that Connect does not accept is not repeated.", http.StatusBadRequest, provider.Invalid, "refuses the request (status 400)"},
	}
	for name, tc := range cases {
		for _, call := range slices.Sorted(maps.Keys(calls)) {
			t.Run(name+call, func(t *testing.T) {
				srv := start(t)
				c := client(t, srv)
				create(t, c, `{"a":"1"}`)
				srv.Inject(emulator.Fault{Call: call, Status: tc.status})
				fails(t, tc.reason, calls[call](t, c), tc.class, tc.part)
				if diff := cmp.Diff(`{"a":"1"}`, string(observe(t, c, db).Data)); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestVaults writes to an item of a later vault, and creates one in the first.
func TestVaults(t *testing.T) {
	srv := start(t, emulator.WithVault("shared"))
	srv.Put("shared", "db", map[string]string{"a": "1"}, nil)
	c := client(t, srv, in(vaultName, "shared"))
	if _, err := c.Update(soon(t), db, observe(t, c, db), []byte(`{"a":"2"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(soon(t), provider.Target{Key: "new"}, []byte(`{"a":"3"}`), mark); err != nil {
		t.Fatal(err)
	}
	values := func(vault string) (all []string) {
		for _, i := range srv.Items(vault) {
			all = append(all, i.Title+"="+i.Fields[0].Value)
		}
		return all
	}
	if diff := cmp.Diff([][]string{{"new=3"}, {"db=2"}}, [][]string{values(vaultName), values("shared")}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestVersion compares the versions of items that differ in one place.
func TestVersion(t *testing.T) {
	made := func(change func(*item)) *item {
		i := &item{
			ID: "i", Vault: vault{ID: "v"}, Version: 1, Title: "db", Tags: []string{"a"},
			Fields: []entry{{ID: "f", Label: "l", Value: "x"}}, Files: []entry{{ID: "g", Name: "n", Size: 1}},
		}
		change(i)
		return i
	}
	content := map[string][]byte{"g": {0xff}}
	was := versionOf(made(func(*item) {}), content)
	cases := map[string]struct {
		reason  string
		change  func(*item)
		content []byte
		same    bool
	}{
		"Version": {"Each write has a version, also one of a tag.", func(i *item) { i.Version = 2 }, []byte{0xff}, true},
		"Tags":    {"A tag is no value.", func(i *item) { i.Tags = nil }, []byte{0xff}, true},
		"OTP":     {"A one-time password changes each half minute.", func(i *item) { i.Fields[0].TOTP = "123456" }, []byte{0xff}, true},
		"Note":    {"An empty note is no property.", func(i *item) { i.Fields = append(i.Fields, entry{ID: "n", Purpose: purposeNotes}) }, []byte{0xff}, true},
		"Value":   {"A value counts.", func(i *item) { i.Fields[0].Value = "y" }, []byte{0xff}, false},
		"Label":   {"A label counts.", func(i *item) { i.Fields[0].Label = "y" }, []byte{0xff}, false},
		"Section": {"A section counts.", func(i *item) { i.Fields[0].Section = &section{Label: "s"} }, []byte{0xff}, false},
		"Content": {"The content of a file counts.", func(*item) {}, []byte{0xfe}, false},
		"ID":      {"Two items with one value have two versions.", func(i *item) { i.ID = "j" }, []byte{0xff}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := versionOf(made(tc.change), map[string][]byte{"g": tc.content})
			if (got == was) != tc.same {
				t.Errorf("%s\nversions %q and %q", tc.reason, was, got)
			}
		})
	}
}
