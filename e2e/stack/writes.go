package stack

import (
	"maps"
	"net/http"
	"strings"
)

// A Write is a kind of request that can change an object.
type Write struct {
	// Method is the HTTP method. Server-side apply is a PATCH.
	Method string
	// Resource includes the subresource, for example "externalsecrets/status".
	Resource string
	// Namespace and Name are those in the URL. A POST of an object has no name.
	Namespace, Name string
}

// Writes returns how many requests of each kind the Proxy has passed on, also those that changed nothing. Requests to read
// or to watch do not count.
func (p *Proxy) Writes() map[Write]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.writes)
}

// counting counts the writes before it passes them on.
func (p *Proxy) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			p.mu.Lock()
			p.writes[writeOf(r)]++
			p.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

// writeOf returns the kind of a request, by the paths in
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func writeOf(r *http.Request) Write {
	w := Write{Method: r.Method}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	prefix := 2 // api/VERSION
	if path[0] == "apis" {
		prefix = 3 // apis/GROUP/VERSION
	}
	path = path[min(prefix, len(path)):]
	if len(path) > 2 && path[0] == "namespaces" {
		w.Namespace, path = path[1], path[2:]
	}
	if len(path) > 0 {
		w.Resource = path[0]
	}
	if len(path) > 1 {
		w.Name = path[1]
	}
	if len(path) > 2 {
		w.Resource += "/" + strings.Join(path[2:], "/")
	}
	return w
}
