package conformance_test

import (
	"flag"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestModel runs many more sequences than the test of a provider, because the fake is fast.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set(f.Name, "3000"); err != nil {
			t.Fatal(err)
		}
	}
	for name, opts := range map[string][]fake.Option{"Guarded": nil, "Late": {fake.Late()}, "Weak": {fake.Weak()}} {
		t.Run(name, func(t *testing.T) { conformance.PushModel(t, conformance.Fake(fake.New(opts...))) })
	}
}

func TestProperties(t *testing.T) {
	for name, opts := range map[string][]fake.Option{"Guarded": nil, "Late": {fake.Late()}} {
		t.Run(name, func(t *testing.T) {
			b := fake.New(opts...)
			conformance.PushProperties(t, conformance.Fake(b), func(key string) int { return len(b.Versions(key)) })
		})
	}
}
