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

	// maxStandard and maxAdvanced are the limits of the tiers for one value, in bytes.
	maxStandard, maxAdvanced = 4096, 8192

	// imageType is a type of data that AWS checks after it has answered.
	imageType = "aws:ec2:image"
)

// metadata are the settings that a provider.Target may name. One that is empty is left alone.
type metadata struct {
	awsconfig.Metadata

	Type           types.ParameterType `json:"type"`
	Tier           types.ParameterTier `json:"tier"`
	DataType       string              `json:"dataType"`
	AllowedPattern string              `json:"allowedPattern"`
}

// settings reads the metadata of a target, and checks it.
func settings(t provider.Target) (m metadata, err error) {
	if err := awsconfig.ParseMetadata(t.Metadata, &m, takes); err != nil {
		return m, err
	}
	switch {
	case m.Type != "" && !slices.Contains(m.Type.Values(), m.Type):
		return m, provider.NewError(provider.Invalid, "metadata.type: %.64q is none; set SecureString, String or StringList", m.Type)
	case m.Tier != "" && !slices.Contains(m.Tier.Values(), m.Tier):
		return m, provider.NewError(provider.Invalid, "metadata.tier: %.64q is none; set Standard, Advanced or Intelligent-Tiering", m.Tier)
	case m.KMSKeyID != "" && cmp.Or(m.Type, types.ParameterTypeSecureString) != types.ParameterTypeSecureString:
		return m, provider.NewError(provider.Invalid, "metadata.kmsKeyID: only a SecureString is encrypted; remove it, or metadata.type")
	case m.DataType == imageType:
		return m, provider.NewError(provider.Invalid, "metadata.dataType: AWS checks an image after it has answered, so that nobody would know whether it was written; use text")
	}
	return m, m.Check()
}

// described reports whether it takes DescribeParameters to compare the settings.
func (m *metadata) described() bool {
	return m.Description != "" || m.KMSKeyID != "" || m.Tier != "" || m.AllowedPattern != ""
}

// drift names what differs from what AWS has. d is empty unless it is needed.
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

// fixedTier is the tier that a parameter shall have, if AWS does not choose it.
func (m *metadata) fixedTier() string {
	if m.Tier == types.ParameterTierIntelligentTiering {
		return ""
	}
	return string(m.Tier)
}

// newVersion reports whether what drifts takes a new version to bring in line: all but tags does.
func newVersion(drift []string) bool {
	return slices.ContainsFunc(drift, func(d string) bool { return len(d) < len("tags.") || d[:len("tags.")] != "tags." })
}

// possible finds what AWS does not change of a parameter that exists.
func (m *metadata) possible(key string, p *types.Parameter, d types.ParameterMetadata) error {
	const way = "set metadata.%s to that, delete the parameter, or push to another key"
	switch what := about(provider.Ref{Key: key}); {
	case m.Type != "" && m.Type != p.Type:
		return provider.NewError(provider.Invalid, "%s: is of type %s, and AWS does not change types; "+way, what, p.Type, "type")
	case m.Tier == types.ParameterTierStandard && d.Tier == types.ParameterTierAdvanced:
		return provider.NewError(provider.Invalid, "%s: is of the advanced tier, from which AWS does not go back; "+way, what, "tier")
	}
	return nil
}

// put is a call that writes a value with the settings.
func (m *metadata) put(name string, data []byte) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{
		Name: aws.String(name), Value: aws.String(string(data)), Type: m.Type, Tier: m.Tier,
		DataType: given(m.DataType), Description: given(m.Description), KeyId: given(m.KMSKeyID), AllowedPattern: given(m.AllowedPattern),
	}
}

// keep adds to a call what the parameter has and the metadata does not name. AWS would take the account's
// own key in the place of one that is left out.
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

// given is a setting for a call that leaves alone what is nil.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
