package dispatch

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// What one store may answer: large answers, or very many, take processor time from all others. A call counts as some bytes, so
// that a store is asked about 500 times a second, after a burst of 4,000 calls.
const (
	volumeRate  = 4 << 20 // bytes a second
	volumeBurst = 32 << 20
	callCost    = 8 << 10
)

// volume is a token bucket of bytes. How many a call takes is known only once it has ended, so it may be in debt. The zero volume
// is full.
type volume struct {
	// spent is what was taken and is not made up for yet, at a time.
	spent float64
	at    time.Time
	// expected is how many bytes the next answer takes, most likely: as many as a large one of late.
	expected int64
}

// spend takes what some calls cost.
func (v *volume) spend(now time.Time, bytes int64) {
	v.spent, v.at = v.now(now)+float64(bytes), now
	v.expected = max(bytes, v.expected*7/8)
}

func (v *volume) now(now time.Time) float64 {
	return max(0, v.spent-now.Sub(v.at).Seconds()*volumeRate)
}

// wait returns how long no call may be made. Urgent ones have as much again, so that they do not wait for periodic ones.
func (v *volume) wait(now time.Time, urgent bool) time.Duration {
	most := float64(volumeBurst)
	if urgent {
		most *= 2
	}
	return max(0, time.Duration((v.now(now)-most)/volumeRate*float64(time.Second)))
}

// cost returns what answers count.
func cost(answers []provider.Answer) int64 {
	n := int64(callCost)
	for _, a := range answers {
		n += size(a)
	}
	return n
}
