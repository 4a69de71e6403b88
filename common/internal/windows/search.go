package windows

import "time"

// A search checks windows at times that only increase. It asks the schedule of a window again only once its last answer has expired.
type search struct {
	// allowed and denied are the windows by kind.
	allowed, denied []*cursor
	// steps is how many steps are left to the present call of changes.
	steps int
}

// A cursor is a window with its state at the last time: it was open or closed, until a time; zero for always.
type cursor struct {
	window
	known, open bool
	until       time.Time
}

func (ws Windows) search() *search {
	s := &search{}
	for _, w := range ws {
		if w.deny {
			s.denied = append(s.denied, &cursor{window: w})
		} else {
			s.allowed = append(s.allowed, &cursor{window: w})
		}
	}
	return s
}

// changes reports whether the windows are open at a time, and when that changes within a duration; zero if no change was found.
func (s *search) changes(now time.Time, within time.Duration) (open bool, at time.Time) {
	s.steps = maxSteps
	open, at = s.state(now)
	for s.steps > 0 && !at.IsZero() && at.Sub(now) <= within {
		t, is := at, false
		if is, at = s.state(t); is != open {
			return open, t
		}
	}
	return open, time.Time{}
}

// state reports whether the windows are open at a time, and a time until which that stays so; zero for always.
func (s *search) state(t time.Time) (open bool, until time.Time) {
	open = len(s.allowed) == 0
	for _, c := range s.allowed {
		if s.update(c, t); c.open {
			open, until = true, c.until
			break
		}
		until = earlier(until, c.until)
	}
	if !open {
		return false, until
	}
	for _, c := range s.denied {
		if s.update(c, t); c.open {
			return false, c.until
		}
		until = earlier(until, c.until)
	}
	return true, until
}

// update finds the state of a window at a time.
func (s *search) update(c *cursor, t time.Time) {
	if c.known && (c.until.IsZero() || t.Before(c.until)) {
		return
	}
	last := s.next(c, t.Add(-c.duration))
	if last.IsZero() || last.After(t) {
		c.known, c.open, c.until = true, false, last
		return
	}
	// A window that stays open can have opened thousands of times since then. If the last opening is not in the later half of the
	// duration, it is found exactly: otherwise the search would go from one opening to the next.
	for end := t; c.open && t.Sub(last) > c.duration/2 && end.Sub(last) > time.Minute; {
		middle := last.Add(end.Sub(last) / 2)
		if at := s.next(c, middle); !at.IsZero() && !at.After(t) {
			last = at
		} else {
			end = middle
		}
	}
	c.known, c.open, c.until = true, true, last.Add(c.duration)
}

// next returns the next time of the schedule of a window; zero if there is none within five years.
func (s *search) next(c *cursor, t time.Time) time.Time {
	// Windows open at full minutes, and the library goes through the seconds up to one.
	at := c.schedule.Next(t.Truncate(time.Minute).Add(time.Minute - time.Second))
	skipped := at.Sub(t)
	if at.IsZero() {
		skipped = 5 * 366 * 24 * time.Hour
	}
	s.steps -= cost(skipped)
	return at
}

// cost returns the steps of a call of schedule.Next that skips a time. The library goes through the minutes of an hour, the hours of
// a day, the days of a month, and the months.
func cost(skipped time.Duration) int {
	return 1 + int(min(skipped, time.Hour)/(15*time.Minute)) + int(skipped/(15*24*time.Hour))
}

// earlier returns the earlier of two times; the other one if one is zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
