package parameterstore

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	takes = "allowedPattern, dataType, description, kmsKeyID, tags, tier and type"

	// maxStandard and maxAdvanced are the maximum sizes of a value in the two tiers, in bytes.
	maxStandard, maxAdvanced = 4096, 8192

	// imageType is a data type that AWS checks only after it has answered.
	imageType = "aws:ec2:image"
)

// metadata holds the settings that a provider.Target can have. An empty one is left unchanged in AWS.
type metadata struct {
	awsconfig.Metadata

	Type           types.ParameterType `json:"type"`
	Tier           types.ParameterTier `json:"tier"`
	DataType       string              `json:"dataType"`
	AllowedPattern string              `json:"allowedPattern"`
}

// settings decodes and checks the metadata of a target.
func settings(t provider.Target) (m metadata, err error) {
	if err := provider.DecodeMetadata(t.Metadata, &m, takes); err != nil {
		return m, err
	}
	switch {
	case m.Type != "" && !slices.Contains(m.Type.Values(), m.Type):
		return m, provider.NewError(provider.Invalid, "metadata.type: %.64q is not valid; set SecureString, String or StringList", m.Type)
	case m.Tier != "" && !slices.Contains(m.Tier.Values(), m.Tier):
		return m, provider.NewError(provider.Invalid, "metadata.tier: %.64q is not valid; set Standard, Advanced or Intelligent-Tiering", m.Tier)
	case m.KMSKeyID != "" && cmp.Or(m.Type, types.ParameterTypeSecureString) != types.ParameterTypeSecureString:
		return m, provider.NewError(provider.Invalid, "metadata.kmsKeyID: only a SecureString is encrypted; remove kmsKeyID or metadata.type")
	case m.DataType == imageType:
		return m, provider.NewError(provider.Invalid, "metadata.dataType: AWS validates an image only after its response, so the operator cannot know whether it was written; use text")
	}
	return m, m.Check()
}

// described reports whether DescribeParameters is needed to compare the settings.
func (m *metadata) described() bool {
	return m.Description != "" || m.KMSKeyID != "" || m.Tier != "" || m.AllowedPattern != ""
}

// drift returns the names of the settings that differ from those in AWS. d is empty if described returns false.
func (m *metadata) drift(p *types.Parameter, d types.ParameterMetadata, tags map[string]string) []string {
	drift := m.Drift(awsconfig.Metadata{Description: aws.ToString(d.Description), KMSKeyID: aws.ToString(d.KeyId), Tags: tags})
	for _, s := range []struct {
		name, want, has string
	}{
		{"allowedPattern", m.AllowedPattern, aws.ToString(d.AllowedPattern)},
		{"dataType", m.DataType, aws.ToString(p.DataType)},
		{"tier", m.fixedTier(), string(d.Tier)},
		{"type", string(m.Type), string(p.Type)},
	} {
		if s.want != "" && s.want != s.has {
			drift = append(drift, s.name)
		}
	}
	return drift
}

// fixedTier returns the requested tier, or "" if AWS chooses it.
func (m *metadata) fixedTier() string {
	if m.Tier == types.ParameterTierIntelligentTiering {
		return ""
	}
	return string(m.Tier)
}

// newVersion reports whether a new version is needed to correct the drift. It is for all settings but tags.
func newVersion(drift []string) bool {
	return slices.ContainsFunc(drift, func(d string) bool { return len(d) < len("tags.") || d[:len("tags.")] != "tags." })
}

// possible rejects changes that AWS does not make to an existing parameter.
func (m *metadata) possible(key string, p *types.Parameter, d types.ParameterMetadata) error {
	const way = "set metadata.%s to this value, delete the parameter, or push to another key"
	switch what := about(provider.Ref{Key: key}); {
	case m.Type != "" && m.Type != p.Type:
		return provider.NewError(provider.Invalid, "%s: is of type %s, and AWS does not change the type; "+way, what, p.Type, "type")
	case m.Tier == types.ParameterTierStandard && d.Tier == types.ParameterTierAdvanced:
		return provider.NewError(provider.Invalid, "%s: is in the advanced tier, which AWS does not change back; "+way, what, "tier")
	}
	return nil
}

// put returns the input of a call that writes a value with the settings.
func (m *metadata) put(name string, data []byte) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{
		Name: aws.String(name), Value: aws.String(string(data)), Type: m.Type, Tier: m.Tier,
		DataType: given(m.DataType), Description: given(m.Description), KeyId: given(m.KMSKeyID), AllowedPattern: given(m.AllowedPattern),
	}
}

// keep fills in the present settings that the metadata does not set. Without them AWS would, for example,
// replace the KMS key with the default key of the account.
func keep(in *ssm.PutParameterInput, p *types.Parameter, d types.ParameterMetadata) {
	in.Type = p.Type
	in.Tier = cmp.Or(in.Tier, d.Tier)
	in.Description, in.AllowedPattern = cmp.Or(in.Description, d.Description), cmp.Or(in.AllowedPattern, d.AllowedPattern)
	if p.Type == types.ParameterTypeSecureString {
		in.KeyId = cmp.Or(in.KeyId, d.KeyId)
	}
	if p.DataType != nil && *p.DataType != "text" {
		in.DataType = cmp.Or(in.DataType, p.DataType)
	}
}

func tagList(tags map[string]string) []types.Tag {
	return awsconfig.TagList(tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

// given returns nil for an empty setting, which leaves it unchanged.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
