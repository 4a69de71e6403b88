package pushtest_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/push/pushtest"
	"github.com/direct-secrets/direct-secrets/common/store/fake"
)

func TestModel(t *testing.T) {
	for name, opts := range map[string][]fake.Option{"Guarded": nil, "Late": {fake.Late()}, "Weak": {fake.Weak()}} {
		t.Run(name, func(t *testing.T) { pushtest.Model(t, fake.Harness(fake.New(opts...))) })
	}
}
