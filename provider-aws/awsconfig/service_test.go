package awsconfig

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

var registryService = Service{ID: "ECR", Host: "api.ecr", DualStackHost: "ecr"}

// TestServiceURL compares addresses with those of the SDK's own client, in a region of each partition.
func TestServiceURL(t *testing.T) {
	for _, region := range []string{
		"eu-central-1", "us-east-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1", "xx-new-9",
	} {
		for _, fips := range []bool{false, true} {
			for _, dual := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%t/%t", region, fips, dual), func(t *testing.T) {
					t.Setenv("AWS_USE_FIPS_ENDPOINT", fmt.Sprint(fips))
					t.Setenv("AWS_USE_DUALSTACK_ENDPOINT", fmt.Sprint(dual))
					c, err := load(t, v1alpha1.AWSSpec{Region: region, Auth: byKey()}, good())
					if err != nil {
						t.Fatal(err)
					}
					want, err := ecr.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), ecr.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
					if err != nil {
						t.Fatal(err)
					}
					got, err := c.URL(t.Context(), registryService, region)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want.URI.String(), got.String()); diff != "" {
						t.Errorf("URL(...): -want, +got:\n%s", diff)
					}
				})
			}
		}
	}
}

func TestServiceURLElsewhere(t *testing.T) {
	const own, env = "https://own.example", "https://env.example/path"
	invalid := store.NewError(store.Invalid, "the operator's AWS_ENDPOINT_URL_ECR is not a URL; correct it")
	cases := map[string]struct {
		reason   string
		endpoint string
		env      map[string]string
		want     string
		err      error
	}{
		"Spec":    {reason: "The spec goes first.", endpoint: own, env: map[string]string{"AWS_ENDPOINT_URL_ECR": env}, want: own},
		"Env":     {reason: "The operator's environment moves a service.", env: map[string]string{"AWS_ENDPOINT_URL_ECR": env}, want: env},
		"Other":   {reason: "Other services stay.", env: map[string]string{"AWS_ENDPOINT_URL_ECR_PUBLIC": env}, want: "https://api.ecr.eu-central-1.amazonaws.com"},
		"Ignored": {reason: "Unless it is to be ignored.", env: map[string]string{"AWS_ENDPOINT_URL_ECR": env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, want: "https://api.ecr.eu-central-1.amazonaws.com"},
		"Bad":     {reason: "What is no address is the operator's mistake.", env: map[string]string{"AWS_ENDPOINT_URL_ECR": "https://\x7f" + canary}, err: invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			c, err := load(t, v1alpha1.AWSSpec{Region: "eu-central-1", Endpoint: tc.endpoint, Auth: byKey()}, good())
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.URL(t.Context(), registryService, "eu-central-1")
			if diff := cmp.Diff(tc.err, err); diff != "" {
				t.Fatalf("%s\nURL(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if got != nil && got.String() != tc.want {
				t.Errorf("%s\nURL(...): -want, +got:\n%s", tc.reason, cmp.Diff(tc.want, got.String()))
			}
		})
	}
}
