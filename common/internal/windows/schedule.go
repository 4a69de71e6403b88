package windows

import (
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/robfig/cron/v3"
)

// parser reads five fields, or a word such as @daily.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// cronFields are the fields of a cron expression in their order, with what each allows.
var cronFields = [5]struct{ name, allowed string }{
	{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day of the month", "1 to 31"},
	{"month", "1 to 12 or JAN to DEC"}, {"day of the week", "0 to 7 or SUN to SAT"},
}

func parseSchedule(text string) (*cron.SpecSchedule, error) {
	if strings.Contains(text, "TZ=") {
		return nil, errors.Errorf("%q cannot have a time zone; set timeZone", text)
	}
	fields := strings.Fields(text)
	if len(fields) == len(cronFields) {
		fields[4] = sundays(fields[4])
	}
	s, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, scheduleError(text, fields)
	}
	spec, ok := s.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.Errorf("%q has no fixed times; write a cron expression such as '0 */6 * * *'", text)
	}
	spec.Location = time.UTC
	// The days of the calendar repeat after 28 years, but the library looks five years ahead. That is enough for 29 February, but
	// for the years about 2100.
	if spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.Errorf("%q names a day that does not exist; correct it", text)
	}
	return spec, nil
}

// scheduleError names the first field that is not valid. fields are those of the text, with Sunday as 0.
func scheduleError(text string, fields []string) error {
	for i, f := range cronFields {
		if len(fields) != len(cronFields) {
			break
		}
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return errors.Errorf("%q has the %s %q; write %s, and a range with the lower value first", text, f.name, strings.Fields(text)[i], f.allowed)
		}
	}
	return errors.Errorf("%q is not a cron expression with five fields, such as '0 2 * * *', nor a word such as @daily", text)
}

// sundays returns days of the week without 7, which is Sunday in cron. The library knows 0 only.
func sundays(days string) string {
	items := strings.Split(days, ",")
	for i, item := range items {
		span, step, stepped := strings.Cut(item, "/")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		by := 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		day := weekday(first)
		if n, err := strconv.Atoi(last); err != nil || n != 7 || day < 0 || by < 1 {
			continue
		}
		var list []string
		for ; day <= 7; day += by {
			list = append(list, strconv.Itoa(day%7))
		}
		items[i] = strings.Join(list, ",")
	}
	return strings.Join(items, ",")
}

// weekday returns the number of a day, by number or name; -1 for another text.
func weekday(text string) int {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(day.String()[:3], text) {
			return int(day)
		}
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return -1
}
