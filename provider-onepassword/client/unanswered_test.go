package client

import (
	"strconv"
	"testing"
	"time"
)

// TestUnansweredKept adds creations without an answer, each of another item. Only those that can still take effect are kept.
func TestUnansweredKept(t *testing.T) {
	c := &Client{unanswered: map[string]time.Time{}}
	now := time.Unix(1_000_000, 0)
	for i := range 100 {
		c.addUnanswered(strconv.Itoa(i), now.Add(time.Duration(i)*unansweredWait/10))
	}
	if n := len(c.unanswered); n != 10 {
		t.Errorf("%d of 100 creations are kept, ten within %s; want 10", n, unansweredWait)
	}
}
