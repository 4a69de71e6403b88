package template

import (
	"sync"

	texttemplate "github.com/DataDog/datadog-agent/pkg/template/text"
)

// maxShelf bounds the texts of the templates that are kept prepared, in bytes. Prepared they take some
// hundred times as much.
const maxShelf = 128 << 10

// prepared is a template that was parsed and rewritten. Its functions are bound to its run, so that it
// serves one caller at a time.
type prepared struct {
	rw       *rewriter
	run      *run
	template *texttemplate.Template
	// steps is what the first execution of the whole takes, as far as it is not counted on the way.
	steps int
}

// A shelf keeps prepared templates by their texts: to parse one costs as much as to execute it, and often many
// Secrets have the same. What a rendering costs of its budget does not depend on it.
type shelf struct {
	mu   sync.Mutex
	all  map[string][]*prepared
	size int
}

// take returns a prepared template that nobody else has; nil if there is none.
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

// put gives a prepared template back. A full shelf is emptied first: what is in use comes back.
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
