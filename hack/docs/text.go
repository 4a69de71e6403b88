package main

import (
	"fmt"
	"regexp"
	"strings"
)

// sentences returns the description of a schema and its constraints. Each rule is a line of its own.
func sentences(s *schema) string {
	all, rules := append([]string{prose(s.Description)}, constraints(s)...), rejections("Rule", s)
	if of, suffix := elements(s); suffix != "" {
		for i, each := range constraints(of) {
			if i == 0 {
				each = "Each: " + strings.ToLower(each[:1]) + each[1:]
			}
			all = append(all, each)
		}
		rules = append(rules, rejections("Rule for each", of)...)
	}
	return strings.TrimPrefix(strings.Join(append([]string{strings.TrimSpace(strings.Join(all, " "))}, rules...), "<br>"), "<br>")
}

// constraints returns the API server's constraints of a value, one sentence each.
func constraints(s *schema) []string {
	var out []string
	if values := enum(s); len(values) > 0 {
		out = append(out, "One of "+strings.Join(values, ", ")+".")
	}
	for _, bounds := range []struct {
		least, most *int64
		unit        string
	}{
		{s.Minimum, s.Maximum, ""},
		{s.MinLength, s.MaxLength, "character"},
		{s.MinItems, s.MaxItems, "item"},
		{s.MinProperties, s.MaxProperties, "entry"},
	} {
		out = append(out, between(bounds.least, bounds.most, bounds.unit)...)
	}
	if s.Pattern != "" {
		out = append(out, "Matches "+code(s.Pattern)+".")
	}
	if s.Default != nil && s.Type != "object" {
		out = append(out, "Default in the API: "+code(fmt.Sprint(s.Default))+".")
	}
	return out
}

// enum returns the allowed values of a field without the empty one, which means unset.
func enum(s *schema) []string {
	var out []string
	for _, value := range s.Enum {
		if value != "" {
			out = append(out, code(fmt.Sprint(value)))
		}
	}
	return out
}

func between(least, most *int64, unit string) []string {
	switch {
	case least != nil && most != nil && *least == *most:
		return []string{fmt.Sprintf("%s.", count("Exactly ", *least, unit))}
	case least != nil && most != nil:
		return []string{fmt.Sprintf("%d to %s.", *least, count("", *most, unit))}
	case most != nil:
		return []string{count("At most ", *most, unit) + "."}
	case least != nil && *least > 0:
		return []string{count("At least ", *least, unit) + "."}
	case least != nil:
		return []string{fmt.Sprintf("At least %d.", *least)}
	}
	return nil
}

func count(before string, n int64, unit string) string {
	switch {
	case unit == "":
		return fmt.Sprintf("%s%d", before, n)
	case n == 1:
		return before + "1 " + unit
	}
	return fmt.Sprintf("%s%d %s", before, n, strings.Replace(unit+"s", "ys", "ies", 1))
}

// rejections returns the API server's messages for broken rules, one sentence each. before is the start of each.
func rejections(before string, s *schema) []string {
	var out []string
	for _, r := range s.Rules {
		text := code(r.Rule)
		if r.Message != "" {
			text = prose(strings.TrimSuffix(r.Message, "."))
		}
		out = append(out, before+": "+text+".")
	}
	return out
}

var (
	space = regexp.MustCompile(`\s+`)
	marks = regexp.MustCompile("`[^`]*`|https?://[^\\s,;)]*[^\\s,;).]|[*_|<>\\[\\]]")
)

// prose returns a comment of Go as one line of Markdown. Outside of code, nothing in it is markup or a link.
func prose(text string) string {
	text = space.ReplaceAllString(strings.TrimSpace(text), " ")
	return marks.ReplaceAllStringFunc(text, func(m string) string {
		switch m {
		case "<":
			return "&lt;"
		case ">":
			return "&gt;"
		}
		switch {
		case strings.HasPrefix(m, "`"):
			return strings.ReplaceAll(m, "|", `\|`)
		case strings.HasPrefix(m, "http"):
			return code(m)
		}
		return `\` + m
	})
}
