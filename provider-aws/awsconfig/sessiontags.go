package awsconfig

import (
	"cmp"
	"reflect"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// reserved is the prefix of the keys that only the operator sets.
const reserved = provider.Reserved + "/"

// These are the keys of the session tags that the operator adds. They have the operator's own prefix, because EKS Pod
// Identity adds kubernetes-namespace and others as transitive tags, and STS refuses to set a transitive tag again:
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
const (
	namespaceTag      = reserved + "namespace"
	storeKindTag      = reserved + "store-kind"
	storeNameTag      = reserved + "store-name"
	serviceAccountTag = reserved + "service-account"
)

// These are limits of STS: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
const (
	maxSessionTags = 50
	maxTagValue    = 256
)

// sessionTags returns the session tags that are passed when spec.role is assumed.
func sessionTags(o Object, creds provider.Credentials) ([]types.Tag, error) {
	var tags []types.Tag
	add := func(key, value string) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	for i, t := range o.AWS().SessionTags {
		// A tenant can write a store. Policies must be able to rely on the operator's keys, which STS compares without case.
		if strings.ContainsFunc(t.Key, func(r rune) bool { return r > unicode.MaxASCII }) { // AWS could take such a letter for one of a reserved key.
			return nil, provider.NewError(provider.Invalid, "spec.sessionTags[%d].key: has a character that is not ASCII; use letters, digits and punctuation of ASCII", i)
		}
		if strings.HasPrefix(strings.ToLower(t.Key), reserved) {
			return nil, provider.NewError(provider.Invalid, "spec.sessionTags[%d].key: keys that begin with %s are reserved for the operator; remove the tag, and set spec.sessionTagsPolicy", i, reserved)
		}
		add(t.Key, t.Value)
	}
	if o.AWS().SessionTagsPolicy != v1alpha1.SessionTagsSimple {
		return tags, nil
	}
	namespace := cmp.Or(o.GetNamespace(), provider.NamespaceOf(creds))
	if namespace == "" {
		return nil, provider.NewError(provider.Invalid, "spec.sessionTagsPolicy: the session of this store is shared by several namespaces; set spec.authenticationScope to ManifestNamespace, so that each namespace has its own session")
	}
	add(namespaceTag, namespace)
	add(storeKindTag, reflect.TypeOf(o).Elem().Name())
	add(storeNameTag, o.GetName())
	if auth := o.AWS().Auth; auth != nil && auth.ServiceAccountRef != nil {
		account := namespace + "/" + auth.ServiceAccountRef.Name
		if len(account) > maxTagValue {
			return nil, provider.NewError(provider.Invalid, "spec.auth.serviceAccountRef.name: too long for the session tag %s, which holds %d characters with the namespace; use a ServiceAccount with a shorter name, or remove spec.sessionTagsPolicy", serviceAccountTag, maxTagValue)
		}
		add(serviceAccountTag, account)
	}
	if len(tags) > maxSessionTags {
		return nil, provider.NewError(provider.Invalid, "spec.sessionTags: with those of sessionTagsPolicy a session would have %d tags, and AWS allows %d; remove some", len(tags), maxSessionTags)
	}
	return tags, nil
}
