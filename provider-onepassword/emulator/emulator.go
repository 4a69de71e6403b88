package emulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const (
	// Name is what published tables of results call this server.
	Name = "Connect emulator of this project"
	// DefaultVault is the name of the vault of an Emulator without options.
	DefaultVault = "shop"
	// DefaultToken is the token of an Emulator without options, for all vaults.
	DefaultToken = "test-token"
)

// A Call is one request. It contains no value.
type Call struct {
	Time time.Time
	// Method is the name of the call, such as GetItem.
	Method string
	// Name is the path of the request.
	Name string
	// Accepted is false for a request with an unknown token.
	Accepted bool
}

// CallName returns the method.
func (c Call) CallName() string { return c.Method }

// An Emulator is a Connect server that does not listen. Start creates one.
type Emulator struct {
	config
	fake.CallLog[Call]
	fake.Faults[Fault]

	mu     sync.RWMutex
	lastID int
	vaults []*vault
	tokens map[string][]string // the vaults of each token; nil for all
}

type vault struct {
	id, name string
	items    []*Item // in order of creation
}

// An Item is an item of a vault, in the format of the API.
type Item struct {
	ID        string    `json:"id,omitempty"`
	Title     string    `json:"title"`
	Vault     VaultRef  `json:"vault"`
	Category  string    `json:"category"`
	Tags      []string  `json:"tags,omitempty"`
	Version   int       `json:"version,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Sections  []Section `json:"sections,omitempty"`
	Fields    []Field   `json:"fields,omitempty"`
	Files     []File    `json:"files,omitempty"`

	// lag is the number of lists that still omit the item.
	lag int
}

// A VaultRef is the vault of an item.
type VaultRef struct {
	ID string `json:"id"`
}

// A Section is a section of an item.
type Section struct {
	ID    string `json:"id"`
	Label string `json:"label,omitempty"`
}

// A Field is a field of an item.
type Field struct {
	ID      string   `json:"id,omitempty"`
	Section *Section `json:"section,omitempty"`
	Type    string   `json:"type,omitempty"`
	Purpose string   `json:"purpose,omitempty"`
	Label   string   `json:"label,omitempty"`
	Value   string   `json:"value,omitempty"`
	// TOTP is the current one-time password of a field of type OTP.
	TOTP string `json:"totp,omitempty"`
}

// A File is a file of an item.
type File struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Size        int      `json:"size"`
	ContentPath string   `json:"content_path"`
	Section     *Section `json:"section,omitempty"`
	Content     []byte   `json:"-"`
}

func build(opts []Option) *Emulator {
	c := config{vaults: []string{DefaultVault}}
	for _, o := range opts {
		o(&c)
	}
	e := &Emulator{config: c, tokens: map[string][]string{DefaultToken: nil}}
	for _, name := range c.vaults {
		e.vaults = append(e.vaults, &vault{id: e.newID(), name: name})
	}
	return e
}

// newID returns an ID in the format of 1Password: 26 lower-case letters and digits.
func (e *Emulator) newID() string {
	e.lastID++
	return fmt.Sprintf("%026d", e.lastID)
}

// AddToken accepts a token for some vaults, by name; without any, for all.
func (e *Emulator) AddToken(token string, vaults ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens[token] = vaults
}

// RevokeToken rejects a token from now on.
func (e *Emulator) RevokeToken(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tokens, token)
}

// Add adds an item to a vault, by name, and returns its ID. It gives an ID to each field and file that has none, and does not
// compare titles.
func (e *Emulator) Add(vaultName string, item Item) (id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addLocked(e.vaultLocked(vaultName), item).ID
}

func (e *Emulator) addLocked(v *vault, item Item) *Item {
	item.ID, item.Vault.ID, item.Version = e.newID(), v.id, 1
	item.CreatedAt, item.UpdatedAt = time.Now(), time.Now()
	e.completeLocked(&item)
	v.items = append(v.items, &item)
	return &item
}

// completeLocked gives IDs to fields and files.
func (e *Emulator) completeLocked(item *Item) {
	item.Fields, item.Files = slices.Clone(item.Fields), slices.Clone(item.Files)
	for i := range item.Fields {
		if item.Fields[i].ID == "" {
			item.Fields[i].ID = e.newID()
		}
	}
	for i := range item.Files {
		f := &item.Files[i]
		if f.ID == "" {
			f.ID = e.newID()
		}
		f.Size = len(f.Content)
		f.ContentPath = "/v1/vaults/" + item.Vault.ID + "/items/" + item.ID + "/files/" + f.ID + "/content"
	}
}

// Put writes the fields of the only item of a vault with a title, or adds one. Nil tags keep its tags.
func (e *Emulator) Put(vaultName, title string, fields map[string]string, tags []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.vaultLocked(vaultName)
	i := slices.IndexFunc(v.items, func(i *Item) bool { return i.Title == title })
	if i < 0 {
		i = len(v.items)
		e.addLocked(v, Item{Title: title, Category: "API_CREDENTIAL"}).Version = 0
	}
	item := v.items[i]
	if tags != nil {
		item.Tags = slices.Clone(tags)
	}
	item.Fields = nil
	for _, label := range slices.Sorted(maps.Keys(fields)) {
		item.Fields = append(item.Fields, Field{Label: label, Type: "CONCEALED", Value: fields[label]})
	}
	e.changedLocked(item)
}

func (e *Emulator) changedLocked(item *Item) {
	e.completeLocked(item)
	item.Version++
	item.UpdatedAt = time.Now()
}

// SetField writes a field, by its label, of the first item of a vault with a title.
func (e *Emulator) SetField(vaultName, title, label, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, item := range e.vaultLocked(vaultName).items {
		i := slices.IndexFunc(item.Fields, func(f Field) bool { return f.Label == label })
		if item.Title == title && i >= 0 {
			item.Fields = slices.Clone(item.Fields)
			item.Fields[i].Value = value
			e.changedLocked(item)
			return
		}
	}
}

// Items returns the items of a vault, by name.
func (e *Emulator) Items(vaultName string) (all []Item) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, i := range e.vaultLocked(vaultName).items {
		all = append(all, *i)
	}
	return all
}

// Item returns the item with an ID; the zero Item if there is none.
func (e *Emulator) Item(id string) Item {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, v := range e.vaults {
		for _, i := range v.items {
			if i.ID == id {
				return *i
			}
		}
	}
	return Item{}
}

// Delete deletes the items of a vault that have a title.
func (e *Emulator) Delete(vaultName, title string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.vaultLocked(vaultName)
	v.items = slices.DeleteFunc(v.items, func(i *Item) bool { return i.Title == title })
}

// VaultID returns the ID of a vault.
func (e *Emulator) VaultID(name string) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.vaultLocked(name).id
}

// vaultLocked returns a vault by name or ID; nil if there is none.
func (e *Emulator) vaultLocked(name string) *vault {
	i := slices.IndexFunc(e.vaults, func(v *vault) bool { return v.name == name || v.id == name })
	if i < 0 {
		return nil
	}
	return e.vaults[i]
}

// titleOf returns the title of the item that a path names, or that a filter asks for.
func (e *Emulator) titleOf(itemID, filter string) string {
	if item := e.Item(itemID); itemID != "" && item.ID != "" {
		return item.Title
	}
	title, _ := strings.CutPrefix(filter, `title eq "`)
	return strings.TrimSuffix(title, `"`)
}
