//go:build !long

package externalsecret

import "github.com/direct-secrets/direct-secrets/common/internal/simulation"

var bounds = simulation.Bounds{Deviations: 1}
