package keyvault

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

func TestPushModel(t *testing.T) { conformance.PushModel(t, harness(start(t), start(t))) }

func TestRoundTrip(t *testing.T) { conformance.RoundTrip(t, harness(start(t), start(t)), 300) }

func TestPushProperties(t *testing.T) {
	srv := start(t)
	conformance.PushProperties(t, harness(srv, start(t)), func(string) int { return srv.Count(emulator.CallSet) })
}
