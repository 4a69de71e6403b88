package secretsmanager

import (
	"context"
	"errors"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestConformance(t *testing.T) { conformance.Run(t, harness(t, awstest.Start(t))) }

func TestRoundTrip(t *testing.T) { conformance.RoundTrip(t, harness(t, awstest.Start(t)), 1000) }

func TestPushModel(t *testing.T) { conformance.PushModel(t, harness(t, awstest.Start(t))) }

func TestPushProperties(t *testing.T) {
	aws := awstest.Start(t)
	conformance.PushProperties(t, harness(t, aws), func(string) int { return aws.Count("PutSecretValue") })
}

func harness(t *testing.T, aws *emulator.Server) conformance.Harness {
	t.Setenv("AWS_ENDPOINT_URL_STS", aws.URL())
	return conformance.Harness{
		Kind: "AWSSecretsManager", Service: emulator.Name,
		Connect: func(context.Context) (provider.Client, error) { return connectTo(t, aws.URL()) },
		ConnectDenied: func(context.Context) (provider.Client, error) {
			return connectTo(t, aws.URL(), awstest.WithKey("wrong", "wrong"))
		},
		Spell: func(ctx context.Context, key string) (string, error) {
			c, err := connectTo(t, aws.URL())
			if err != nil {
				return "", err
			}
			d, err := c.describe(ctx, key)
			return awssdk.ToString(d.ARN), errors.Join(err, c.Close())
		},
		ConnectElsewhere: func(context.Context) (provider.Client, error) {
			return connectTo(t, aws.URL(), awstest.WithRegion("eu-central-1"))
		},
		ConnectTo: func(_ context.Context, url string) (provider.Client, error) { return connectTo(t, url) },
		Server:    aws.URL(),
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			aws.Put(key, data, emulator.Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			aws.Delete(key)
			return nil
		},
		Inject: func(f conformance.Fault) (func(), error) {
			return awstest.Inject(aws.Emulator, "GetSecretValue", f), nil
		},
		MaxWrite: maxValue,
		Metadata: []string{
			`{"description":"one","kmsKeyID":"alias/one","tags":{"team":"one"},"replicaRegions":[{"region":"eu-west-1"}],` +
				`"resourcePolicy":{"Statement":[{"Effect":"Deny","Principal":"*","Action":"secretsmanager:DeleteSecret","Resource":"*"}]}}`,
			`{"description":"two","kmsKeyID":"alias/two","tags":{"team":"two"},"replicaRegions":[{"region":"eu-west-2","kmsKeyID":"alias/two"}],` +
				`"resourcePolicy":"{\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"444455556666\"},\"Action\":\"secretsmanager:GetSecretValue\",\"Resource\":\"*\"}]}"}`,
		},
	}
}
