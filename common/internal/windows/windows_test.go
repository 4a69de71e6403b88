package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const (
	allow = v1alpha1.SyncAllow
	deny  = v1alpha1.SyncDeny
)

// spec returns windows of one kind, each as "schedule | duration | time zone | kind".
func spec(kind v1alpha1.SyncWindowKind, windows ...string) *v1alpha1.SyncWindows {
	s := &v1alpha1.SyncWindows{Kind: kind}
	for _, text := range windows {
		part := strings.Split(text+"|||", "|")
		for i := range part {
			part[i] = strings.TrimSpace(part[i])
		}
		s.Windows = append(s.Windows, v1alpha1.SyncWindow{
			Schedule: part[0], Duration: v1alpha1.Duration(part[1]), TimeZone: part[2], Kind: v1alpha1.SyncWindowKind(part[3]),
		})
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAt(t *testing.T) {
	type want struct {
		Open bool
		// Changes is in UTC; empty for never.
		Changes string
	}
	night := []string{"0 2 * * * | 4h"}
	berlin := []string{"0 2 * * * | 4h | Europe/Berlin"}
	york := []string{"30 1 * * * | 2h | America/New_York"}
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.SyncWindows
		now    string
		want   want
	}{
		"None":       {"Without windows, it is always open.", nil, "2026-11-26T12:00:00Z", want{true, ""}},
		"Before":     {"An allowed window is closed before its start.", spec(allow, night...), "2026-11-26T01:59:59Z", want{false, "2026-11-26T02:00:00Z"}},
		"Start":      {"It is open from its start.", spec(allow, night...), "2026-11-26T02:00:00Z", want{true, "2026-11-26T06:00:00Z"}},
		"Inside":     {"It stays open for its duration.", spec(allow, night...), "2026-11-26T05:59:59Z", want{true, "2026-11-26T06:00:00Z"}},
		"Fraction":   {"Times have fractions of a second.", spec(allow, night...), "2026-11-26T05:59:59.9Z", want{true, "2026-11-26T06:00:00Z"}},
		"End":        {"It is closed from its end.", spec(allow, night...), "2026-11-26T06:00:00Z", want{false, "2026-11-27T02:00:00Z"}},
		"DenyBefore": {"All other times of denied windows are allowed.", spec(deny, night...), "2026-11-26T01:00:00Z", want{true, "2026-11-26T02:00:00Z"}},
		"DenyInside": {"A denied window is closed.", spec(deny, night...), "2026-11-26T03:00:00Z", want{false, "2026-11-26T06:00:00Z"}},
		"Word":       {"A word stands for a schedule.", spec(allow, "@daily | 1h"), "2026-11-26T12:00:00Z", want{false, "2026-11-27T00:00:00Z"}},
		"Weekend":    {"A window can start on a day of the week.", spec(deny, "0 0 * * SAT | 48h"), "2026-11-29T12:00:00Z", want{false, "2026-11-30T00:00:00Z"}},
		"Sunday":     {"Day 7 is Sunday, as in cron.", spec(deny, "0 0 * * 7 | 24h"), "2026-11-28T12:00:00Z", want{true, "2026-11-29T00:00:00Z"}},
		"SundayEnd":  {"A range can end on Sunday.", spec(deny, "0 0 * * 6-7 | 24h"), "2026-11-28T12:00:00Z", want{false, "2026-11-30T00:00:00Z"}},
		"SundayName": {"Its start can be a name.", spec(deny, "0 0 * * sat-7 | 24h"), "2026-11-28T12:00:00Z", want{false, "2026-11-30T00:00:00Z"}},
		"SundayStep": {"It can have a step.", spec(deny, "0 0 * * 1-7/3 | 24h"), "2026-11-28T12:00:00Z", want{true, "2026-11-29T00:00:00Z"}},
		"SundayList": {"It can be one of a list.", spec(allow, "0 0 * * 3,7 | 24h"), "2026-11-28T12:00:00Z", want{false, "2026-11-29T00:00:00Z"}},
		"SundayOnly": {"A step from Sunday has no further day.", spec(allow, "0 0 * * 7/2 | 24h"), "2026-11-29T12:00:00Z", want{true, "2026-11-30T00:00:00Z"}},
		"AllDays":    {"A range from 0 to 7 is each day.", spec(allow, "0 2 * * 0-7 | 4h"), "2026-11-28T12:00:00Z", want{false, "2026-11-29T02:00:00Z"}},

		"AcrossMidnight": {"A window can end on the next day.", spec(allow, "0 22 * * * | 8h"), "2026-11-27T03:00:00Z", want{true, "2026-11-27T06:00:00Z"}},
		"Overlapping":    {"Windows that overlap are one.", spec(allow, "0 2 * * * | 4h", "0 5 * * * | 4h"), "2026-11-26T03:00:00Z", want{true, "2026-11-26T09:00:00Z"}},
		"Adjacent":       {"So are windows that touch.", spec(allow, "0 2 * * * | 4h", "0 6 * * * | 4h"), "2026-11-26T03:00:00Z", want{true, "2026-11-26T10:00:00Z"}},
		"DenyWins":       {"While both are open, deny takes precedence.", spec(allow, "0 2 * * * | 4h", "0 3 * * * | 1h||deny"), "2026-11-26T03:30:00Z", want{false, "2026-11-26T04:00:00Z"}},
		"DenyLater":      {"An allowed window closes when a denied one opens.", spec(allow, "0 2 * * * | 4h", "0 3 * * * | 1h||deny"), "2026-11-26T02:30:00Z", want{true, "2026-11-26T03:00:00Z"}},
		"DenyToEnd":      {"A denied window that covers the rest leaves the next day.", spec(allow, "0 2 * * * | 4h", "0 3 27 * * | 9h||deny"), "2026-11-27T05:00:00Z", want{false, "2026-11-28T02:00:00Z"}},
		"OnlyAllowed":    {"With one allowed window, other times are closed, whatever is denied.", spec(deny, "0 2 * * * | 1h", "0 8 * * * | 1h||allow"), "2026-11-26T12:00:00Z", want{false, "2026-11-27T08:00:00Z"}},

		"LongerThanPeriod":  {"A window that is longer than its period never closes.", spec(allow, "0 * * * * | 2h"), "2026-11-26T12:30:00Z", want{true, ""}},
		"EachMinute":        {"So does one that opens each minute for a day.", spec(deny, "* * * * * | 24h"), "2026-11-26T12:30:00Z", want{false, ""}},
		"AsLongAsPeriod":    {"In UTC, a day is as long as its period.", spec(deny, "0 0 * * * | 24h"), "2026-11-26T12:30:00Z", want{false, ""}},
		"LongOnWeekdays":    {"A long window closes after its last start.", spec(allow, "0 */2 * * MON-FRI | 5h"), "2026-11-26T12:30:00Z", want{true, "2026-11-28T03:00:00Z"}},
		"EachMinuteOfHours": {"Many starts are one window.", spec(allow, "* 2-4 * * * | 30m"), "2026-11-26T02:10:00Z", want{true, "2026-11-26T05:29:00Z"}},
		"Rare":              {"A window beyond a year counts as never.", spec(allow, "0 0 29 2 * | 24h"), "2026-11-26T12:00:00Z", want{false, ""}},
		"RareAmongMany":     {"Denied windows outside of allowed ones are not looked at.", spec(allow, "0 0 1 7 * | 1h", "*/2 * * * * | 1m||deny"), "2026-11-26T12:00:00Z", want{false, "2027-07-01T00:01:00Z"}},

		"Zone":              {"A window is in its time zone.", spec(allow, berlin...), "2026-11-26T00:30:00Z", want{false, "2026-11-26T01:00:00Z"}},
		"ZoneSummer":        {"In summer, it is an hour earlier in UTC.", spec(allow, berlin...), "2026-07-26T00:00:00Z", want{true, "2026-07-26T04:00:00Z"}},
		"SpringBefore":      {"A start that the change to summer time skips does not take place.", spec(allow, berlin...), "2026-03-28T12:00:00Z", want{false, "2026-03-30T00:00:00Z"}},
		"SpringAcross":      {"A window that is open during the change keeps its duration.", spec(allow, "0 1 * * * | 4h | Europe/Berlin"), "2026-03-29T00:30:00Z", want{true, "2026-03-29T04:00:00Z"}},
		"AutumnAcross":      {"So does one at the end of summer time.", spec(allow, "0 1 * * * | 4h | Europe/Berlin"), "2026-10-25T00:30:00Z", want{true, "2026-10-25T03:00:00Z"}},
		"AutumnTwice":       {"A start in the hour that is repeated takes place twice, so the window is longer.", spec(allow, berlin...), "2026-10-25T00:30:00Z", want{true, "2026-10-25T05:00:00Z"}},
		"AutumnDay":         {"A day of 25 hours leaves an hour after a window of 24.", spec(deny, "0 0 * * * | 24h | Europe/Berlin"), "2026-10-20T12:00:00Z", want{false, "2026-10-25T22:00:00Z"}},
		"YorkSpring":        {"New York skips the hour after 02:00; this window starts before.", spec(allow, york...), "2026-03-08T06:45:00Z", want{true, "2026-03-08T08:30:00Z"}},
		"YorkSpringSkipped": {"A start at 02:30 is skipped.", spec(allow, "30 2 * * * | 2h | America/New_York"), "2026-03-08T05:00:00Z", want{false, "2026-03-09T06:30:00Z"}},
		"YorkAutumn":        {"01:30 takes place twice, an hour apart.", spec(allow, "30 1 * * * | 15m | America/New_York"), "2026-11-01T05:50:00Z", want{false, "2026-11-01T06:30:00Z"}},
		"YorkAutumnOnce":    {"Two starts are one window, if it is longer than an hour.", spec(allow, york...), "2026-11-01T05:45:00Z", want{true, "2026-11-01T08:30:00Z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws, err := Parse(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			open, changes := ws.At(at(t, tc.now))
			got := want{Open: open}
			if !changes.IsZero() {
				got.Changes = changes.UTC().Format(time.RFC3339)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nAt(%s): -want, +got:\n%s", tc.reason, tc.now, diff)
			}
		})
	}
}

// TestAtAgainstOpen compares At with Open, minute by minute. It leaves out Australia/Lord_Howe: it changes the clock by half an hour,
// and on these days the library finds other times from further away.
func TestAtAgainstOpen(t *testing.T) {
	cases := map[string]*v1alpha1.SyncWindows{
		"Mixed":     spec(allow, "0 1 * * * | 5h | Europe/Berlin", "*/7 3 * * * | 3m | America/New_York|deny", "30 22 * * * | 90m"),
		"Deny":      spec(deny, "15 1,2,3 * * * | 50m | America/New_York", "0 */5 * * * | 2h | Asia/Kathmandu"),
		"Half hour": spec(allow, "*/30 * * * * | 20m | Asia/Kathmandu"),
	}
	for name, s := range cases {
		for _, day := range []string{"2026-03-07T12:00:00Z", "2026-03-28T12:00:00Z", "2026-04-04T12:00:00Z", "2026-10-03T12:00:00Z", "2026-10-24T12:00:00Z", "2026-10-31T12:00:00Z"} {
			ws, err := Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, day)
			is, next := ws.At(now)
			for end := now.Add(30 * time.Hour); now.Before(end); now = now.Add(time.Minute) {
				if now.Equal(next) {
					is, next = ws.At(now)
				}
				if open := ws.Open(now); open != is {
					t.Fatalf("%s: Open(%s): %t, but At has named no change since the last", name, now, open)
				}
			}
		}
	}
}

