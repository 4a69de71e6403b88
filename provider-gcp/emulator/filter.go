package emulator

import (
	"regexp"
	"strings"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
)

var term = regexp.MustCompile(`^(name|labels\.[^\s:=]+)([:=])([^\s"]+)$`)

// parseFilter supports a subset of https://cloud.google.com/secret-manager/docs/filtering: the terms name:part,
// labels.key=value, labels.key:part and labels.key:*, joined by AND. It rejects anything else, so that a filter
// is never silently ignored.
func parseFilter(filter string) (func(*pb.Secret) bool, error) {
	var terms []func(*pb.Secret) bool
	if filter != "" {
		for t := range strings.SplitSeq(filter, " AND ") {
			m := term.FindStringSubmatch(t)
			if m == nil {
				return nil, invalid("Invalid filter [%s]", filter)
			}
			terms = append(terms, matcher(m[1], m[2], m[3]))
		}
	}
	return func(s *pb.Secret) bool {
		for _, t := range terms {
			if !t(s) {
				return false
			}
		}
		return true
	}, nil
}

func matcher(field, operator, want string) func(*pb.Secret) bool {
	key, isLabel := strings.CutPrefix(field, "labels.")
	return func(s *pb.Secret) bool {
		got, ok := s.GetName(), true
		if isLabel {
			got, ok = s.GetLabels()[key]
		}
		switch {
		case !ok:
			return false
		case operator == "=":
			return got == want
		case want == "*":
			return true
		}
		return strings.Contains(strings.ToLower(got), strings.ToLower(want))
	}
}
