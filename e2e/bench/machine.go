package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Machine describes the machine, on which the figures depend.
type Machine struct {
	Date  time.Time `json:"date"`
	Cores int       `json:"cores"`
	// Load is the average number of processes that wanted a core in the minute before the run; -1 if unknown.
	Load float64 `json:"load"`
	OS   string  `json:"os"`
}

// thisMachine returns the present state of the machine.
func thisMachine() Machine {
	m := Machine{Date: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Load: -1, OS: runtime.GOOS + "/" + runtime.GOARCH}
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return m
	}
	if first, _, ok := strings.Cut(string(raw), " "); ok {
		if load, err := strconv.ParseFloat(first, 64); err == nil {
			m.Load = load
		}
	}
	return m
}

// String returns the machine as one line, with a warning if other work disturbs the figures.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, load %.2f", m.Date.Format(time.RFC3339), m.Cores, m.OS, m.Load)
	if m.Load > float64(m.Cores)/2 {
		s += ": the machine is busy, so figures are worse than they could be"
	}
	return s
}
