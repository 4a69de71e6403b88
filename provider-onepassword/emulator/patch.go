package emulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// An operation is a part of a patch. Connect knows add, remove and replace.
type operation struct {
	Op, Path string
	Value    json.RawMessage
}

// patchItem changes an item. Connect does not compare versions. In the path of a field, its ID is the index.
func (r request) patchItem() response {
	var all []operation
	refused := failed(http.StatusBadRequest, "Unable to update item due to invalid input")
	if json.NewDecoder(r.Body).Decode(&all) != nil || len(all) == 0 {
		return refused
	}
	next := *r.item
	next.Fields = slices.Clone(next.Fields)
	for _, o := range all {
		if !o.apply(&next) {
			return refused
		}
	}
	*r.item = next
	r.emulator.changedLocked(r.item)
	return response{status: http.StatusOK, body: *r.item}
}

// unescape replaces the escapes of RFC 6901.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// apply makes the operations that this project uses: on the tags, on a field, and on an attribute of a field.
func (o operation) apply(item *Item) bool {
	parts := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	switch {
	case o.Path == "/tags" && o.Op == "replace":
		item.Tags = nil
		return json.Unmarshal(o.Value, &item.Tags) == nil
	case o.Path == "/fields" && o.Op == "add":
		var f Field
		ok := json.Unmarshal(o.Value, &f) == nil && f.ID == ""
		item.Fields = append(item.Fields, f)
		return ok
	case parts[0] != "fields" || len(parts) < 2:
		return false
	}
	id := unescape.Replace(parts[1])
	i := slices.IndexFunc(item.Fields, func(f Field) bool { return f.ID == id })
	switch {
	case i < 0:
		return false
	case len(parts) == 2 && o.Op == "remove":
		item.Fields = slices.Delete(item.Fields, i, i+1)
		return true
	case len(parts) == 3 && parts[2] == "value" && o.Op == "add":
		item.Fields[i].Value = ""
		return json.Unmarshal(o.Value, &item.Fields[i].Value) == nil
	}
	return false
}
