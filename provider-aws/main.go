// Command provider-aws keeps Secrets in sync with AWS.
package main

import (
	"os"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/ecrtoken"
	"github.com/direct-secrets/direct-secrets/provider-aws/events"
	"github.com/direct-secrets/direct-secrets/provider-aws/parameterstore"
	"github.com/direct-secrets/direct-secrets/provider-aws/secretsmanager"
	"github.com/direct-secrets/direct-secrets/provider-aws/ststoken"
)

func main() { os.Exit(newOperator().Main()) }

func newOperator(opts ...operator.Option) *operator.Operator {
	return operator.New("provider-aws", v1alpha1.Group, append(opts,
		operator.WithScheme(v1alpha1.AddToScheme),
		operator.WithStore(provider.KindOf(secretsmanager.Connect[*v1alpha1.AWSSecretsManager]).WithKeys(events.Scope, events.Keys)),
		operator.WithStore(provider.ClusterKindOf(secretsmanager.Connect[*v1alpha1.ClusterAWSSecretsManager]).WithKeys(events.Scope, events.Keys)),
		operator.WithStore(provider.KindOf(parameterstore.Connect[*v1alpha1.AWSParameterStore]).WithKeys(events.Scope, events.Keys)),
		operator.WithStore(provider.ClusterKindOf(parameterstore.Connect[*v1alpha1.ClusterAWSParameterStore]).WithKeys(events.Scope, events.Keys)),
		operator.WithStore(provider.GeneratorKindOf(ecrtoken.Connect[*v1alpha1.ECRAuthorizationToken]).ReadOnly()),
		operator.WithStore(provider.ClusterGeneratorKindOf(ecrtoken.Connect[*v1alpha1.ClusterECRAuthorizationToken]).ReadOnly()),
		operator.WithStore(provider.GeneratorKindOf(ststoken.Connect[*v1alpha1.STSSessionToken]).ReadOnly()),
		operator.WithStore(provider.ClusterGeneratorKindOf(ststoken.Connect[*v1alpha1.ClusterSTSSessionToken]).ReadOnly()),
		operator.WithStore(provider.EventSourceKindOf(events.Connect[*v1alpha1.AWSEventSource])),
		operator.WithStore(provider.ClusterEventSourceKindOf(events.Connect[*v1alpha1.ClusterAWSEventSource])),
	)...)
}
