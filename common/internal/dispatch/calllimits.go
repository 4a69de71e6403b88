package dispatch

// maxSearches is the maximum number of concurrent searches of one store: each can be many calls, and must leave room
// for the reads of single secrets.
const maxSearches = 2

// callLimits limit the calls to a store: by the calls under way, and by the provider's rate limit.
type callLimits struct {
	limiter
	// maxCalls is that of Options.
	maxCalls int
	// calls and searching count the calls and searches under way.
	calls, searching int
}

// callMayGo reports whether one more call can be made, for a client with batches of up to size reads.
func (p *callLimits) callMayGo(size int) bool {
	most := p.maxCalls
	switch {
	case most > 0:
	case size == 1:
		most = 32
	default:
		most = 10
	}
	return p.calls < most
}

// searchMayGo reports whether one more search can be made.
func (p *callLimits) searchMayGo() bool { return p.searching < maxSearches }
