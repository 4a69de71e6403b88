package externalsecret_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
