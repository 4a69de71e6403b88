package emulator

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	// defaultPort is what Key Vault writes into links, and not into IDs.
	defaultPort = ":443"
	// emptyPages is the number of empty pages between two others. A vault was seen to have several.
	emptyPages = 2
)

// A page is a page of a list.
type page struct {
	Value    []*bundle `json:"value"`
	NextLink *string   `json:"nextLink"`

	self string
}

// A position is where a page begins: the number of entries before it, and of the empty pages before those.
type position struct{ skip, empty int }

func (p position) token() string { return fmt.Sprintf("%d.%d", p.skip, p.empty) }

// positionOf returns the position that a request asks for.
func positionOf(r *http.Request) (p position, failed *failure) {
	token := r.URL.Query().Get("$skiptoken")
	if token == "" {
		return p, nil
	}
	if n, err := fmt.Sscanf(token, "%d.%d", &p.skip, &p.empty); n != 2 || err != nil || p.skip < 0 {
		return p, badParameter("The skiptoken is not valid")
	}
	return p, nil
}

// paged returns one page. The others are linked, with empty ones between them.
func (s *vault) paged(r *http.Request, all []*bundle) (any, *failure) {
	at, failed := positionOf(r)
	if failed != nil {
		return nil, failed
	}
	size := s.pageSize
	if n, err := strconv.Atoi(r.URL.Query().Get("maxresults")); err == nil && n > 0 {
		size = min(size, n)
	}
	p := &page{Value: []*bundle{}, self: linkTo(r, at)}
	next := position{at.skip, at.empty - 1}
	if at.empty == 0 {
		next = position{at.skip + size, emptyPages}
		p.Value = append(p.Value, all[min(at.skip, len(all)):min(next.skip, len(all))]...)
	}
	if next.skip < len(all) {
		link := linkTo(r, next)
		p.NextLink = &link
	}
	return p, nil
}

// linkTo returns the link to a page of the requested list. Like that of Key Vault it names the port, also if the request does not.
func linkTo(r *http.Request, at position) string {
	host := r.Host
	if !strings.Contains(host, ":") {
		host += defaultPort
	}
	q := r.URL.Query()
	next := url.Values{"api-version": q["api-version"], "$skiptoken": {at.token()}}
	if q.Has("maxresults") {
		next["maxresults"] = q["maxresults"]
	}
	return "https://" + host + r.URL.Path + "?" + next.Encode()
}
