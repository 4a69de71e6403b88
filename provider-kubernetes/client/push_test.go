package client

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

func TestPushModel(t *testing.T) { conformance.PushModel(t, harness(t)) }
