package parameterstore

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

var _ provider.Writer = &Client{}

// Features returns all features: a name can be created only once, and Update returns a value that it has
// overwritten.
func (c *Client) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true}
}

// do makes one call of a Writer.
func do[In, Out any](ctx context.Context, c *Client, f awsconfig.Operation[In, Out, ssm.Options], in *In, action, key string) (*Out, error) {
	out, err := awsconfig.Call(ctx, c.config, f, in)
	if err != nil {
		return nil, c.failed(err, action, key)
	}
	return out, nil
}

// failed explains the error of a Writer's call.
func (c *Client) failed(err error, action, key string) error {
	what := c.about(provider.Ref{Key: key})
	if awsconfig.CodeOf(err) == invalidResource { // The tag calls use this code for a parameter that does not exist.
		return c.config.ExplainCode(parameterNotFound, "", what, codes)
	}
	return awsconfig.ToAllow(c.explain(err, what), "ssm:"+action)
}

// newName matches the names that AWS accepts for a new parameter, without ARN and version.
var newName = regexp.MustCompile(`^[\w.\-/]+$`)

// target checks the target of a write, and returns its name.
func (c *Client) target(t provider.Target) (string, metadata, error) {
	if err := c.config.CheckKey(t.Key); err != nil {
		return "", metadata{}, err
	}
	name := c.config.ID(t.Key)
	if !newName.MatchString(name) {
		return "", metadata{}, provider.NewError(provider.Invalid, "parameter %q: cannot be written; use a name with letters, digits and . _ - / only, without ARN and version", t.Key)
	}
	m, err := settings(t)
	return name, m, err
}

// read returns a version of a parameter. id is its name, with or without a version number.
func (c *Client) read(ctx context.Context, key, id string) (*types.Parameter, error) {
	out, err := do(ctx, c, c.api.GetParameter, &ssm.GetParameterInput{Name: aws.String(id), WithDecryption: aws.Bool(true)}, "GetParameter", key)
	if err != nil {
		return nil, err
	}
	_, err = value(provider.Ref{Key: key}, out.Parameter)
	return out.Parameter, err
}

func versionOf(p *types.Parameter) string { return strconv.FormatInt(p.Version, 10) }

// describe returns the settings that GetParameter does not return.
func (c *Client) describe(ctx context.Context, key, name string) (types.ParameterMetadata, error) {
	in := &ssm.DescribeParametersInput{ParameterFilters: []types.ParameterStringFilter{
		{Key: aws.String("Name"), Option: aws.String("Equals"), Values: []string{name}},
	}}
	out, err := do(ctx, c, c.api.DescribeParameters, in, "DescribeParameters", key)
	if err != nil {
		return types.ParameterMetadata{}, err
	}
	for _, p := range out.Parameters {
		if aws.ToString(p.Name) == name {
			return p, nil
		}
	}
	return types.ParameterMetadata{}, provider.NewError(provider.Unavailable, "%s: AWS does not list the new version yet; retrying", c.about(provider.Ref{Key: key}))
}

// tagsOf returns the tags of a parameter.
func (c *Client) tagsOf(ctx context.Context, key, name string) (map[string]string, error) {
	tags, err := c.tags(ctx, name)
	if err != nil {
		return nil, c.failed(err, "ListTagsForResource", key)
	}
	return tags, nil
}

// Observe reads a parameter, its mark, and the settings that the target sets.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	name, m, err := c.target(t)
	if err != nil {
		return provider.Observed{}, err
	}
	p, err := c.read(ctx, t.Key, name)
	if err != nil {
		return provider.Observed{}, err
	}
	tags, err := c.tagsOf(ctx, t.Key, name)
	if err != nil {
		return provider.Observed{}, err
	}
	var d types.ParameterMetadata
	if m.described() {
		if d, err = c.describe(ctx, t.Key, name); err != nil {
			return provider.Observed{}, err
		}
	}
	return provider.Observed{
		Data: []byte(*p.Value), Version: versionOf(p), ID: idOf(p, tags), Mark: tags[awsconfig.MarkKey], Drift: m.drift(p, d, tags),
		Token: aws.ToString(p.ARN),
	}, nil
}

