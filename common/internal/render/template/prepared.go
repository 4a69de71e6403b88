package template

import (
	"sync"

	texttemplate "github.com/DataDog/datadog-agent/pkg/template/text"
)

// maxShelf limits the texts of the prepared templates that are kept, in bytes. A prepared template takes about a
// hundred times as much memory as its text.
const maxShelf = 128 << 10

// prepared is a parsed and rewritten template. Its functions are bound to its run, so only one caller at a time can
// use it.
type prepared struct {
	rw       *rewriter
	run      *run
	template *texttemplate.Template
	// steps is the cost of the first execution, without the parts that are counted during the execution.
	steps int
}

// A shelf keeps prepared templates by their texts: parsing takes as long as executing, and often many Secrets have
// the same template. A rendering takes the same from its budget whether its template was prepared or not.
type shelf struct {
	mu sync.Mutex
	// Bound: maxShelf bytes of texts.
	all  map[string][]*prepared
	size int
}

// take removes a prepared template from the shelf and returns it; nil if there is none.
func (s *shelf) take(text string) *prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.all[text]
	if len(free) == 0 {
		return nil
	}
	p := free[len(free)-1]
	if s.all[text] = free[:len(free)-1]; len(free) == 1 {
		delete(s.all, text)
	}
	s.size -= len(text)
	return p
}

// put returns a prepared template to the shelf. A full shelf is emptied first; templates in use are put back again.
func (s *shelf) put(text string, p *prepared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > maxShelf {
		return
	}
	if s.all == nil || s.size+len(text) > maxShelf {
		s.all, s.size = map[string][]*prepared{}, 0
	}
	s.all[text] = append(s.all[text], p)
	s.size += len(text)
}
