package emulator_test

import (
	"fmt"
	"testing"

	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

func BenchmarkBatchGetSecretValue(b *testing.B) {
	srv := start(b)
	for i := range 1000 {
		srv.Put(fmt.Sprintf("s%02d", i), []byte(`{"password":"x"}`))
	}
	c := secretsClient(b, srv)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			out, err := c.BatchGetSecretValue(b.Context(), &sm.BatchGetSecretValueInput{SecretIdList: numbered(20)})
			if err != nil || len(out.SecretValues) != 20 {
				b.Fatalf("want 20 values, got %v, %v", out, err)
			}
		}
	})
}

func BenchmarkGetSecretValue(b *testing.B) {
	srv := start(b)
	srv.Put("db", []byte(`{"password":"x"}`))
	c := secretsClient(b, srv)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := current(b.Context(), c, "db"); got != `{"password":"x"}` {
				b.Fatal(got)
			}
		}
	})
}
