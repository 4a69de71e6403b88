package emulator

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxRequest is the maximum size of a request, in bytes.
const maxRequest = 8 << 20

// A request is a call with the vault and the item that its path names.
type request struct {
	*http.Request

	emulator *Emulator
	vault    *vault
	item     *Item
}

// A response is the answer to a call: raw if it is set, or else body as JSON.
type response struct {
	status int
	body   any
	raw    []byte
}

func failed(status int, message string) response {
	return response{status: status, body: map[string]any{"status": status, "message": message}}
}

func absent(what, id string) response { return failed(http.StatusNotFound, what+" "+id+" not found") }

// refusal is the answer to a request with an injected status.
func refusal(r *http.Request, status int) response {
	switch item := r.PathValue("item"); {
	case status == http.StatusNotFound && item != "":
		return absent("item", item)
	case status == http.StatusNotFound:
		return absent("vault", r.PathValue("vault"))
	}
	return failed(status, http.StatusText(status))
}

func (e *Emulator) handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern, method string
		run             func(request) response
	}{
		{"GET /v1/vaults", "ListVaults", request.listVaults},
		{"GET /v1/vaults/{vault}/items", "ListItems", request.listItems},
		{"POST /v1/vaults/{vault}/items", "CreateItem", request.createItem},
		{"GET /v1/vaults/{vault}/items/{item}", "GetItem", request.getItem},
		{"PATCH /v1/vaults/{vault}/items/{item}", "PatchItem", request.patchItem},
		{"DELETE /v1/vaults/{vault}/items/{item}", "DeleteItem", request.deleteItem},
		{"GET /v1/vaults/{vault}/items/{item}/files/{file}/content", "GetFileContent", request.getFileContent},
	} {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, route.method, route.run) })
	}
	return mux
}

// serve counts a call, applies injected faults, authorizes the call and runs it, in that order: a call that fails is counted, too.
func (e *Emulator) serve(w http.ResponseWriter, r *http.Request, method string, run func(request) response) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	e.mu.RLock()
	_, known := e.tokens[token]
	e.mu.RUnlock()
	e.Record(Call{Time: time.Now(), Method: method, Name: r.URL.Path, Accepted: known})
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest)) // The end of a connection shows only after its body.
	if err != nil {
		write(w, failed(http.StatusRequestEntityTooLarge, "The request is too large"))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault, err := e.Suffer(r.Context(), func(f Fault) bool {
		return (f.Call == "" || f.Call == method) && (f.Key == "" || f.Key == e.titleOf(r.PathValue("item"), r.URL.Query().Get("filter")))
	})
	if err != nil || r.Context().Err() != nil {
		return
	}
	if fault.Status != 0 {
		write(w, refusal(r, fault.Status))
		return
	}
	resp := failed(http.StatusUnauthorized, "Invalid bearer token")
	if known {
		resp = e.run(request{Request: r, emulator: e}, token, run)
	}
	switch {
	case fault.Empty:
		resp = response{status: http.StatusOK, body: struct{}{}}
	case fault.Body != nil:
		resp = response{status: http.StatusOK, raw: fault.Body}
	}
	write(w, resp)
}

func write(w http.ResponseWriter, resp response) {
	if resp.raw != nil {
		w.WriteHeader(resp.status)
		_, _ = w.Write(resp.raw) // The client might have closed the connection.
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(resp.status)
	if resp.body != nil {
		_ = json.NewEncoder(w).Encode(resp.body)
	}
}

// run finds the vault and the item of a path, and makes the call.
func (e *Emulator) run(r request, token string, call func(request) response) response {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id := r.PathValue("vault"); id != "" {
		i := slices.IndexFunc(e.vaults, func(v *vault) bool { return v.id == id })
		if i < 0 {
			return absent("vault", id)
		}
		if r.vault = e.vaults[i]; !e.canRead(token, r.vault) {
			return failed(http.StatusForbidden, "vault "+id+" is not in scope")
		}
	}
	if id := r.PathValue("item"); id != "" {
		i := slices.IndexFunc(r.vault.items, func(i *Item) bool { return i.ID == id })
		if i < 0 {
			return absent("item", id)
		}
		r.item = r.vault.items[i]
	}
	if r.vault == nil {
		r.Header.Set("token", token)
	}
	return call(r)
}

func (e *Emulator) canRead(token string, v *vault) bool {
	return e.tokens[token] == nil || slices.Contains(e.tokens[token], v.name)
}

// A vaultBody is a vault in the format of the API.
type vaultBody struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Items int    `json:"items"`
}

func (r request) listVaults() response {
	all := []vaultBody{}
	for _, v := range r.emulator.vaults {
		if r.emulator.canRead(r.Header.Get("token"), v) && selects(r.URL.Query().Get("filter"), "name", v.name) {
			all = append(all, vaultBody{v.id, v.name, len(v.items)})
		}
	}
	return response{status: http.StatusOK, body: all}
}

// selects reports whether a filter such as title eq "a" selects any of values. Connect compares without regard to case. The field
// of another name selects nothing.
func selects(filter, field string, values ...string) bool {
	if filter == "" {
		return true
	}
	value, ok := strings.CutPrefix(filter, field+` eq "`)
	if !ok {
		return false
	}
	value = strings.TrimSuffix(value, `"`)
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, value) })
}
