package uses_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/uses"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestOf checks which users of a remote secret at the place "p" with the key "x/db", the name's ID "n" and the ID "id" are found.
func TestOf(t *testing.T) {
	name := func(key, id string) provider.Name { return provider.Name{Key: key, ID: id} }
	cases := map[string]struct {
		reason string
		entry  uses.Entry
		want   bool
	}{
		"Key":             {"The same name.", uses.Entry{Place: "p", Located: true, Key: "db", Name: name("x/db", "")}, true},
		"OtherKey":        {"Another name.", uses.Entry{Place: "p", Located: true, Key: "db", Name: name("y/db", "")}, false},
		"OtherPlace":      {"The same name at another place.", uses.Entry{Place: "q", Located: true, Key: "db", Name: name("x/db", ""), ID: "id"}, false},
		"NameID":          {"Another key for the same secret.", uses.Entry{Place: "p", Located: true, Key: "arn", Name: name("arn", "n")}, true},
		"ID":              {"The same ID.", uses.Entry{Place: "p", Located: true, Key: "arn", Name: name("arn", ""), ID: "id"}, true},
		"Unnamed":         {"It can be any secret.", uses.Entry{Place: "p", Located: true, Key: "arn"}, true},
		"UnnamedOther":    {"It can be any secret of another place.", uses.Entry{Place: "q", Located: true, Key: "arn"}, false},
		"Unlocated":       {"The prefix is unknown.", uses.Entry{Place: "p", Key: "db"}, true},
		"UnlocatedEmpty":  {"The prefix can be all.", uses.Entry{Place: "p"}, true},
		"UnlocatedID":     {"The same ID at the recorded place.", uses.Entry{Place: "p", Key: "arn", ID: "id"}, true},
		"UnlocatedLonger": {"It is longer than the name.", uses.Entry{Place: "p", Key: "y/x/db"}, false},
		"Elsewhere":       {"The status records another place.", uses.Entry{Place: "q", Key: "db", ID: "id"}, false},
		"Nowhere":         {"The place is unknown.", uses.Entry{Key: "db"}, true},
		"NowhereID":       {"The place is unknown, and the ID is the same.", uses.Entry{Key: "arn", ID: "id"}, true},
		"NowhereOther":    {"The place is unknown, and it is another secret.", uses.Entry{Key: "arn", ID: "other"}, false},
	}
	for test, tc := range cases {
		t.Run(test, func(t *testing.T) {
			var x uses.Index[string]
			x.Set("me", []uses.Entry{tc.entry})
			var want map[string]map[string]bool
			if want = map[string]map[string]bool{}; tc.want {
				want["me"] = map[string]bool{tc.entry.Key: true}
			}
			if diff := cmp.Diff(want, x.Of("p", name("x/db", "n"), "id")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func at(key string) uses.Entry {
	return uses.Entry{Place: "p", Located: true, Key: key, Name: provider.Name{Key: key}, ID: "id"}
}

// TestChange changes the entries of users. All of them have the same ID.
func TestChange(t *testing.T) {
	var x uses.Index[string]
	check := func(change string, want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for user, keys := range x.Of("p", provider.Name{}, "id") {
			got[user] = fmt.Sprint(slices.Sorted(maps.Keys(keys)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", change, diff)
		}
	}
	x.Set("a", []uses.Entry{at("1"), at("2"), at("2")})
	x.Set("b", []uses.Entry{at("1")})
	check("set", map[string]string{"a": "[1 2]", "b": "[1]"})
	x.Add("a", []uses.Entry{at("3"), at("1")})
	x.Add("c", []uses.Entry{at("4")})
	check("add", map[string]string{"a": "[1 2 3]", "b": "[1]", "c": "[4]"})
	x.Set("a", []uses.Entry{at("3")})
	check("replace", map[string]string{"a": "[3]", "b": "[1]", "c": "[4]"})
	x.Set("b", nil)
	x.Set("a", nil)
	check("forget", map[string]string{"c": "[4]"})
	x.Set("a", []uses.Entry{at("5")})
	check("again", map[string]string{"a": "[5]", "c": "[4]"})
}

// TestMemory fills an index with 200,000 entries, some of them many times, and empties it.
func TestMemory(t *testing.T) {
	const users, each, most = 100, 2000, 256
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // It is far below the limit.
	}
	all := make([][]uses.Entry, users)
	for i := range all {
		for j := range each {
			key := fmt.Sprintf("team-%d/db-%d", i, j)
			all[i] = append(all[i], uses.Entry{Place: "p", Located: true, Key: key, Name: provider.Name{Key: key}, ID: key})
		}
	}
	var x uses.Index[int]
	before := heap()
	for range 3 {
		for i, entries := range all {
			x.Set(i, entries)
			x.Add(i, entries)
		}
	}
	if per := (heap() - before) / (users * each); per > most {
		t.Errorf("an entry takes %d bytes, want at most %d", per, most)
	} else {
		t.Logf("an entry takes %d bytes", per)
	}
	for i := range all {
		x.Set(i, nil)
	}
	if left := x.Of("p", provider.Name{Key: "team-0/db-0"}, "team-0/db-0"); len(left) > 0 {
		t.Errorf("uses of an empty index: %v", left)
	}
	runtime.KeepAlive(all)
}
