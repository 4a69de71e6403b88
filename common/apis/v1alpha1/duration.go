package v1alpha1

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Duration is a length of time as Go writes it: 30s, 15m, 1h30m. It is kept as text, so that an
// object whose duration cannot be read still can, and one bad object never blocks a watch.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$')",message="must be a duration such as 30s, 15m or 1h, not negative"
type Duration string

// MinInterval is the shortest interval: an API server refuses a shorter one, but may hold some from before it did.
const MinInterval = time.Second

// Interval returns the duration as an interval, or def if it is unset. It is 0, which has a meaning of its own, or at
// least MinInterval. The error says how to write one.
func (d Duration) Interval(def time.Duration) (time.Duration, error) {
	v, err := d.Or(def)
	if err != nil || v == 0 {
		return 0, err
	}
	return max(v, MinInterval), nil
}

// Or returns the duration, or def if it is unset. The error says how to write one.
func (d Duration) Or(def time.Duration) (time.Duration, error) {
	if d == "" {
		return def, nil
	}
	v, err := time.ParseDuration(string(d))
	if err != nil || v < 0 {
		return 0, errors.Errorf("%q is not a duration; write it as 30s, 15m or 1h", string(d))
	}
	return v, nil
}
