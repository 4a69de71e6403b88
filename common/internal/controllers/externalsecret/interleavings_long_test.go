//go:build long

package externalsecret

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
)

// Four cases, two at a time, take ten minutes.
var bounds = simulation.Bounds{Deviations: 10, Time: 5 * time.Minute}
