package emulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// listItems lists items without their fields and files.
func (r request) listItems() response {
	all := []Item{}
	filter := r.URL.Query().Get("filter")
	if strings.Count(filter, `"`) > 2 { // How Connect reads these is not documented.
		return failed(http.StatusBadRequest, "Invalid filter")
	}
	for _, i := range r.vault.items {
		if i.lag > 0 {
			i.lag--
			continue
		}
		if selects(filter, "title", i.Title) || selects(filter, "tag", i.Tags...) {
			summary := *i
			summary.Fields, summary.Files, summary.Sections = nil, nil, nil
			all = append(all, summary)
		}
	}
	return response{status: http.StatusOK, body: all}
}

func (r request) getItem() response {
	return response{status: http.StatusOK, body: *r.item}
}

func (r request) createItem() response {
	var item Item
	if err := json.NewDecoder(r.Body).Decode(&item); err != nil || item.Category == "" || item.Vault.ID != r.vault.id {
		return failed(http.StatusBadRequest, "Unable to create item due to invalid input")
	}
	item.Files, item.lag = nil, r.emulator.lag
	if !slices.ContainsFunc(item.Fields, func(f Field) bool { return f.Purpose == "NOTES" }) {
		item.Fields = append(item.Fields, Field{ID: "notesPlain", Type: "STRING", Purpose: "NOTES", Label: "notesPlain"})
	}
	return response{status: http.StatusOK, body: *r.emulator.addLocked(r.vault, item)}
}

func (r request) deleteItem() response {
	r.vault.items = slices.DeleteFunc(r.vault.items, func(i *Item) bool { return i == r.item })
	return response{status: http.StatusNoContent}
}

func (r request) getFileContent() response {
	i := slices.IndexFunc(r.item.Files, func(f File) bool { return f.ID == r.PathValue("file") })
	if i < 0 {
		return absent("file", r.PathValue("file"))
	}
	return response{status: http.StatusOK, raw: append([]byte{}, r.item.Files[i].Content...)}
}
