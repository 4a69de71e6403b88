package client

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

func TestConformance(t *testing.T) { conformance.Run(t, harness(t)) }
