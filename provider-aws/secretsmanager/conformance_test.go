package secretsmanager

import (
	"context"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/push/pushtest"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestConformance(t *testing.T) { storetest.Run(t, harness(t, awstest.Start(t))) }

func TestPushModel(t *testing.T) { pushtest.Model(t, harness(t, awstest.Start(t))) }

func TestPushProperties(t *testing.T) {
	aws := awstest.Start(t)
	pushtest.Properties(t, harness(t, aws), func(string) int { return aws.Calls("PutSecretValue") })
}

func harness(t *testing.T, aws *emulator.Server) storetest.Harness {
	return storetest.Harness{
		Connect: func(context.Context) (store.Client, error) { return connectTo(t, aws.URL()) },
		ConnectDenied: func(context.Context) (store.Client, error) {
			return connectTo(t, aws.URL(), awstest.WithKey("wrong", "wrong"))
		},
		ConnectTo: func(_ context.Context, url string) (store.Client, error) { return connectTo(t, url) },
		Server:    aws.URL(),
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			aws.Put(key, data, emulator.Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			aws.Delete(key)
			return nil
		},
		Inject: func(f storetest.Fault) (func(), error) {
			return awstest.Inject(aws.Emulator, "GetSecretValue", f), nil
		},
		MaxWrite: maxValue,
		Metadata: []string{
			`{"description":"one","kmsKeyID":"alias/one","tags":{"team":"one"}}`,
			`{"description":"two","kmsKeyID":"alias/two","tags":{"team":"two"}}`,
		},
	}
}
