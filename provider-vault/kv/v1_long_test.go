//go:build long

package kv

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

func TestPushModelV1(t *testing.T) {
	t.Parallel()
	conformance.PushModel(t, harnessV1(t))
}

func TestRoundTripV1(t *testing.T) {
	t.Parallel()
	conformance.RoundTrip(t, harnessV1(t), 1000)
}
