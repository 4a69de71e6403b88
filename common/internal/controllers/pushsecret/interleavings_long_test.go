//go:build long

package pushsecret

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
)

// Four simulations, two at a time, take ten minutes.
var bounds = simulation.Bounds{Deviations: 10, Time: 5 * time.Minute}
