package policy

import "time"

// The back-off of a drift fight.
const (
	freeReverts = 5
	maxRevert   = 5 * time.Minute
	peace       = 10 * time.Minute
)

// Fight counts how often the fields of an object were put right, one time soon after another. The
// zero value is peace.
type Fight struct {
	reverts int
	last    time.Time
}

// Revert notes that drift was reverted.
func (f Fight) Revert(now time.Time) Fight {
	if now.Sub(f.last) >= peace {
		f.reverts = 0
	}
	return Fight{reverts: f.reverts + 1, last: now}
}

// Wait returns how long the next revert is held back: the first five not at all, later ones for a
// second that doubles up to five minutes. Ten minutes without a revert are peace.
func (f Fight) Wait(now time.Time) time.Duration {
	if f.reverts < freeReverts || now.Sub(f.last) >= peace {
		return 0
	}
	wait := maxRevert
	if n := f.reverts - freeReverts; n < 9 { // 1 s doubled nine times is more than the bound.
		wait = min(wait, time.Second<<n)
	}
	return max(0, f.last.Add(wait).Sub(now))
}
