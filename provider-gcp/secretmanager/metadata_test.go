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
		"ByNumber":       {"The console shows names with the number of the project, which may be that of the store.", "projects/123456/secrets/db", ``, "write only the id of the secret"},
		"OtherProject":   {"A full name in another project is rejected.", "projects/other/secrets/db", ``, "is not a secret of"},
		"Path":           {"A key with .. is rejected.", "../db", ``, "key "},
		"NoObject":       {"Metadata that are not an object are rejected.", "db", `[]`, "metadata: "},
		"Broken":         {"Truncated metadata are rejected.", "db", `{`, "metadata: "},
		"Two":            {"Two objects are rejected.", "db", `{}{}`, "metadata: is not one JSON object"},
		"Unknown":        {"The error names an unknown setting.", "db", `{"lables":{}}`, `"lables"`},
		"UnknownInside":  {"The error names an unknown nested setting.", "db", `{"replication":{"automatic":{"key":"x"}}}`, `"replication.automatic.key"`},
		"LongName":       {"The message for a very long setting is short.", "db", `{"` + strings.Repeat("a", 10_000) + `":1}`, "metadata: "},
		"Number":         {"A label value of another type is rejected.", "db", `{"labels":{"a":1}}`, "labels"},
		"LabelKey":       {"A label key against Google's rules is rejected.", "db", `{"labels":{"Team":"x"}}`, `metadata.labels: "Team" must`},
		"LabelValue":     {"A label value against Google's rules is rejected.", "db", `{"labels":{"team":"a@b"}}`, `metadata.labels: "team" must have a value`},
		"LongLabel":      {"A label value that is too long is rejected.", "db", `{"labels":{"team":"` + long + `"}}`, `metadata.labels: "team" must have a value`},
		"Labels":         {"Too many labels are rejected.", "db", `{"labels":{` + many(`"a%d":""`, 65) + `}}`, "metadata.labels: "},
		"ReservedLabel":  {"A label with the prefix of the mark is rejected.", "db", `{"labels":{"direct-secrets.io/created-by":"x"}}`, `is reserved`},
		"Reserved":       {"An annotation with the prefix of the mark is rejected.", "db", `{"annotations":{"direct-secrets.io_created-by":"x"}}`, `metadata.annotations: "direct-secrets.io_created-by" is reserved`},
		"Slash":          {"An annotation key with a slash is rejected.", "db", `{"annotations":{"a.io/b":"x"}}`, `metadata.annotations: "a.io/b" must`},
		"LongKey":        {"An annotation key that is too long is rejected.", "db", `{"annotations":{"` + long + `":"x"}}`, "metadata.annotations: "},
		"Annotations":    {"Annotations that are too large in total are rejected.", "db", `{"annotations":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, "metadata.annotations: with them, the secret has 16385 bytes of annotations"},
		"Topic":          {"A topic without its full name is rejected.", "db", `{"topics":["t"]}`, `metadata.topics[0]: "t"`},
		"Topics":         {"Too many topics are rejected.", "db", `{"topics":[` + many(`"projects/p/topics/%d"`, 11) + `]}`, "metadata.topics: has 11"},
		"NoReplication":  {"An empty replication is rejected.", "db", `{"replication":{}}`, "metadata.replication: set either"},
		"BothOfThem":     {"Two kinds of replication are rejected.", "db", `{"replication":{"automatic":{},"userManaged":{"replicas":[{"location":"x"}]}}}`, "metadata.replication: set either"},
		"NoReplica":      {"A replication without replicas is rejected.", "db", `{"replication":{"userManaged":{}}}`, "metadata.replication.userManaged.replicas: is empty"},
		"NoLocation":     {"A replica without a location is rejected.", "db", `{"replication":{"userManaged":{"replicas":[{}]}}}`, "replicas[0].location: is empty"},
		"SameLocation":   {"Two replicas with one location are rejected.", "db", `{"replication":{"userManaged":{"replicas":[{"location":"x"},{"location":"x"}]}}}`, "replicas[1].location"},
		"Key":            {"A KMS key without its full name is rejected.", "db", `{"replication":{"automatic":{"kmsKeyName":"k"}}}`, "metadata.replication.automatic.kmsKeyName"},
		"KeyOfAReplica":  {"A replica's KMS key without its full name is rejected.", "db", `{"replication":{"userManaged":{"replicas":[{"location":"x","kmsKeyName":"k"}]}}}`, "kmsKeyName"},
		"DuplicateTrail": {"Text after the object is rejected.", "db", `{"labels":{}} x`, "metadata: is not one JSON object"},
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
		fails(t, "An empty value is rejected.", created, provider.Invalid, part)
		fails(t, "A value that is too large is rejected.", updated, provider.Invalid, part)
	}
	mostly := `{"annotations":{"a":"` + strings.Repeat("x", 16<<10-2) + `"}}`
	_, err := c.Create(soon(t), target(mostly), []byte("x"), mark)
	fails(t, "The limit of annotations includes the mark.", err, provider.Invalid, "metadata.annotations: with them")
	if n := srv.Count(); n != 0 {
		t.Errorf("%d calls, want none: %v", n, srv.Counts())
	}
	regional := client(t, srv, func(s *testStore) { s.Spec.Location = "europe-west3" })
	_, err = regional.Observe(soon(t), target(`{"replication":{"automatic":{}}}`))
	fails(t, "A replication for a regional secret is rejected.", err, provider.Invalid, "metadata.replication: regional secrets")
}

// secretOf reads a secret from the API directly.
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
		"Default":   {"Without a setting the replication is automatic.", ``, `{"replication":{"automatic":{}}}`, true},
		"Unnamed":   {"A setting that is not set leaves the replication unchanged.", two, ``, true},
		"SameOrder": {"The same locations do not differ.", two, two, true},
		"Order":     {"The order of locations does not matter.", two, `{"replication":{"userManaged":{"replicas":[{"location":"europe-west3"},{"location":"us-east1"}]}}}`, true},
		"SameKey":   {"The same KMS key does not differ.", `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, true},
		"Key":       {"Another KMS key is another replication.", ``, `{"replication":{"automatic":{"kmsKeyName":"` + key + `"}}}`, false},
		"Kind":      {"Another kind is another replication.", two, `{"replication":{"automatic":{}}}`, false},
		"Fewer":     {"Fewer locations are another replication.", two, `{"replication":{"userManaged":{"replicas":[{"location":"us-east1"}]}}}`, false},
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
				fails(t, tc.reason, err, provider.Invalid, "metadata.replication: the secret has another replication, which cannot be changed")
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
		t.Errorf("a change of settings must not create a version: %+v, %v", w, err)
	}
	s := secretOf(t, c)
	if diff := cmp.Diff(map[string]string{"other": "label", "team": "shop", "stage": ""}, s.GetLabels()); diff != "" {
		t.Errorf("Settings that the target does not set must stay unchanged: labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"other": "note", "owner": "a@b", createdBy: mark}, s.GetAnnotations()); diff != "" {
		t.Errorf("Settings that the target does not set must stay unchanged: annotations: -want, +got:\n%s", diff)
	}
	now := observe(t, c, settings)
	if len(now.Drift) > 0 || now.Mark != mark {
		t.Errorf("after the update: mark %q, drift %q", now.Mark, now.Drift)
	}
	if now = observe(t, c, `{"topics":["projects/p/topics/a","projects/p/topics/b"]}`); len(now.Drift) > 0 {
		t.Errorf("the order of topics must not matter: drift %q", now.Drift)
	}
	if now = observe(t, c, `{"topics":[]}`); !cmp.Equal(now.Drift, []string{"topics"}) {
		t.Errorf("an empty list of topics must differ from an unset one: drift %q", now.Drift)
	}

	moved := observe(t, c, `{"labels":{"team":"bank"}}`)
	srv.Put("db", nil, emulator.Empty(), emulator.Labels(map[string]string{"theirs": "x"}))
	before := srv.Count(add)
	_, err = c.Update(soon(t), target(`{"labels":{"team":"bank"}}`), moved, []byte("y"))
	fails(t, "Settings that another writer changes meanwhile are not overwritten.", err, provider.Conflict, "another client changed it meanwhile; retrying")
	if diff := cmp.Diff(map[string]string{"theirs": "x"}, secretOf(t, c).GetLabels()); diff != "" || srv.Count(add) != before {
		t.Errorf("%d versions were added; labels: -want, +got:\n%s", srv.Count(add)-before, diff)
	}
}
