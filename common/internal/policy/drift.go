package policy

import "time"

// The back-off of a conflict about fields that are changed again and again.
const (
	freeReverts = 5
	maxRevert   = 5 * time.Minute
	quietPeriod = 10 * time.Minute
)

// RevertBackoff counts how often drift of an object was reverted, with less than ten minutes between two reverts. The zero
// value has no back-off.
type RevertBackoff struct {
	reverts int
	last    time.Time
}

// Revert records that drift was reverted.
func (f RevertBackoff) Revert(now time.Time) RevertBackoff {
	if now.Sub(f.last) >= quietPeriod {
		f.reverts = 0
	}
	return RevertBackoff{reverts: f.reverts + 1, last: now}
}

// Wait returns how long the next revert must wait. The first five reverts do not wait. Later ones wait for a second,
// doubled each time, up to five minutes. After ten minutes without a revert, counting starts again.
func (f RevertBackoff) Wait(now time.Time) time.Duration {
	if f.reverts < freeReverts || now.Sub(f.last) >= quietPeriod {
		return 0
	}
	wait := maxRevert
	if n := f.reverts - freeReverts; n < 9 { // 1 s doubled nine times exceeds the maximum.
		wait = min(wait, time.Second<<n)
	}
	return max(0, f.last.Add(wait).Sub(now))
}
