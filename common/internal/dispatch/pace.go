package dispatch

// maxSearches of one store are under way at once: each may be many calls, and shall leave room
// for what reads single secrets.
const maxSearches = 2

// pace bounds what is asked of a store by what is under way, by what waits to be taken, and by what the provider
// bears.
type pace struct {
	limiter
	// expected is how many bytes the next answer takes, most likely: as many as a large one of late.
	expected int64
	// maxCalls and maxHeld are as those of Options.
	maxCalls, maxHeld int
	// calls and searching count what is under way.
	calls, searching int
	// held counts the tickets that are complete and were not taken yet.
	held int
}

// callMayGo reports whether there is room for one more call, of up to size reads.
func (p *pace) callMayGo(size int) bool {
	most := p.maxCalls
	switch {
	case most > 0:
	case size == 1:
		most = 32
	default:
		most = 10
	}
	return p.calls < most && p.held < p.maxHeld
}

// searchMayGo reports whether there is room for one more search.
func (p *pace) searchMayGo() bool { return p.searching < maxSearches && p.held < p.maxHeld }

// expect learns how large an answer was.
func (p *pace) expect(bytes int64) {
	p.expected = min(max(bytes, p.expected*7/8), maxTicket)
}