// checkValue rejects values that AWS would reject in a tier.
func checkValue(key string, data []byte, tier types.ParameterTier) error {
	limit := maxAdvanced
	if cmp.Or(tier, types.ParameterTierStandard) == types.ParameterTierStandard {
		limit = maxStandard
	}
	what := about(provider.Ref{Key: key})
	switch {
	case len(data) == 0:
		return provider.NewError(provider.Invalid, "%s: the value is empty, which AWS does not allow", what)
	case !utf8.Valid(data):
		return provider.NewError(provider.Invalid, "%s: the value is not UTF-8 text, as parameters require; encode it with a template", what)
	case len(data) > maxAdvanced:
		return provider.NewError(provider.Invalid, "%s: the value has %d bytes, and AWS allows at most %d; push it to Secrets Manager", what, len(data), maxAdvanced)
	case len(data) > limit:
		return provider.NewError(provider.Invalid, "%s: the value has %d bytes, and AWS allows at most %d in the standard tier; set metadata.tier: Advanced", what, len(data), limit)
	}
	return nil
}

// Create creates a parameter and its mark with one call.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	name, m, err := c.target(t)
	if err == nil {
		err = checkValue(t.Key, data, m.Tier)
	}
	if err != nil {
		return provider.Written{}, err
	}
	in := m.put(name, data)
	in.Type = cmp.Or(in.Type, types.ParameterTypeSecureString)
	tags := m.Marked(mark)
	tags[awsconfig.IDKey] = string(uuid.NewUUID())
	in.Overwrite, in.Tags = aws.Bool(false), tagList(tags)
	out, err := do(ctx, c, c.api.PutParameter, in, "PutParameter", t.Key)
	if err != nil {
		return provider.Written{}, err
	}
	return written(t.Key, out, tags[awsconfig.IDKey])
}

// written returns the version that a call has created.
func written(key string, out *ssm.PutParameterOutput, id string) (provider.Written, error) {
	if out.Version < 1 {
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: the response of AWS has no version", about(provider.Ref{Key: key}))
	}
	return provider.Written{Version: strconv.FormatInt(out.Version, 10), ID: id}, nil
}

// timed is the prefix of an ID that is derived from the modification time.
const timed = "at "

// idOf returns the ID of a parameter. AWS has no IDs, and restarts the version numbers after a deletion. The
// operator therefore stores an ID as a tag of the parameters that it creates. For other parameters the
// modification time is the ID.
func idOf(p *types.Parameter, tags map[string]string) string {
	return cmp.Or(tags[awsconfig.IDKey], timed+aws.ToTime(p.LastModifiedDate).UTC().Format(time.RFC3339Nano))
}

// Update writes the value together with the settings that need a new version, and then the tags.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	name, m, err := c.target(t)
	if err != nil {
		return provider.Written{}, err
	}
	if data == nil {
		data = seen.Data
	}
	w := provider.Written{Version: seen.Version, ID: seen.ID}
	if !bytes.Equal(data, seen.Data) || newVersion(seen.Drift) {
		if w, err = c.overwrite(ctx, t.Key, name, m, seen, data); err != nil {
			return provider.Written{}, err
		}
	}
	tags := m.Drifted(seen.Drift).Tags
	if len(tags) == 0 {
		return w, nil
	}
	in := &ssm.AddTagsToResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name), Tags: tagList(tags)}
	// A value that was overwritten must be returned to the caller. The next Observe finds missing tags again.
	if _, err := do(ctx, c, c.api.AddTagsToResource, in, "AddTagsToResource", t.Key); err != nil && w.Lost == nil {
		return provider.Written{}, err
	}
	return w, nil
}

