package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

func titledItem(title, value string) emulator.Item {
	return emulator.Item{Title: title, Category: "PASSWORD", Fields: []emulator.Field{{ID: "password", Label: "password", Value: value}}}
}

// in searches vaults.
func in(vaults ...string) func(*v1alpha1.OnePasswordConnect) {
	return func(s *v1alpha1.OnePasswordConnect) { s.Spec.Vaults = vaults }
}

// TestLookup reads items by titles and IDs. The IDs of the emulator are numbers: the vaults have 1 to 3.
func TestLookup(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%026d", n) }
	cases := map[string]struct {
		reason string
		vaults []string
		add    map[string][]emulator.Item // by vault, in the order shop, shared, same
		fault  emulator.Fault
		key    string
		want   string // the value, or a part of the class and the error
	}{
		"First":       {"The first vault that has the title wins.", []string{"shop", "shared"}, map[string][]emulator.Item{"shop": {titledItem("db", "a")}, "shared": {titledItem("db", "b")}}, emulator.Fault{}, "db", "a"},
		"Order":       {"The order is that of the spec.", []string{"shared", "shop"}, map[string][]emulator.Item{"shop": {titledItem("db", "a")}, "shared": {titledItem("db", "b")}}, emulator.Fault{}, "db", "b"},
		"Next":        {"A vault without the title is passed over.", []string{"shop", "shared"}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{}, "db", "b"},
		"Elsewhere":   {"Other vaults are not searched.", []string{"shop"}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{}, "db", "NotFound: item \"db\": does not exist in the vaults of the store"},
		"Case":        {"Connect ignores case, and the store does not.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("DB", "a"), titledItem("db", "b")}}, emulator.Fault{}, "db", "b"},
		"OtherCase":   {"A title in another case is another title.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("DB", "a")}}, emulator.Fault{}, "db", "NotFound"},
		"Ambiguous":   {"A title of two items is refused with their IDs.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("db", "a"), titledItem("db", "b")}}, emulator.Fault{}, "db", `Invalid: item "db": 2 items of vault "shop" have this title; rename all but one, or use the ID of one as the key: ` + id(5) + ", " + id(6)},
		"ByID":        {"The ID resolves it.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("db", "a"), titledItem("db", "b")}}, emulator.Fault{}, id(6), "b"},
		"ByIDLater":   {"The ID of an item of a later vault is found, too.", []string{"shop", "shared"}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{}, id(5), "b"},
		"ByIDForeign": {"The ID of an item of another vault is not found.", []string{"shop"}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{}, id(5), "NotFound"},
		"IDAsTitle":   {"A title cannot hide the item with that ID.", []string{"shop", "shared"}, map[string][]emulator.Item{"shop": {titledItem(id(6), "thief")}, "shared": {titledItem("db", "b")}}, emulator.Fault{}, id(6), "b"},
		"Quote":       {"A quotation mark does not end a filter.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem(`a" or title eq "b`, "a"), titledItem("b", "b")}}, emulator.Fault{}, `a" or title eq "b`, "a"},
		"VaultID":     {"A vault is also named by its ID.", []string{id(2)}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{}, "db", "b"},
		"NoVault":     {"A missing vault is no missing item.", []string{"shop", "none"}, map[string][]emulator.Item{"shop": {titledItem("db", "a")}}, emulator.Fault{}, "db", `Invalid: item "db": spec.vaults: there is no vault "none"`},
		"TwoVaults":   {"A name of two vaults is refused with their IDs.", []string{"same"}, nil, emulator.Fault{}, "db", `Invalid: item "db": spec.vaults: 2 vaults have the name "same"; write the ID of one instead: ` + id(3) + ", " + id(4)},
		"Control":     {"A key with a control character is no title.", []string{"shop"}, nil, emulator.Fault{}, "d\x00b", "Invalid"},
		"Long":        {"A long key is no title.", []string{"shop"}, nil, emulator.Fault{}, strings.Repeat("x", 1025), "Invalid"},
		"Denied":      {"A vault that cannot be listed is no vault without the item.", []string{"shop", "shared"}, map[string][]emulator.Item{"shared": {titledItem("db", "b")}}, emulator.Fault{Call: "ListItems", Status: http.StatusForbidden}, "db", "Denied: item \"db\": listing items of vault \"shop\": access denied; grant the token of spec.auth.secretRef.connectTokenSecretRef the vault"},
		"VaultGone":   {"A vault that was deleted is no proof that the item was.", []string{"shop"}, nil, emulator.Fault{Call: "ListItems", Status: http.StatusNotFound}, "db", "Unavailable: item \"db\": spec.vaults: vault \"shop\" does not exist any more"},
		"Null":        {"A list without items is not that of Connect.", []string{"shop"}, nil, emulator.Fault{Call: "ListItems", Body: []byte("null")}, "db", "Unavailable"},
		"NullVaults":  {"The same is true for vaults.", []string{"shop"}, nil, emulator.Fault{Call: "ListVaults", Body: []byte("null")}, "db", "Unavailable"},
		"PathID":      {"An ID that would be another path is refused.", []string{"shop"}, nil, emulator.Fault{Call: "ListItems", Body: []byte(`[{"id":"../../x","title":"db"}]`)}, "db", "Unavailable"},
		"OtherItem":   {"An answer with another item is refused.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("db", "a")}}, emulator.Fault{Call: "GetItem", Body: []byte(`{"id":"` + id(9) + `","version":1,"vault":{"id":"` + id(1) + `"}}`)}, "db", "Unavailable"},
		"Huge":        {"An answer without end is cut.", []string{"shop"}, map[string][]emulator.Item{"shop": {titledItem("db", "a")}}, emulator.Fault{Call: "GetItem", Body: make([]byte, provider.MaxAnswer+1)}, "db", "Unavailable: item \"db\": reading the item: spec.connectHost: the provider's response is larger than 1536 KiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, emulator.WithVault("shared"), emulator.WithVault("same"), emulator.WithVault("same"))
			for _, v := range []string{"shop", "shared"} {
				for _, i := range tc.add[v] {
					srv.Add(v, i)
				}
			}
			if cmp.Diff(tc.fault, emulator.Fault{}) != "" {
				srv.Inject(tc.fault)
			}
			v, err := client(t, srv, in(tc.vaults...)).Get(soon(t), provider.Ref{Key: tc.key})
			got := string(v.Data)
			if err != nil {
				got = string(provider.ClassOf(err)) + ": " + err.Error()
			}
			if want := `{"password":"` + tc.want + `"}`; got != want && (err == nil || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRenamed reads an item whose place is known, after changes.
func TestRenamed(t *testing.T) {
	srv := start(t, emulator.WithVault("shared"))
	srv.Add(vaultName, titledItem("db", "a"))
	c := client(t, srv, in(vaultName, "shared"))
	read := func() string {
		v, err := c.Get(soon(t), provider.Ref{Key: "db"})
		if err != nil {
			return string(provider.ClassOf(err))
		}
		return string(v.Data)
	}
	got := []string{read(), read()}
	calls := srv.Counts()
	srv.Delete(vaultName, "db")
	srv.Add("shared", titledItem("db", "b"))
	got = append(got, read())
	srv.Delete("shared", "db")
	got = append(got, read())
	if diff := cmp.Diff([]string{`{"password":"a"}`, `{"password":"a"}`, `{"password":"b"}`, "NotFound"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"ListVaults": 1, "ListItems": 1, "GetItem": 2}, calls); diff != "" {
		t.Errorf("The place of an item is kept.\n-want, +got:\n%s", diff)
	}
}

// TestOtherTitle reads an item whose place is known, after it got another title.
func TestOtherTitle(t *testing.T) {
	srv := start(t)
	srv.Add(vaultName, titledItem("db", "a"))
	c := client(t, srv)
	if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
		t.Fatal(err)
	}
	at, _ := c.places.known("db")
	c.places.keep("renamed", at)
	if _, err := c.Get(soon(t), provider.Ref{Key: "renamed"}); !provider.IsNotFound(err) {
		t.Errorf("the item with the title db is read as renamed: %v", err)
	}
}

// TestFindShadows finds items with one title in several vaults, and in one.
func TestFindShadows(t *testing.T) {
	srv := start(t, emulator.WithVault("shared"))
	srv.Add(vaultName, titledItem("db", "a"))
	srv.Add("shared", titledItem("db", "b"))
	srv.Add("shared", emulator.Item{Title: "tagged", Tags: []string{"team=shop", "prod"}})
	c := client(t, srv, in(vaultName, "shared"))
	find := func(q provider.Query) (got []string) {
		for v, err := range c.Find(soon(t), q) {
			if err != nil {
				return append(got, err.Error())
			}
			got = append(got, v.Key+" "+string(v.Data))
		}
		return got
	}
	got := [][]string{find(provider.Query{Path: "d"}), find(provider.Query{Tags: map[string]string{"team": "shop", "prod": ""}}), find(provider.Query{Tags: map[string]string{"team": ""}})}
	srv.Add("shared", titledItem("tagged", "c"))
	got = append(got, find(provider.Query{Path: "d"}), find(provider.Query{Path: "t"}))
	want := [][]string{{`db {"password":"a"}`}, {"tagged {}"}, nil, {`db {"password":"a"}`}, {fmt.Sprintf(`item "tagged": 2 items of vault "shared" have this title; rename all but one, or use the ID of one as the key: %026d, %026d`, 5, 6)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
