//go:build !long

package fanout

import "github.com/direct-secrets/direct-secrets/common/internal/simulation"

var bounds = simulation.Bounds{Deviations: 1}
