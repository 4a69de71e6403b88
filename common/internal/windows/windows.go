// Package windows knows when the sync windows of an object are open. Its functions are pure.
package windows

import (
	"path"
	"sync"
	"time"

	// Images from scratch, and Windows, have no time zones.
	_ "time/tzdata"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const (
	// horizon is how far ahead At looks for a change.
	//limit:objects Time ahead in which the next opening of sync windows is searched | The search ends.
	horizon = 366 * 24 * time.Hour
	// maxSteps limits the work of a search to about 5 ms. cost says what a step is.
	//limit:objects Work of a search for the next opening of sync windows, of which all take about 5 ms | unit=steps | The search ends.
	maxSteps = 6000
	// again is when to look again for an opening that was not found.
	//limit:objects Time until an opening that was not found is searched again | The object waits.
	again = 24 * time.Hour
	// minDuration is the resolution of a schedule.
	minDuration = time.Minute
	// spread is the time after an opening over which held refreshes are spread.
	spread = time.Minute
)

// Windows are the sync windows of an object. Without any, it can be refreshed at any time.
type Windows []window

// window is open for a duration after each time of a schedule.
type window struct {
	deny     bool
	schedule cron.SpecSchedule
	duration time.Duration
}

// Parse returns the windows of a spec, which may be nil. The error names the field below spec.syncWindows, and the fix.
func Parse(spec *v1alpha1.SyncWindows) (Windows, error) {
	if spec == nil {
		return nil, nil
	}
	if len(spec.Windows) == 0 {
		return nil, errors.New("windows is empty; add a window, or remove syncWindows")
	}
	var all Windows
	for i, s := range spec.Windows {
		kind := s.Kind
		if kind == "" {
			kind = spec.Kind
		}
		w, err := parse(kind, s)
		if err != nil {
			return nil, errors.Wrapf(err, "windows[%d]", i)
		}
		all = append(all, w)
	}
	return all, nil
}

func parse(kind v1alpha1.SyncWindowKind, s v1alpha1.SyncWindow) (window, error) {
	if kind != v1alpha1.SyncAllow && kind != v1alpha1.SyncDeny {
		return window{}, errors.Errorf("kind: %q is not a kind of a window; set allow or deny", string(kind))
	}
	d, err := s.Duration.Or(0)
	switch {
	case err != nil:
		return window{}, errors.Wrap(err, "duration")
	case d < minDuration:
		return window{}, errors.Errorf("duration: %q is too short; set at least 1m", string(s.Duration))
	}
	schedule, err := parseSchedule(s.Schedule)
	if err != nil {
		return window{}, errors.Wrap(err, "schedule")
	}
	if schedule.Location, err = location(s.TimeZone); err != nil {
		return window{}, errors.Wrap(err, "timeZone")
	}
	return window{deny: kind == v1alpha1.SyncDeny, schedule: *schedule, duration: d}, nil
}

// locations are the time zones that were loaded, by name. Their number is limited by that of the existing ones.
// Bound: one per existing time zone; the API refuses other forms of a name.
var locations sync.Map

func location(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil //nolint:forcetypeassert // Only this function stores values.
	}
	l, err := time.LoadLocation(name)
	if err != nil || l == time.Local || name != "" && path.Clean(name) != name {
		return nil, errors.Errorf("%q is not a time zone; write one such as Europe/Berlin, or remove it for UTC", name)
	}
	locations.Store(name, l)
	return l, nil
}

// Open reports whether an object can be refreshed at a time.
func (ws Windows) Open(t time.Time) bool {
	open, _ := ws.search().state(t)
	return open
}

// At reports whether an object can be refreshed at a time, and when that changes next. The time is zero if no change was found within
// a year, or in a reasonable number of steps.
func (ws Windows) At(now time.Time) (open bool, changes time.Time) {
	return ws.search().changes(now, horizon)
}

// A Hold says how long what is due must wait for the windows to open. The zero Hold holds nothing back.
type Hold struct {
	// Opens is when the windows open; zero if that is not within a year.
	Opens time.Time
	// Resume is when to check again: up to a minute after the opening, so that not all objects are refreshed at once; or after a day.
	Resume time.Time
}

// Hold returns how long the windows hold back what is due. random is in [0, 1).
func (ws Windows) Hold(now time.Time, random float64) Hold {
	s := ws.search()
	open, opens := s.changes(now, horizon)
	switch {
	case open:
		return Hold{}
	case opens.IsZero():
		return Hold{Resume: now.Add(again)}
	}
	within := spread
	if _, closes := s.changes(opens, 2*spread); !closes.IsZero() {
		within = min(within, closes.Sub(opens)/2)
	}
	return Hold{opens, opens.Add(time.Duration(float64(within) * random))}
}

// Holds reports whether something is held back.
func (h Hold) Holds() bool { return !h.Resume.IsZero() }

// Wait returns the time until Resume, which is not 0.
func (h Hold) Wait(now time.Time) time.Duration { return max(h.Resume.Sub(now), time.Millisecond) }

// Time returns the time of the opening for a status; nil if it is not known.
func (h Hold) Time() *metav1.Time {
	if h.Opens.IsZero() {
		return nil
	}
	return &metav1.Time{Time: h.Opens}
}

// Record returns for a status the time of the opening, and that of the next read, which was planned for next. A read that waits for an
// opening that is not known has no time.
func (h Hold) Record(next *metav1.Time) (opens, refresh *metav1.Time) {
	if h.Holds() && next != nil {
		next = h.Time()
	}
	return h.Time(), next
}
