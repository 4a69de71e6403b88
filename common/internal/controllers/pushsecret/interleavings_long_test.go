//go:build long

package pushsecret

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
)

// The simulations, two at a time, take 20 minutes.
var bounds = simulation.Bounds{Deviations: 10, Time: 2 * time.Minute}
