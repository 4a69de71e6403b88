package client

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

func TestPushModel(t *testing.T) {
	conformance.PushModel(t, harness(start(t, emulator.WithVault("other"))))
}

func TestRoundTrip(t *testing.T) {
	conformance.RoundTrip(t, harness(start(t, emulator.WithVault("other"))), 300)
}

func TestPushProperties(t *testing.T) {
	srv := start(t, emulator.WithVault("other"))
	conformance.PushProperties(t, harness(srv), func(string) int { return srv.Count("PatchItem") })
}
