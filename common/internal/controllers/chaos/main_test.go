// Package chaos_test does random actions of users, tools and providers on ExternalSecrets and PushSecrets, while
// cluster-wide operators are killed, paused and doubled. It checks that forbidden states never occur (nothing is lost,
// no value is replaced by an older one). After all disturbances have ended, it checks that everything is as the specs
// say.
package chaos_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
