package secretmanager

import (
	"fmt"
	"strings"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestRefusedBeforeAnyCall(t *testing.T) {
	long := strings.Repeat("a", 64)
	many := func(format string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	cases := map[string]struct{ reason, key, metadata, part string }{
		"OtherProject":   {"Another project needs another store.", "projects/other/secrets/db", ``, "is not a secret of"},
		"Path":           {"A key is no path.", "../db", ``, "key "},
		"NoObject":       {"Metadata is an object.", "db", `[]`, "metadata: "},
		"Broken":         {"It is whole.", "db", `{`, "metadata: "},
		"Two":            {"It is one.", "db", `{}{}`, "metadata: is not one JSON object"},
		"Unknown":        {"A setting that is not known is named.", "db", `{"lables":{}}`, `"lables"`},
		"UnknownInside":  {"So is one further in.", "db", `{"replication":{"automatic":{"key":"x"}}}`, `"key"`},
		"LongName":       {"A message is short.", "db", `{"` + strings.Repeat("a", 10_000) + `":1}`, "metadata: "},
		"Number":         {"Labels are text.", "db", `{"labels":{"a":1}}`, "labels"},
		"LabelKey":       {"Google's rule for keys.", "db", `{"labels":{"Team":"x"}}`, `metadata.labels: key "Team"`},
		"LabelValue":     {"Google's rule for values.", "db", `{"labels":{"team":"a@b"}}`, `metadata.labels: the value of "team"`},
		"LongLabel":      {"Labels are short.", "db", `{"labels":{"team":"` + long + `"}}`, `metadata.labels: the value of "team"`},
		"Labels":         {"Labels are few.", "db", `{"labels":{` + many(`"a%d":""`, 65) + `}}`, "metadata.labels: "},
		"ReservedLabel":  {"The mark is nobody else's.", "db", `{"labels":{"direct-secrets.io/created-by":"x"}}`, `is reserved`},
		"Reserved":       {"The mark is nobody else's.", "db", `{"annotations":{"direct-secrets.io_created-by":"x"}}`, `metadata.annotations: key "direct-secrets.io_created-by" is reserved`},
		"Slash":          {"Google has no slash in a key.", "db", `{"annotations":{"a.io/b":"x"}}`, `metadata.annotations: key "a.io/b"`},
		"LongKey":        {"Keys are short.", "db", `{"annotations":{"` + long + `":"x"}}`, "metadata.annotations: key "},
		"Annotations":    {"Annotations are small in all.", "db", `{"annotations":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, "metadata.annotations: with them the annotations have 16385 bytes"},
		"Topic":          {"A topic has a full name.", "db", `{"topics":["t"]}`, `metadata.topics[0]: "t"`},
		"Topics":         {"Topics are few.", "db", `{"topics":[` + many(`"projects/p/topics/%d"`, 11) + `]}`, "metadata.topics: has 11"},
		"NoReplication":  {"A replication is one or the other.", "db", `{"replication":{}}`, "metadata.replication: set either"},
		"BothOfThem":     {"And not both.", "db", `{"replication":{"automatic":{},"userManaged":{"replicas":[{"location":"x"}]}}}`, "metadata.replication: set either"},
		"NoReplica":      {"A copy is somewhere.", "db", `{"replication":{"userManaged":{}}}`, "metadata.replication.userManaged.replicas: is empty"},
		"NoLocation":     {"A copy is somewhere.", "db", `{"replication":{"userManaged":{"replicas":[{}]}}}`, "replicas[0].location: is empty"},
		"SameLocation":   {"And not twice.", "db", `{"replication":{"userManaged":{"replicas":[{"location":"x"},{"location":"x"}]}}}`, "replicas[1].location"},
		"Key":            {"A key has a full name.", "db", `{"replication":{"automatic":{"kmsKeyName":"k"}}}`, "metadata.replication.automatic.kmsKeyName"},
		"KeyOfAReplica":  {"Also that of a copy.", "db", `{"replication":{"userManaged":{"replicas":[{"location":"x","kmsKeyName":"k"}]}}}`, "kmsKeyName"},
		"DuplicateTrail": {"What follows is not ignored.", "db", `{"labels":{}} x`, "metadata: is not one JSON object"},
	}
	srv := start(t)
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := provider.Target{Key: tc.key, Metadata: []byte(tc.metadata)}
			if tc.metadata == "" {
				at.Metadata = nil
			}
			_, observed := c.Observe(soon(t), at)
			_, created := c.Create(soon(t), at, []byte("x"), mark)
			_, updated := c.Update(soon(t), at, provider.Observed{Version: "1"}, []byte("x"))
			for _, err := range []error{observed, created, updated} {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
				if err != nil && len(err.Error()) > 1000 {
					t.Errorf("%s\nthe message has %d characters", tc.reason, len(err.Error()))
				}
			}
		})
	}
	for size, part := range map[int]string{0: "the value is empty", maxSize + 1: "the value has 65537 bytes"} {
		_, created := c.Create(soon(t), target(""), make([]byte, size), mark)
		_, updated := c.Update(soon(t), target(""), provider.Observed{Version: "1", Data: []byte("x")}, make([]byte, size))
		fails(t, "Google stores neither nothing nor much.", created, provider.Invalid, part)
		fails(t, "Google stores neither nothing nor much.", updated, provider.Invalid, part)
	}
	mostly := `{"annotations":{"a":"` + strings.Repeat("x", 16<<10-2) + `"}}`
	_, err := c.Create(soon(t), target(mostly), []byte("x"), mark)
	fails(t, "The mark needs room, too.", err, provider.Invalid, "metadata.annotations: with them")
	if n := srv.Calls(""); n != 0 {
		t.Errorf("%d calls, want none: %v", n, srv.CallCounts())
	}
	regional := client(t, srv, func(s *testStore) { s.Spec.Location = "europe-west3" })
	_, err = regional.Observe(soon(t), target(`{"replication":{"automatic":{}}}`))
	fails(t, "Secrets of a location have no replication.", err, provider.Invalid, "metadata.replication: secrets of a location")
}

// secretOf reads a secret past the client's writes.
func secretOf(t *testing.T, c *Client) *pb.Secret {
	t.Helper()
	s, err := c.secret(soon(t), remote{Target: target(""), id: "db", name: c.parent + "/secrets/db"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReplication(t *testing.T) {
	const (
		key = "projects/p/locations/global/keyRings/r/cryptoKeys/k"
		two = `{"replication":{"userManaged":{"replicas":[{"location":"us-east1"},{"location":"europe-west3"}]}}}`
	)
	cases := map[string]struct {
		reason, created, wanted string
		fits                    bool
	}{
		"Default":   {"Google chooses unless told otherwise.", ``, `{"replication":{"automatic":{}}}`, true},
		"Unnamed":   {"What is not named is left alone.", two, ``, true},
		"SameOrder": {"The same places are the same.", two, two, true},
		"Order":     {"Their order says nothing.", two, `{"replication":{"userManaged":{"replicas":[{"location":"europe-west3"},{"location":"us-east1"}]}}}`, true},
		"SameKey":   {"So is the same key.", `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, true},
		"Key":       {"Another key is another replication.", ``, `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, false},
		"Kind":      {"So is another kind.", two, `{"replication":{"automatic":{}}}`, false},
		"Fewer":     {"So are fewer places.", two, `{"replication":{"userManaged":{"replicas":[{"location":"us-east1"}]}}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, start(t))
			if _, err := c.Create(soon(t), target(tc.created), []byte("x"), mark); err != nil {
				t.Fatal(err)
			}
			o, err := c.Observe(soon(t), target(tc.wanted))
			switch {
			case !tc.fits:
				fails(t, tc.reason, err, provider.Invalid, "metadata.replication: the secret exists with another one, which cannot be changed")
			case err != nil, len(o.Drift) > 0:
				t.Errorf("%s\ndrift %q, %v", tc.reason, o.Drift, err)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	const settings = `{"labels":{"team":"shop","stage":""},"annotations":{"owner":"a@b"},"topics":["projects/p/topics/b","projects/p/topics/a"]}`
	srv := start(t)
	c := client(t, srv)
	if _, err := c.Create(soon(t), target(`{"labels":{"other":"label"},"annotations":{"other":"note"}}`), []byte("x"), mark); err != nil {
		t.Fatal(err)
	}
	o := observe(t, c, settings)
	if diff := cmp.Diff([]string{"annotations.owner", "labels.stage", "labels.team", "topics"}, o.Drift); diff != "" {
		t.Errorf("drift: -want, +got:\n%s", diff)
	}
	w, err := c.Update(soon(t), target(settings), o, nil)
	if err != nil || w.Version != "1" {
		t.Errorf("Settings make no version: %+v, %v", w, err)
	}
	s := secretOf(t, c)
	if diff := cmp.Diff(map[string]string{"other": "label", "team": "shop", "stage": ""}, s.GetLabels()); diff != "" {
		t.Errorf("What is not named is left alone: labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"other": "note", "owner": "a@b", createdBy: mark}, s.GetAnnotations()); diff != "" {
		t.Errorf("What is not named is left alone: annotations: -want, +got:\n%s", diff)
	}
	now := observe(t, c, settings)
	if len(now.Drift) > 0 || now.Mark != mark {
		t.Errorf("after the update: mark %q, drift %q", now.Mark, now.Drift)
	}
	if now = observe(t, c, `{"topics":["projects/p/topics/a","projects/p/topics/b"]}`); len(now.Drift) > 0 {
		t.Errorf("The order of topics says nothing: drift %q", now.Drift)
	}
	if now = observe(t, c, `{"topics":[]}`); !cmp.Equal(now.Drift, []string{"topics"}) {
		t.Errorf("No topics are not the same as topics that are not named: drift %q", now.Drift)
	}

	moved := observe(t, c, `{"labels":{"team":"bank"}}`)
	srv.Put("db", nil, emulator.Empty(), emulator.Labels(map[string]string{"theirs": "x"}))
	before := srv.Calls(add)
	_, err = c.Update(soon(t), target(`{"labels":{"team":"bank"}}`), moved, []byte("y"))
	fails(t, "Settings that somebody else changes meanwhile are not overwritten.", err, provider.Conflict, `secret "db": somebody else has changed it meanwhile`)
	if diff := cmp.Diff(map[string]string{"theirs": "x"}, secretOf(t, c).GetLabels()); diff != "" || srv.Calls(add) != before {
		t.Errorf("%d versions were added; labels: -want, +got:\n%s", srv.Calls(add)-before, diff)
	}
}
