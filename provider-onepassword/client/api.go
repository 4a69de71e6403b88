package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
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
	Type  string `json:"type"`
	Label string `json:"label"`
	Value string `json:"value"`
	TOTP  string `json:"totp"`
	// Name and Size, in bytes, are those of a file.
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// remoteID matches the IDs of vaults, items and files.
var remoteID = regexp.MustCompile(`^[a-z0-9]{26}$`)

// An api calls a Connect server.
type api struct {
	base, token string
	http        *http.Client
	transport   *http.Transport
}

// operation returns the operation of a request for metrics.
func operation(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/v1/")
	parts := strings.Split(path, "/")
	return "get-" + map[int]string{1: "vaults", 3: "items", 4: "item", 7: "file"}[len(parts)]
}

// isListing reports whether the answer to a request can be as large as a list.
func isListing(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "s")
}

// listVaults returns the vaults to which the token has access.
func (a *api) listVaults(ctx context.Context) (all []vault, err error) {
	if err := a.call(ctx, "listing vaults", "/v1/vaults", &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, foreign("listing vaults")
	}
	for _, v := range all {
		if !remoteID.MatchString(v.ID) {
			return nil, foreign("listing vaults")
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
	if err := a.call(ctx, "listing items of vault "+quoted(in.Name), path, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, foreign("listing items")
	}
	for _, i := range all {
		if !remoteID.MatchString(i.ID) {
			return nil, foreign("listing items")
		}
	}
	return all, nil
}

// getItem returns an item with its fields.
func (a *api) getItem(ctx context.Context, at place) (*item, error) {
	i := &item{}
	if err := a.call(ctx, "reading the item", "/v1/vaults/"+at.vault.ID+"/items/"+at.id, i); err != nil {
		return nil, err
	}
	if i.ID != at.id || i.Vault.ID != at.vault.ID || i.Version < 1 {
		return nil, foreign("reading the item")
	}
	for _, f := range i.Files {
		if !remoteID.MatchString(f.ID) {
			return nil, foreign("reading the item")
		}
	}
	return i, nil
}

// getFile returns the content of a file of an item.
func (a *api) getFile(ctx context.Context, i *item, f entry) ([]byte, error) {
	what := "reading the file " + quoted(f.Name)
	body, err := a.send(ctx, what, "/v1/vaults/"+i.Vault.ID+"/items/"+i.ID+"/files/"+f.ID+"/content")
	if err != nil {
		return nil, err
	}
	if int64(len(body)) != f.Size {
		return nil, provider.NewError(provider.Unavailable, "%s: the response has %d bytes instead of %d", what, len(body), f.Size)
	}
	return body, nil
}

// call makes a GET request, and decodes the answer.
func (a *api) call(ctx context.Context, what, path string, into any) error {
	body, err := a.send(ctx, what, path)
	if err != nil {
		return err
	}
	if json.Unmarshal(body, into) != nil {
		return foreign(what)
	}
	return nil
}

// send makes a GET request, and returns the body of an answer with status 200.
func (a *api) send(ctx context.Context, what, path string) (body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: is not the URL of a Connect server", hostField)
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("User-Agent", "direct-secrets")
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, explain(err, what)
	}
	defer func() { _ = resp.Body.Close() }() // The body has been read.
	var b bytes.Buffer
	if _, err := io.Copy(&b, resp.Body); err != nil {
		return nil, explain(err, what)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, explainStatus(resp, b.Bytes(), what)
	}
	return b.Bytes(), nil
}
