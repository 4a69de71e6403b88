package secretmanager

import (
	"regexp"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// FuzzNames has a user write any key and version, and Google answer with any name.
func FuzzNames(f *testing.F) {
	f.Add("db", "1", "projects/1/secrets/db/versions/1")
	f.Add("projects/p/secrets/db", "latest", "projects/1/secrets/db/versions/2/x")
	f.Add("../db", "1/../2", "secrets//versions/")
	f.Add("projects/p/secrets/projects/p/secrets/db", "٣", "projects/1/secrets/db/versions/٣")
	plain := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	c := &Client{parent: "projects/p"}
	f.Fuzz(func(t *testing.T, key, version, name string) {
		id, err := c.idOf(key)
		switch {
		case err != nil && (provider.ClassOf(err) != provider.Invalid || len(err.Error()) > 1000):
			t.Errorf("idOf(%q): %s", key, err)
		case err == nil && (!plain.MatchString(id) || key != id && key != "projects/p/secrets/"+id):
			t.Errorf("idOf(%q) = %q", key, id)
		}
		v, err := versionOf(version)
		if err == nil && (!plain.MatchString(v) || version != "" && v != version) {
			t.Errorf("versionOf(%q) = %q", version, v)
		}
		if n, ok := numberOf(name, id); ok && (!number.MatchString(n) || !strings.HasSuffix(name, "/secrets/"+id+"/versions/"+n)) {
			t.Errorf("numberOf(%q, %q) = %q", name, id, n)
		}
		for term := range strings.SplitSeq(filter(provider.Query{Path: key, Tags: map[string]string{version: name, name: key}}), " AND ") {
			if term != "" && !regexp.MustCompile(`^(name:|labels\.[a-z0-9_-]+=)[A-Za-z0-9_-]+$`).MatchString(term) {
				t.Errorf("the filter has a term %q", term)
			}
		}
	})
}
