//go:build !long

package pushsecret

import "github.com/direct-secrets/direct-secrets/common/internal/simulation"

var bounds = simulation.Bounds{Deviations: 1}