// overwrite writes a new version of a parameter if it is unchanged since seen. AWS has no conditional write.
// overwrite therefore reads the parameter right before, and detects by the number of the new version whether it
// has still overwritten another value.
func (c *Client) overwrite(ctx context.Context, key, name string, m metadata, seen provider.Observed, data []byte) (provider.Written, error) {
	unlock, err := c.config.LockSecret(ctx, cmp.Or(seen.Token, name))
	if err != nil {
		return provider.Written{}, err
	}
	defer unlock()
	p, err := c.readUnchanged(ctx, key, name, seen)
	if err != nil {
		return provider.Written{}, err
	}
	d, err := c.describe(ctx, key, name)
	if err != nil {
		return provider.Written{}, err
	}
	if err := m.possible(key, p, d); err != nil {
		return provider.Written{}, err
	}
	if err := checkValue(key, data, cmp.Or(m.Tier, d.Tier)); err != nil {
		return provider.Written{}, err
	}
	in := m.put(name, data)
	in.Overwrite = aws.Bool(true)
	keep(in, p, d)
	out, err := do(ctx, c, c.api.PutParameter, in, "PutParameter", key)
	if err != nil {
		return provider.Written{}, err
	}
	w, err := written(key, out, seen.ID)
	switch {
	case err != nil:
		return provider.Written{}, err
	case out.Version == 1:
		return provider.Written{}, c.undo(ctx, key, name, data)
	case strings.HasPrefix(seen.ID, timed):
		now, err := c.read(ctx, key, name+":"+w.Version)
		if err != nil {
			return provider.Written{}, err
		}
		w.ID = idOf(now, nil)
	}
	w.Lost, err = c.covered(ctx, key, name, out.Version, seen, data)
	return w, err
}

// readUnchanged reads a parameter, and returns a Conflict if it has changed since seen.
func (c *Client) readUnchanged(ctx context.Context, key, name string, seen provider.Observed) (*types.Parameter, error) {
	p, err := c.read(ctx, key, name)
	if err == nil && versionOf(p) != seen.Version {
		err = provider.ErrChanged
	}
	return p, err
}

// undo deletes a parameter that had been deleted and that overwrite has created again, unless another writer
// has changed it since.
func (c *Client) undo(ctx context.Context, key, name string, data []byte) error {
	p, err := c.read(ctx, key, name)
	if err == nil && p.Version == 1 && *p.Value == string(data) {
		_, err = do(ctx, c, c.api.DeleteParameter, &ssm.DeleteParameterInput{Name: aws.String(name)}, "DeleteParameter", key)
	}
	if err != nil && !provider.IsNotFound(err) {
		return provider.NewError(provider.ClassOf(err), "it was deleted meanwhile and created again without the tag that records its owner, and removing it failed; delete it: %s", err)
	}
	return provider.ErrChanged
}

// covered returns the value that version n has replaced, if it is not the one in seen. Versions with the same
// value as n are skipped: they come from the same write, which was sent twice.
func (c *Client) covered(ctx context.Context, key, name string, n int64, seen provider.Observed, data []byte) ([]byte, error) {
	for v := n - 1; v > 0; v-- {
		p, err := c.read(ctx, key, name+":"+strconv.FormatInt(v, 10))
		if err != nil {
			return nil, err
		}
		was := []byte(*p.Value)
		switch {
		// A parameter that was deleted and created again can have the same version number.
		case versionOf(p) == seen.Version && (seen.Data == nil || bytes.Equal(was, seen.Data)):
			return nil, nil
		case !bytes.Equal(was, data):
			return was, nil
		}
	}
	return nil, nil
}

// Mark replaces the mark of a parameter.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	return c.ifSeen(ctx, t, seen, func(name string) error {
		tags := tagList(map[string]string{awsconfig.MarkKey: mark})
		in := &ssm.AddTagsToResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name), Tags: tags}
		_, err := do(ctx, c, c.api.AddTagsToResource, in, "AddTagsToResource", t.Key)
		return err
	})
}

// Delete deletes a parameter.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	return c.ifSeen(ctx, t, seen, func(name string) error {
		_, err := do(ctx, c, c.api.DeleteParameter, &ssm.DeleteParameterInput{Name: aws.String(name)}, "DeleteParameter", t.Key)
		return err
	})
}

// ifSeen calls do if the parameter is unchanged since seen. AWS has no conditional calls, so the parameter is
// read right before.
func (c *Client) ifSeen(ctx context.Context, t provider.Target, seen provider.Observed, do func(name string) error) error {
	name, _, err := c.target(provider.Target{Key: t.Key})
	if err != nil {
		return err
	}
	unlock, err := c.config.LockSecret(ctx, cmp.Or(seen.Token, name))
	if err != nil {
		return err
	}
	defer unlock()
	p, err := c.read(ctx, t.Key, name)
	if err != nil {
		return err
	}
	tags, err := c.tagsOf(ctx, t.Key, name)
	if err == nil {
		err = provider.Observed{Version: versionOf(p), ID: idOf(p, tags), Mark: tags[awsconfig.MarkKey]}.Unchanged(seen)
	}
	if err != nil {
		return err
	}
	return do(name)
}
