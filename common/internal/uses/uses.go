// Package uses finds the users of a remote secret without examining every entry of every user.
package uses

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// An Entry is a remote secret that a user has pushed or compared.
type Entry struct {
	// Place is where the store leads: as its client has reported if Located is true, else as a status records it, empty for nothing.
	Place   string
	Located bool
	// Key is the key as the user writes it.
	Key string
	// Name is the name that the client reports for the key; zero if it is unknown. It counts only if Located is true.
	Name provider.Name
	// ID distinguishes the secret from another one with the same name. It may be empty.
	ID string
}

// An Index finds users by their entries. It finds each user that can have an entry for a secret, and may find others, so the
// caller examines their present entries. The zero U is no user. The zero
// Index is empty and ready to use. It is safe for concurrent use.
type Index[U comparable] struct {
	mu sync.RWMutex
	// uses are by the hash of a term. Terms with the same hash only make the caller examine more.
	// Bound: the places in the marks.
	uses map[uint64]bucket[U]
	// marks are those by which the entries of a user are found.
	// Bound: one per object; its status limits the marks of each.
	marks map[U][]mark
}

// mark is the hash of a term, and the key of its entry.
type mark struct {
	term uint64
	key  string
}

type use[U comparable] struct {
	user U
	key  string
}

// bucket are the uses under one term. Most terms have one use, which then needs no map.
type bucket[U comparable] struct {
	one  use[U]
	more map[use[U]]struct{}
}

// The sorts of terms by which an entry is found.
const (
	byKey = iota
	byNameID
	byID
	// unnamed entries can be of any secret at their place.
	unnamed
	// unlocated entries have an unknown prefix before their key.
	unlocated
)

var seed = maphash.MakeSeed()

func hash(sort int, place, name string) uint64 {
	return maphash.Comparable(seed, struct {
		sort        int
		place, name string
	}{sort, place, name})
}

// marksOf returns the marks of an entry.
func marksOf(e Entry) (marks []mark) {
	add := func(sort int, name string) { marks = append(marks, mark{hash(sort, e.Place, name), e.Key}) }
	switch {
	case !e.Located:
		add(unlocated, e.Key)
	case e.Name.Key == "":
		add(unnamed, "")
	default:
		add(byKey, e.Name.Key)
	}
	if e.Located && e.Name.ID != "" {
		add(byNameID, e.Name.ID)
	}
	if e.ID != "" {
		add(byID, e.ID)
	}
	return marks
}

// Set replaces the entries of a user. Without entries, the user is forgotten.
func (x *Index[U]) Set(user U, entries []Entry) {
	var marks []mark
	for _, e := range entries {
		marks = append(marks, marksOf(e)...)
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.key, b.key)) })
	marks = slices.Compact(marks) // Properties share the key of their secret.
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Equal(x.marks[user], marks) {
		return
	}
	for _, m := range x.marks[user] {
		x.remove(m.term, use[U]{user, m.key})
	}
	delete(x.marks, user)
	x.add(user, marks)
}

// Add adds entries of a user.
func (x *Index[U]) Add(user U, entries []Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range entries {
		x.add(user, marksOf(e))
	}
}

// add adds the marks that the user does not have yet.
func (x *Index[U]) add(user U, marks []mark) {
	if x.uses == nil {
		x.uses, x.marks = map[uint64]bucket[U]{}, map[U][]mark{}
	}
	all := slices.Grow(x.marks[user], len(marks))
	for _, m := range marks {
		is := use[U]{user, m.key}
		b := x.uses[m.term]
		if _, has := b.more[is]; has || b.one == is {
			continue
		}
		all = append(all, m)
		switch {
		case b.empty():
			b.one = is
		case b.more == nil:
			b.more = map[use[U]]struct{}{is: {}}
		default:
			b.more[is] = struct{}{}
		}
		x.uses[m.term] = b
	}
	if len(all) > 0 {
		x.marks[user] = all
	}
}

func (b bucket[U]) empty() bool { return b.one == (use[U]{}) && len(b.more) == 0 }

func (x *Index[U]) remove(term uint64, is use[U]) {
	b := x.uses[term]
	if b.one == is {
		b.one = use[U]{}
	}
	delete(b.more, is)
	if x.uses[term] = b; b.empty() {
		delete(x.uses, term)
	}
}

// Of returns the users that can have an entry for a secret at a place, with the keys of these entries. name is zero if it is
// unknown, and id may be empty.
func (x *Index[U]) Of(place string, name provider.Name, id string) map[U]map[string]bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[U]map[string]bool{}
	add := func(is use[U]) {
		if found[is.user] == nil {
			found[is.user] = map[string]bool{}
		}
		found[is.user][is.key] = true
	}
	take := func(sort int, place, name string) {
		b := x.uses[hash(sort, place, name)]
		if b.one != (use[U]{}) {
			add(b.one)
		}
		for is := range b.more {
			add(is)
		}
	}
	take(byKey, place, name.Key)
	take(byNameID, place, name.ID)
	take(unnamed, place, "")
	for _, p := range []string{place, ""} {
		take(byID, p, id)
		for i := range len(name.Key) + 1 {
			take(unlocated, p, name.Key[i:])
		}
	}
	return found
}
