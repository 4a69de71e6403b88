package migrate

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// minInterval is the least interval between two refreshes.
const minInterval = time.Second

var errNoDuration = errors.New("no duration")

// readDuration reads a duration as Go writes it. One that is not positive is 0.
func readDuration(n *yaml.Node) (time.Duration, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return 0, errNoDuration
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		return 0, errNoDuration
	}
	return max(d, 0), nil
}

// interval moves a refresh interval. External Secrets Operator takes what Go reads, and never refreshes if it is not positive.
func interval(to string) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		d, err := readDuration(f.node)
		switch {
		case err != nil:
			f.invalid("a duration such as 1h or 30s")
		case d == 0:
			f.node = scalarNode("0s", f.node)
			f.exact(to)
		case d < minInterval:
			f.node = scalarNode(minInterval.String(), f.node)
			f.changed(to, fmt.Sprintf("%s is below the least interval of 1s", d), "check that 1s is enough")
		default:
			f.exact(to)
		}
	}
}
