package migrate

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// minWindow is the least duration of a sync window.
const minWindow = time.Minute

// syncWindows moves the windows. Both read schedules with the same library, and External Secrets Operator reads them in UTC.
func syncWindows(f *field) {
	if f.byAction("spec.syncWindows.windows") {
		return
	}
	if f.node.Kind != yaml.SequenceNode {
		f.invalid("a list")
		return
	}
	for i, w := range f.node.Content {
		schedule, duration := child(w, "schedule"), child(w, "duration")
		if schedule == nil || duration == nil {
			f.invalid("a list of windows with schedule and duration")
			return
		}
		switch d, err := readDuration(duration); {
		case err != nil:
			f.invalid("a list of windows with durations such as 1h or 30m")
			return
		case d < minWindow:
			f.unsupported(fmt.Sprintf("the duration of windows[%d] is below 1m", i), "set at least 1m")
			return
		case strings.HasPrefix(schedule.Value, "@every"):
			f.unsupported(fmt.Sprintf("the schedule of windows[%d] has no fixed times", i), "write a cron expression")
			return
		case strings.Contains(schedule.Value, "TZ="):
			f.unsupported(fmt.Sprintf("the schedule of windows[%d] has a time zone", i), "set timeZone of the window in the converted object")
			return
		}
	}
	f.exact("spec.syncWindows.windows")
}