// TestAllZones looks at the days of all changes of the clock. The library must find a next time in each.
func TestAllZones(t *testing.T) {
	for _, zone := range []string{"America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "America/Havana", "Pacific/Apia", "Asia/Kathmandu", "Atlantic/Azores"} {
		ws, err := Parse(spec(allow, "0 0 * * * | 1h | "+zone))
		if err != nil {
			t.Fatal(err)
		}
		for now := at(t, "2010-01-01T12:00:00Z"); now.Year() < 2012; now = now.AddDate(0, 0, 1) {
			if open, changes := ws.At(now); changes.IsZero() || changes.Sub(now) > 49*time.Hour {
				t.Errorf("%s: At(%s): %t, %s; want a change within two days", zone, now, open, changes)
			}
		}
	}
}

func TestHold(t *testing.T) {
	now := at(t, "2026-11-26T12:00:00Z")
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.SyncWindows
		random float64
		want   Hold
	}{
		"Open":   {"Nothing waits while the windows are open.", spec(deny, "0 2 * * * | 4h"), 0.5, Hold{}},
		"First":  {"The first object is refreshed at the opening.", spec(allow, "0 2 * * * | 4h"), 0, Hold{at(t, "2026-11-27T02:00:00Z"), at(t, "2026-11-27T02:00:00Z")}},
		"Spread": {"Others follow within a minute.", spec(allow, "0 2 * * * | 4h"), 0.5, Hold{at(t, "2026-11-27T02:00:00Z"), at(t, "2026-11-27T02:00:30Z")}},
		"Short":  {"All follow before a short window closes.", spec(allow, "0 2 * * * | 1m"), 0.5, Hold{at(t, "2026-11-27T02:00:00Z"), at(t, "2026-11-27T02:00:15Z")}},
		"Never":  {"If the windows never open, this is checked again.", spec(deny, "* * * * * | 1h"), 0.5, Hold{time.Time{}, now.Add(again)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws, err := Parse(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, ws.Hold(now, tc.random)); diff != "" {
				t.Errorf("\n%s\nHold(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLimit looks for changes that take too many steps, with as many windows as the API server accepts.
func TestLimit(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   v1alpha1.SyncWindowKind
		window func(i int) string
	}{
		"Minutes":   {"Each minute, another window goes on.", deny, func(i int) string { return fmt.Sprintf("%d-59/20 * * * * | 1m", i) }},
		"Allowed":   {"So it does in windows that allow.", allow, func(i int) string { return fmt.Sprintf("%d-59/20 * * * * | 1m", i) }},
		"Denied":    {"Denied windows cover all openings.", deny, func(i int) string { return []string{"*/2 * * * * | 1m||allow", "* * * * * | 1m"}[i%2] }},
		"Same":      {"All windows are the same one.", deny, func(int) string { return "* * * * * | 1m | Europe/Berlin" }},
		"Hours":     {"The next minute is the last one of an hour.", deny, func(int) string { return "59 * * * * | 1h | Europe/Berlin" }},
		"Long":      {"Each window has opened many times since its first opening.", deny, func(i int) string { return fmt.Sprintf("* * %d * * | %dh", i+1, 24*(i+1)) }},
		"Years":     {"The next opening is years away.", deny, func(i int) string { return fmt.Sprintf("59 23 29 2 * | %dh | Europe/Berlin", 36000+i) }},
		"Decreases": {"Each window ends in a dense row of openings.", deny, func(i int) string { return fmt.Sprintf("* 0-%d * * * | 24h", i) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []string
			for i := range 20 {
				all = append(all, tc.window(i))
			}
			ws, err := Parse(spec(tc.kind, all...))
			if err != nil {
				t.Fatal(err)
			}
			s := ws.search()
			s.changes(at(t, "2026-11-26T12:00:00Z"), horizon)
			if used := maxSteps - s.steps; used > maxSteps+500 {
				t.Errorf("%s The search took %d steps, want at most %d and those of one check of all windows.", tc.reason, used, maxSteps)
			}
		})
	}
}

// TestNotFound finds changes of windows that open often, and holds back until a day later what cannot be found.
func TestNotFound(t *testing.T) {
	now := at(t, "2026-11-26T12:00:00Z")
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.SyncWindows
		want   time.Time
	}{
		"Week":  {"3,600 openings until the weekend are not too many.", spec(deny, "*/2 * * * MON-FRI | 2m"), at(t, "2026-11-28T00:00:00Z")},
		"Tail":  {"A long window after many openings closes after the last one.", spec(deny, "*/5 0-5 1 11 * | 800h"), at(t, "2026-12-04T13:55:00Z")},
		"Never": {"Windows that take turns each minute have no opening.", spec(deny, "*/2 * * * * | 1m", "1-59/2 * * * * | 1m"), time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws, err := Parse(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if open, changes := ws.At(now); open || !changes.Equal(tc.want) {
				t.Errorf("%s At(): %t, %s; want closed until %s", tc.reason, open, changes, tc.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.SyncWindows
		want   []string
	}{
		"Empty":       {"An object without windows is a mistake.", spec(allow), []string{"windows is empty", "remove syncWindows"}},
		"Kind":        {"The kind must be known.", spec("Allow", "@daily | 1h"), []string{"windows[0]: kind", `"Allow"`, "set allow or deny"}},
		"OwnKind":     {"So must that of a window.", spec(allow, "@daily | 1h", "@daily | 1h||no"), []string{"windows[1]: kind", `"no"`}},
		"NoDuration":  {"The duration is required.", spec(allow, "@daily"), []string{"windows[0]: duration", "at least 1m"}},
		"Short":       {"A schedule has minutes.", spec(allow, "@daily | 59s"), []string{"windows[0]: duration", `"59s"`, "at least 1m"}},
		"Duration":    {"A duration has a unit.", spec(allow, "@daily | 5"), []string{"windows[0]: duration", `"5"`, "write it as"}},
		"Schedule":    {"A schedule is a cron expression.", spec(allow, "at night | 1h"), []string{"windows[0]: schedule", `"at night"`, "five fields"}},
		"Seconds":     {"It has no seconds.", spec(allow, "0 0 2 * * * | 1h"), []string{"windows[0]: schedule", "five fields"}},
		"Minute":      {"An error names the field.", spec(allow, "60 2 * * * | 1h"), []string{"windows[0]: schedule", `the minute "60"`, "0 to 59"}},
		"Hour":        {"The hours of a day end with 23.", spec(allow, "0 24 * * * | 1h"), []string{`the hour "24"`, "0 to 23"}},
		"Night":       {"A range does not wrap.", spec(allow, "0 22-6 * * * | 1h"), []string{`the hour "22-6"`, "the lower value first"}},
		"DayOfMonth":  {"The days of a month start with 1.", spec(allow, "0 2 0 * * | 1h"), []string{`the day of the month "0"`, "1 to 31"}},
		"Month":       {"A month has a short name.", spec(allow, "0 2 * JUNE * | 1h"), []string{`the month "JUNE"`, "JAN to DEC"}},
		"Day":         {"Sunday is 0 or 7.", spec(allow, "0 2 * * 8 | 1h"), []string{`the day of the week "8"`, "0 to 7"}},
		"DayRange":    {"The text is that of the user.", spec(allow, "0 2 * * 7,FRI-SUN | 1h"), []string{`the day of the week "7,FRI-SUN"`, "the lower value first"}},
		"DayStep":     {"A step must be positive.", spec(allow, "0 2 * * 1-7/0 | 1h"), []string{`the day of the week "1-7/0"`}},
		"Every":       {"An interval has no fixed times.", spec(allow, "@every 6h | 1h"), []string{"windows[0]: schedule", "no fixed times"}},
		"ZoneInside":  {"The time zone has a field of its own.", spec(allow, "CRON_TZ=Europe/Berlin 0 2 * * * | 1h"), []string{"windows[0]: schedule", "set timeZone"}},
		"ZoneOnly":    {"The library panics at this one.", spec(allow, "TZ=0 | 1h"), []string{"windows[0]: schedule", "set timeZone"}},
		"NoSuchDay":   {"A day that never comes is a mistake.", spec(allow, "0 0 30 2 * | 1h"), []string{"windows[0]: schedule", "does not exist"}},
		"Zone":        {"The time zone must exist.", spec(allow, "@daily | 1h | Europe/Bonn"), []string{"windows[0]: timeZone", `"Europe/Bonn"`, "Europe/Berlin"}},
		"Local":       {"The time zone of the operator has no meaning.", spec(allow, "@daily | 1h | Local"), []string{"windows[0]: timeZone", `"Local"`}},
		"Slashes":     {"A time zone has one name.", spec(allow, "@daily | 1h | Europe//Berlin"), []string{"windows[0]: timeZone", `"Europe//Berlin"`}},
		"Dots":        {"A time zone has no other name by a folder.", spec(allow, "@daily | 1h | Europe/./Berlin"), []string{"windows[0]: timeZone", `"Europe/./Berlin"`}},
		"OutsideZone": {"A time zone is not a file.", spec(allow, "@daily | 1h | ../Berlin"), []string{"windows[0]: timeZone"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.spec)
			if err == nil {
				t.Fatalf("\n%s\nParse(): no error", tc.reason)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("\n%s\nParse(): %q does not contain %q", tc.reason, err, w)
				}
			}
		})
	}
}

func BenchmarkAtDense(b *testing.B) {
	ws, err := Parse(spec(deny, "* * * * * | 1m | Europe/Berlin"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ws.At(time.Unix(1795000000, 0))
	}
}

// TestHoldRecord records until when the sync windows hold back a read.
func TestHoldRecord(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	held := Hold{Opens: now.Add(time.Hour), Resume: now.Add(time.Hour + time.Second)}
	type times struct{ Next, Window *metav1.Time }
	cases := map[string]struct {
		reason string
		next   *metav1.Time
		hold   Hold
		want   times
	}{
		"Overdue":     {"The read that was due is made when the window opens.", at(-time.Minute), held, times{at(time.Hour), at(time.Hour)}},
		"Event":       {"So is one that an event has caused before the next periodic one.", at(2 * time.Hour), held, times{at(time.Hour), at(time.Hour)}},
		"Open":        {"Nothing is held back.", at(time.Minute), Hold{}, times{at(time.Minute), nil}},
		"NotPeriodic": {"An object that is not read again gets no time.", nil, held, times{nil, at(time.Hour)}},
		"NoOpening":   {"It is not known when the window opens.", at(-time.Minute), Hold{Resume: now.Add(time.Hour)}, times{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got times
			if got.Window, got.Next = tc.hold.Record(tc.next); !cmp.Equal(tc.want, got) {
				t.Errorf("\n%s\nRecord(): -want, +got:\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
		})
	}
}
