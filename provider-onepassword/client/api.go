package client

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A vault is a vault in a list of Connect.
type vault struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// An item is an item of Connect. In lists it has no fields and files.
type item struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Vault   vault    `json:"vault"`
	Tags    []string `json:"tags"`
	Version int      `json:"version"`
	Fields  []entry  `json:"fields"`
	Files   []entry  `json:"files"`
	// Sections have the labels of sections, which fields name by ID.
	Sections []section `json:"sections"`
}

// A section is a section of an item.
type section struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// An entry is a field or a file of an item.
type entry struct {
	ID      string   `json:"id"`
	Section *section `json:"section"`
	// Type, Label, Value and TOTP are those of a field. TOTP is the current one-time password.
	// Purpose is NOTES for the note of an item.
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
	Label   string `json:"label"`
	Value   string `json:"value"`
	TOTP    string `json:"totp"`
	// Name and Size, in bytes, are those of a file.
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// remoteID matches the IDs of vaults, items and files.
var remoteID = regexp.MustCompile(`^[a-z0-9]{26}$`)

// An api calls a Connect server.
type api struct{ provider.JSONAPI }

// operation returns the operation of a request for metrics.
func operation(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/v1/")
	if r.Method != http.MethodGet {
		return map[string]string{http.MethodPost: "create", http.MethodPatch: "update", http.MethodDelete: "delete"}[r.Method] + "-item"
	}
	return "get-" + map[int]string{1: "vaults", 3: "items", 4: "item", 7: "file"}[strings.Count(path, "/")+1]
}

// isListing reports whether the answer to a request can be as large as a list.
func isListing(r *http.Request) bool {
	return slices.Contains([]string{"get-vaults", "get-items"}, operation(r))
}

// listVaults returns the vaults to which the token has access.
func (a *api) listVaults(ctx context.Context) (all []vault, err error) {
	if err := a.Call(ctx, "listing vaults", http.MethodGet, "/v1/vaults", nil, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, a.Foreign("listing vaults")
	}
	for _, v := range all {
		if !remoteID.MatchString(v.ID) {
			return nil, a.Foreign("listing vaults")
		}
	}
	return all, nil
}

// listItems returns the items of a vault, without fields. With a title, it can omit items with other titles.
func (a *api) listItems(ctx context.Context, in vault, title string) (all []item, err error) {
	path := "/v1/vaults/" + in.ID + "/items"
	// How Connect reads a quotation mark in a filter is not documented.
	if title != "" && !strings.ContainsAny(title, `"\`) {
		path += "?filter=" + url.QueryEscape(`title eq "`+title+`"`)
	}
	if err := a.Call(ctx, "listing items of vault "+provider.Quoted(in.Name), http.MethodGet, path, nil, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, a.Foreign("listing items")
	}
	for _, i := range all {
		if !remoteID.MatchString(i.ID) {
			return nil, a.Foreign("listing items")
		}
	}
	return all, nil
}

// getItem returns an item with its fields.
func (a *api) getItem(ctx context.Context, at place) (*item, error) {
	return a.oneItem(ctx, "reading the item", http.MethodGet, at, nil)
}

// oneItem makes a request for an item, and returns the item of the answer.
func (a *api) oneItem(ctx context.Context, what, method string, at place, body any) (*item, error) {
	i := &item{}
	path := "/v1/vaults/" + at.vault.ID + "/items"
	if at.id != "" {
		path += "/" + at.id
	}
	if err := a.Call(ctx, what, method, path, body, i); err != nil {
		return nil, err
	}
	if i.ID != at.id && at.id != "" || !remoteID.MatchString(i.ID) || i.Vault.ID != at.vault.ID || i.Version < 1 {
		return nil, a.Foreign(what)
	}
	for _, f := range i.Files {
		if !remoteID.MatchString(f.ID) {
			return nil, a.Foreign(what)
		}
	}
	return i, nil
}

// getFile returns the content of a file of an item.
func (a *api) getFile(ctx context.Context, i *item, f entry) ([]byte, error) {
	what := "reading the file " + provider.Quoted(f.Name)
	body, err := a.Send(ctx, what, http.MethodGet, "/v1/vaults/"+i.Vault.ID+"/items/"+i.ID+"/files/"+f.ID+"/content", nil)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) != f.Size {
		return nil, provider.NewError(provider.Unavailable, "%s: the response has %d bytes instead of %d", what, len(body), f.Size)
	}
	return body, nil
}
