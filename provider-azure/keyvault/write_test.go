package keyvault

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

const mark = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"

func target(metadata string) provider.Target {
	t := provider.Target{Key: "db"}
	if metadata != "" {
		t.Metadata = []byte(metadata)
	}
	return t
}

func observe(t *testing.T, c *Client, metadata string) provider.Observed {
	t.Helper()
	o, err := c.Observe(soon(t), target(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func create(t *testing.T, c *Client, metadata, value string) provider.Written {
	t.Helper()
	w, err := c.Create(soon(t), target(metadata), []byte(value), mark)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRefusedBeforeAnyCall(t *testing.T) {
	long := strings.Repeat("a", 257)
	many := strings.TrimSuffix(strings.Repeat(`"x":"",`, 1), ",")
	for i := range 14 {
		many += `,"` + strings.Repeat("a", i+1) + `":""`
	}
	cases := map[string]struct{ reason, key, metadata, value, part string }{
		"Key":          {"A key that is no name is rejected.", "a/b", ``, "x", "is not the name of a secret"},
		"NoObject":     {"Metadata that are not an object are rejected.", "db", `[]`, "x", "metadata: "},
		"Unknown":      {"The error names an unknown setting.", "db", `{"labels":{}}`, "x", `"labels"`},
		"Reserved":     {"The tag of the mark is rejected.", "db", `{"tags":{"direct-secrets.io_created-by":"x"}}`, "x", `metadata.tags: "direct-secrets.io_created-by" is reserved`},
		"TagName":      {"A tag whose name is too long is rejected.", "db", `{"tags":{"` + long + `":""}}`, "x", "metadata.tags: "},
		"TagValue":     {"A tag whose value is too long is rejected.", "db", `{"tags":{"team":"` + long + `"}}`, "x", `metadata.tags: "team"`},
		"NoName":       {"A tag without a name is rejected.", "db", `{"tags":{"":"x"}}`, "x", "must have a name"},
		"ContentType":  {"A content type that is too long is rejected.", "db", `{"contentType":"` + long + `"}`, "x", "metadata.contentType: "},
		"Activation":   {"A date that is no time is rejected.", "db", `{"activationDate":"tomorrow"}`, "x", `metadata.activationDate: "tomorrow" is not a time`},
		"Expiration":   {"A date without a zone is rejected.", "db", `{"expirationDate":"2027-01-31T12:00:00"}`, "x", "metadata.expirationDate: "},
		"Order":        {"An expiration before the activation is rejected.", "db", `{"activationDate":"2027-01-31T12:00:00Z","expirationDate":"2027-01-31T12:00:00Z"}`, "x", "must be after activationDate"},
		"Size":         {"A value that is too large is rejected.", "db", ``, strings.Repeat("x", maxSize+1), "the value has 25601 bytes"},
		"Text":         {"A value that is not text is rejected.", "db", ``, "\xff", "the value is not text"},
		"ManyOfCreate": {"Too many tags are rejected with those of the operator.", "db", `{"tags":{` + many + `}}`, "", "the secret has 17 tags, at most 15 are allowed"},
	}
	srv := start(t)
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := provider.Target{Key: tc.key}
			if tc.metadata != "" {
				at.Metadata = []byte(tc.metadata)
			}
			_, created := c.Create(soon(t), at, []byte(tc.value), mark)
			fails(t, tc.reason, created, provider.Invalid, tc.part)
			if tc.value != "" { // Without a value, only Create knows the tags that the secret will have.
				_, updated := c.Update(soon(t), at, provider.Observed{Version: "1"}, []byte(tc.value))
				fails(t, tc.reason, updated, provider.Invalid, tc.part)
			}
		})
	}
	if n := srv.Count(emulator.CallSet) + srv.Count(emulator.CallUpdate); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// TestSettings pushes a value over a secret with settings: those that the metadata do not have stay.
func TestSettings(t *testing.T) {
	const all = `{"tags":{"team":"shop","owner":"a@b"},"contentType":"text/plain","activationDate":"2020-01-31T12:00:00Z","expirationDate":"2099-01-31T12:00:00+01:00"}`
	cases := map[string]struct {
		reason, metadata string
		drift            []string
		keeps            bool
	}{
		"None":  {"Without metadata nothing differs, and all settings stay.", ``, nil, true},
		"Same":  {"The same settings do not differ, also in another time zone.", strings.ReplaceAll(all, "12:00:00+01:00", "11:00:00.9Z"), nil, true},
		"Tag":   {"A tag differs.", `{"tags":{"team":"bank","new":"x"}}`, []string{"tags.new", "tags.team"}, false},
		"Empty": {"An empty content type is a setting.", `{"contentType":""}`, []string{"contentType"}, false},
		"Dates": {"Dates differ.", `{"activationDate":"2021-01-31T12:00:00Z","expirationDate":"2098-01-31T12:00:00Z"}`, []string{"activationDate", "expirationDate"}, false},
	}
	for name, tc := range cases {
		for how, value := range map[string][]byte{"Value": []byte("two"), "SettingsOnly": nil} {
			t.Run(name+how, func(t *testing.T) {
				c := client(t, start(t))
				w := create(t, c, all, "one")
				o := observe(t, c, tc.metadata)
				if diff := cmp.Diff(tc.drift, o.Drift); diff != "" {
					t.Errorf("%s\ndrift: -want, +got:\n%s", tc.reason, diff)
				}
				got, err := c.Update(soon(t), target(tc.metadata), o, value)
				if err != nil || got.ID != w.ID || (got.Version == w.Version) != (value == nil) {
					t.Errorf("%s\nUpdate(...) = %+v, %v; created as %+v", tc.reason, got, err, w)
				}
				after := observe(t, c, tc.metadata)
				if len(after.Drift) > 0 || after.Mark != mark {
					t.Errorf("%s\nafter the update it has the mark %q, and drift in %q", tc.reason, after.Mark, after.Drift)
				}
				if before := observe(t, c, all); tc.keeps && len(before.Drift) > 0 {
					t.Errorf("%s\nthe update changed %q", tc.reason, before.Drift)
				}
			})
		}
	}
}

// TestKeptContentType removes the content type where an update of the version does not remove it. Nothing differs afterwards.
func TestKeptContentType(t *testing.T) {
	const none = `{"contentType":""}`
	srv := start(t, emulator.WithKeptContentType())
	c := client(t, srv)
	w := create(t, c, `{"contentType":"text/plain","tags":{"team":"shop"}}`, "one")
	got, err := c.Update(soon(t), target(none), observe(t, c, none), nil)
	if err != nil || got.ID != w.ID || got.Version == w.Version {
		t.Fatalf("Update(...) = %+v, %v; created as %+v", got, err, w)
	}
	after := observe(t, c, none)
	if diff := cmp.Diff(provider.Observed{Data: []byte("one"), Version: got.Version, ID: w.ID, Mark: mark}, after); diff != "" {
		t.Errorf("Observe(...): -want, +got:\n%s", diff)
	}
	if drift := observe(t, c, `{"tags":{"team":"shop"}}`).Drift; len(drift) > 0 {
		t.Errorf("the update changed %q", drift)
	}
}

// TestOverlap makes another client write after the last read of a write, but before it.
func TestOverlap(t *testing.T) {
	cases := map[string]struct {
		reason string
		theirs []string // values
		option emulator.PutOption
		data   string
		want   string // the lost value
		part   string
		fault  emulator.Fault
	}{
		"None":       {"Without another write nothing is lost.", nil, nil, "ours", "", "", emulator.Fault{}},
		"One":        {"A value of another client is returned as lost.", []string{"theirs"}, nil, "ours", "theirs", "", emulator.Fault{}},
		"Same":       {"The same value is not lost.", []string{"ours"}, nil, "ours", "", "", emulator.Fault{}},
		"Unlisted":   {"The error names the version if the others cannot be listed.", []string{"theirs"}, nil, "ours", "", "cannot be checked: ", emulator.Fault{Call: emulator.CallVersions, Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac"}},
		"NoList":     {"An answer without a list does not prove that there are no others.", []string{"theirs"}, nil, "ours", "", "cannot be checked: ", emulator.Fault{Call: emulator.CallVersions, Body: emulator.BodyNoValue}},
		"Disabled":   {"The error names a version that cannot be restored.", []string{"theirs"}, emulator.Disabled(), "ours", "", "cannot be restored: ", emulator.Fault{}},
		"Unreadable": {"The error names a version that cannot be read.", []string{"theirs"}, nil, "ours", "", "cannot be checked: ", emulator.Fault{Call: emulator.CallGet, Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv)
			create(t, c, "", "seen")
			o := observe(t, c, "")
			crossed(t, srv, tc.theirs, tc.fault, tc.option)
			w, err := c.Update(soon(t), target(""), o, []byte(tc.data))
			if tc.part != "" {
				class := provider.Denied
				switch {
				case tc.option != nil:
					class = provider.Invalid
				case tc.fault.Body != "":
					class = provider.Unavailable
				}
				fails(t, tc.reason, err, class, tc.part)
				return
			}
			if diff := cmp.Diff(tc.want, string(w.Lost)); diff != "" || err != nil {
				t.Errorf("%s\nUpdate(...): %v, lost: -want, +got:\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(tc.data, string(observe(t, c, "").Data)); diff != "" {
				t.Errorf("%s\nvalue: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// crossed holds the next SetSecret, stores values, and injects a fault after that call is released.
func crossed(t *testing.T, srv *emulator.Server, values []string, fault emulator.Fault, option emulator.PutOption) {
	t.Helper()
	ctx := soon(t)
	before := srv.Count(emulator.CallSet)
	release := srv.Inject(emulator.Fault{Call: emulator.CallSet, Hang: true})
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer release()
		if err := srv.Wait(ctx, before+1, emulator.CallSet); err != nil {
			t.Error(err)
		}
		for _, v := range values {
			var opts []emulator.PutOption
			if option != nil {
				opts = append(opts, option)
			}
			if _, err := srv.Put("db", []byte(v), opts...); err != nil {
				t.Error(err)
			}
		}
		if fault != (emulator.Fault{}) {
			srv.Inject(fault)
		}
	}()
}

// TestCreateOverlap makes another client create the secret at the same time: its value and its tags are the current ones in the end.
func TestCreateOverlap(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	crossed(t, srv, []string{"theirs"}, emulator.Fault{}, nil)
	_, err := c.Create(soon(t), target(""), []byte("ours"), mark)
	fails(t, "A secret that another client creates at the same time is a conflict.", err, provider.Conflict, "another client created it at the same time")
	o := observe(t, c, "")
	if diff := cmp.Diff([]string{"theirs", ""}, []string{string(o.Data), o.Mark}); diff != "" {
		t.Errorf("value and mark: -want, +got:\n%s", diff)
	}
}

// TestRecover creates a secret whose name is taken by one that is soft-deleted.
func TestRecover(t *testing.T) {
	denied := emulator.Fault{Call: emulator.CallRecover, Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac"}
	pending := emulator.Fault{Call: emulator.CallGet, Times: 1, Status: http.StatusNotFound, Code: "SecretNotFound"}
	cases := map[string]struct {
		reason  string
		options []emulator.Option
		fault   emulator.Fault
		class   provider.Class
		part    string
	}{
		"Recovered": {"It is recovered, and then written.", nil, emulator.Fault{}, "", ""},
		"Pending":   {"The write waits until Key Vault has recovered it.", nil, pending, "", ""},
		"Denied":    {"Without permission to recover, the name stays taken.", nil, denied, provider.Denied, "or purge the secret"},
		"Protected": {"With purge protection only the recovery helps.", []emulator.Option{emulator.WithPurgeProtection()}, denied, provider.Denied, "purge protection keeps anyone from purging"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, tc.options...)
			c := client(t, srv)
			first := create(t, c, `{"tags":{"team":"shop"},"contentType":"old"}`, "old")
			if err := c.Delete(soon(t), target(""), observe(t, c, "")); err != nil {
				t.Fatal(err)
			}
			if tc.fault == pending {
				ctx, before := soon(t), srv.Count(emulator.CallRecover)
				release := srv.Inject(emulator.Fault{Call: emulator.CallRecover, Hang: true})
				go func() {
					defer release()
					if err := srv.Wait(ctx, before+1, emulator.CallRecover); err != nil {
						t.Error(err)
					}
					srv.Inject(pending)
				}()
			} else if tc.fault != (emulator.Fault{}) {
				srv.Inject(tc.fault)
			}
			w, err := c.Create(soon(t), target(""), []byte("new"), mark)
			if tc.class != "" {
				fails(t, tc.reason, err, tc.class, tc.part)
				return
			}
			if err != nil || w.ID == first.ID {
				t.Fatalf("%s\nCreate(...) = %+v, %v; the deleted one was %+v", tc.reason, w, err, first)
			}
			o := observe(t, c, `{"tags":{"team":"shop"},"contentType":"old"}`)
			if diff := cmp.Diff([]string{"tags.team", "contentType"}, o.Drift); diff != "" || string(o.Data) != "new" {
				t.Errorf("%s\nvalue %q; the settings of the deleted secret must not come back: -want, +got:\n%s", tc.reason, o.Data, diff)
			}
		})
	}
}

// TestDeleteOverlap makes another client write between the last read of a deletion and the deletion.
func TestDeleteOverlap(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	create(t, c, "", "ours")
	ctx, o := soon(t), observe(t, c, "")
	crossedDelete(ctx, t, srv)
	fails(t, "A deletion that covers a version of another client is a conflict.", c.Delete(ctx, target(""), o), provider.Conflict, "another client changed it")
	if diff := cmp.Diff("theirs", string(observe(t, c, "").Data)); diff != "" {
		t.Errorf("value: -want, +got:\n%s", diff)
	}
}

// TestWriteDenied denies writes: the message names the role that allows them, and not one that only reads.
func TestWriteDenied(t *testing.T) {
	for call, write := range map[string]func(*Client, provider.Observed) error{
		emulator.CallSet: func(c *Client, o provider.Observed) error {
			_, err := c.Update(soon(t), target(""), o, []byte("new"))
			return err
		},
		emulator.CallUpdate: func(c *Client, o provider.Observed) error { return c.Mark(soon(t), target(""), o, "other") },
		emulator.CallDelete: func(c *Client, o provider.Observed) error { return c.Delete(soon(t), target(""), o) },
	} {
		t.Run(call, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv)
			create(t, c, "", "ours")
			o := observe(t, c, "")
			srv.Inject(emulator.Fault{Call: call, Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac"})
			fails(t, "A write needs another role than a read.", write(c, o), provider.Denied, "a role such as Key Vault Secrets Officer")
		})
	}
}

// TestNotWritable pushes to secrets that the operator must leave alone.
func TestNotWritable(t *testing.T) {
	srv := start(t)
	put(t, srv, "cert", "hunter2", emulator.Managed())
	put(t, srv, "off", "hunter2", emulator.Disabled())
	c := client(t, srv)
	for key, tc := range map[string]struct{ reason, part string }{
		"cert": {"The secret of a certificate is not overwritten.", "is part of a certificate"},
		"off":  {"A disabled secret is not overwritten.", "is disabled"},
	} {
		t.Run(key, func(t *testing.T) {
			_, observed := c.Observe(soon(t), provider.Target{Key: key})
			fails(t, tc.reason, observed, provider.Invalid, tc.part)
			_, created := c.Create(soon(t), provider.Target{Key: key}, []byte("x"), mark)
			fails(t, tc.reason, created, provider.Invalid, tc.part)
		})
	}
	if n := srv.Count(emulator.CallSet); n != 0 {
		t.Errorf("%d writes", n)
	}
}
