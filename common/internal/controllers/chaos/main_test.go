// Package chaos_test does at random what persons, tools and providers do to ExternalSecrets and PushSecrets, while operators over the
// whole cluster are killed, held up and doubled. It holds what comes of it to what must always be so (nothing is lost, nothing
// goes back in time) and, once all is calm, to what the specs ask for.
package chaos_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
