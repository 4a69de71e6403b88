package secretmanager

import (
	"bytes"
	"context"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// maxSize is the maximum size of a value in Secret Manager, in bytes.
const maxSize = 64 << 10

var _ provider.Writer = &Client{}

// Features returns both features. A secret is created once, together with its mark. Google has no conditional
// write for versions, but their numbers show whether another writer added one in between.
func (c *Client) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true}
}

// A remote is the secret of a Target.
type remote struct {
	provider.Target
	settings

	id, name string
}

func (r remote) String() string { return about(provider.Ref{Key: r.Key}) }

func (c *Client) remoteOf(t provider.Target) (remote, error) {
	id, err := c.idOf(t.Key)
	if err != nil {
		return remote{}, err
	}
	s, err := c.settingsOf(t.Metadata)
	return remote{Target: t, settings: s, id: id, name: c.parent + secretsPart + id}, err
}

// regional reports whether the store's secrets are in a location.
func (c *Client) regional() bool { return strings.Contains(c.parent, "/locations/") }

// checkSize rejects values that Google does not store.
func checkSize(data []byte) error {
	switch {
	case len(data) == 0:
		return refused("the value is empty, which Google does not allow")
	case len(data) > maxSize:
		return refused("the value has %d bytes, at most %d are allowed", len(data), maxSize)
	}
	return nil
}

// Observe reads a secret and its latest version. A version that is disabled or destroyed counts as no value.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	r, err := c.remoteOf(t)
	if err != nil {
		return provider.Observed{}, err
	}
	s, err := c.secret(ctx, r)
	if err != nil {
		return provider.Observed{}, err
	}
	if err := r.fits(s); err != nil {
		return provider.Observed{}, err
	}
	v, err := c.enabled(ctx, r, latest)
	return provider.Observed{
		Data: v.Data, Version: v.Version, ID: idOfSecret(s), Mark: s.GetAnnotations()[createdBy], Drift: r.drift(s), Token: s.GetEtag(),
	}, err
}

// idOfSecret returns the creation time of a secret, which distinguishes it from another of the same name.
func idOfSecret(s *pb.Secret) string {
	return s.GetCreateTime().AsTime().Format(time.RFC3339Nano)
}

// secret reads a secret without its value.
func (c *Client) secret(ctx context.Context, r remote) (*pb.Secret, error) {
	s, err := gcpconfig.Call(ctx, c.config, c.api.GetSecret, &pb.GetSecretRequest{Name: r.name}, params("name", r.name))
	switch {
	case err != nil:
		return nil, gcpconfig.Explain(err, r.String())
	case !strings.HasSuffix(s.GetName(), secretsPart+r.id):
		return nil, provider.NewError(provider.Unavailable, "%s: the response of Google is about another secret", r)
	}
	return s, nil
}

// enabled reads a version. It returns the zero Value if the version is missing, disabled or destroyed.
func (c *Client) enabled(ctx context.Context, r remote, version string) (provider.Value, error) {
	name := r.name + versionsPart + version
	out, err := gcpconfig.Call(ctx, c.config, c.api.AccessSecretVersion, &pb.AccessSecretVersionRequest{Name: name}, params("name", name))
	if err == nil {
		return value(provider.Ref{Key: r.Key}, r.id, out)
	}
	e := gcpconfig.Explain(err, r.String())
	if e.Class == provider.NotFound || gcpconfig.IsDisabled(err) {
		return provider.Value{}, nil
	}
	return provider.Value{}, e
}

// Create creates a secret with the mark, and then its first version. If the second step fails, it deletes the
// secret again.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	r, err := c.remoteOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	if err := checkSize(data); err != nil {
		return provider.Written{}, err
	}
	s, err := r.secret(c.regional(), mark)
	if err != nil {
		return provider.Written{}, err
	}
	made, err := gcpconfig.Call(ctx, c.config, c.api.CreateSecret,
		&pb.CreateSecretRequest{Parent: c.parent, SecretId: r.id, Secret: s}, params("parent", c.parent))
	if err != nil {
		return provider.Written{}, gcpconfig.Explain(err, r.String())
	}
	w, err := c.add(ctx, r, provider.Observed{ID: idOfSecret(made)}, data)
	if err != nil {
		c.withdraw(ctx, r, made.GetEtag())
	}
	return w, err
}

// withdraw deletes a new secret that got no version. If it has a version after all, or that is unknown, the
// secret stays: it has the mark, and the next Update gives it a value. The version is looked up by its number,
// because the alias latest can be out of date.
func (c *Client) withdraw(ctx context.Context, r remote, etag string) {
	const first = "1"
	name := r.name + versionsPart + first
	_, err := gcpconfig.Call(ctx, c.config, c.api.GetSecretVersion, &pb.GetSecretVersionRequest{Name: name}, params("name", name))
	if err == nil || !provider.IsNotFound(gcpconfig.Explain(err, "")) {
		return
	}
	_ = c.remove(ctx, r, etag) // The caller reports the error of the write.
}

// Update updates the settings first and then adds a version, so that the result for the version is final.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	r, err := c.remoteOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	same := data == nil || seen.Version != "" && bytes.Equal(data, seen.Data)
	if !same {
		if err := checkSize(data); err != nil {
			return provider.Written{}, err
		}
	}
	if len(seen.Drift) > 0 {
		if err := c.align(ctx, r, seen); err != nil {
			return provider.Written{}, err
		}
	}
	if same {
		return provider.Written{Version: seen.Version, ID: seen.ID}, nil
	}
	return c.add(ctx, r, seen, data)
}

// align updates the settings of a secret. Google replaces a whole map, so the request repeats the entries of
// others. The etag shows whether they have changed meanwhile.
func (c *Client) align(ctx context.Context, r remote, seen provider.Observed) error {
	s, err := c.secret(ctx, r)
	if err != nil {
		return err
	}
	if seen.Token != "" && s.GetEtag() != seen.Token {
		return provider.ErrChanged
	}
	to, fields, err := r.onto(s)
	if err != nil || len(fields) == 0 {
		return err
	}
	to.Name, to.Etag = r.name, s.GetEtag()
	_, err = gcpconfig.Call(ctx, c.config, c.api.UpdateSecret,
		&pb.UpdateSecretRequest{Secret: to, UpdateMask: &fieldmaskpb.FieldMask{Paths: fields}}, params("secret.name", r.name))
	return refusal(err, r)
}

// add adds a version. Google has no conditional write, but numbers versions without gaps. If the new number
// does not directly follow the one in seen, the new version has replaced a value of another writer.
func (c *Client) add(ctx context.Context, r remote, seen provider.Observed, data []byte) (provider.Written, error) {
	out, err := gcpconfig.CallOnce(ctx, c.config, c.api.AddSecretVersion, &pb.AddSecretVersionRequest{
		Parent:  r.name,
		Payload: &pb.SecretPayload{Data: data, DataCrc32C: proto.Int64(int64(crc32.Checksum(data, castagnoli)))},
	}, params("parent", r.name))
	if err != nil {
		return provider.Written{}, gcpconfig.Explain(err, r.String())
	}
	version, ok := numberOf(out.GetName(), r.id)
	switch {
	case !ok:
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: the response of Google is about another secret", r)
	case !out.GetClientSpecifiedPayloadChecksum():
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: Google did not confirm the checksum of the stored value", r)
	}
	w := provider.Written{Version: version, ID: seen.ID}
	before, err := strconv.ParseInt(version, 10, 64)
	if before--; err != nil || before == 0 || strconv.FormatInt(before, 10) == seen.Version {
		return w, nil
	}
	covered, err := c.enabled(ctx, r, strconv.FormatInt(before, 10))
	if err != nil {
		e := gcpconfig.Explain(err, "")
		return provider.Written{}, &provider.Error{Class: e.Class, RetryAfter: e.RetryAfter, Message: "version " + version +
			" was written, and version " + strconv.FormatInt(before, 10) + ", which another client wrote at the same time, cannot be read to restore it: " + e.Message}
	}
	w.Lost = covered.Data
	return w, nil
}

// Mark replaces the mark of a secret.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	r, s, err := c.ifSeen(ctx, t.Key, seen)
	if err != nil {
		return err
	}
	to := &pb.Secret{Name: r.name, Etag: s.GetEtag(), Annotations: provider.Merged(s.GetAnnotations(), map[string]string{createdBy: mark})}
	_, err = gcpconfig.Call(ctx, c.config, c.api.UpdateSecret,
		&pb.UpdateSecretRequest{Secret: to, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"annotations"}}}, params("secret.name", r.name))
	return refusal(err, r)
}

// Delete deletes a secret with all its versions.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	r, s, err := c.ifSeen(ctx, t.Key, seen)
	if err != nil {
		return err
	}
	return c.remove(ctx, r, s.GetEtag())
}

// ifSeen returns a secret that is unchanged since seen. From then on its etag detects changes of the settings,
// but not of versions.
func (c *Client) ifSeen(ctx context.Context, key string, seen provider.Observed) (remote, *pb.Secret, error) {
	r, err := c.remoteOf(provider.Target{Key: key})
	if err != nil {
		return r, nil, err
	}
	s, err := c.secret(ctx, r)
	if err != nil {
		return r, nil, err
	}
	v, err := c.enabled(ctx, r, latest)
	if err == nil {
		err = provider.Observed{Version: v.Version, ID: idOfSecret(s), Mark: s.GetAnnotations()[createdBy]}.Unchanged(seen)
	}
	return r, s, err
}

// remove deletes a secret if its settings have not changed since the etag.
func (c *Client) remove(ctx context.Context, r remote, etag string) error {
	_, err := gcpconfig.Call(ctx, c.config, c.api.DeleteSecret, &pb.DeleteSecretRequest{Name: r.name, Etag: etag}, params("name", r.name))
	return refusal(err, r)
}

// refusal explains the error of a call with an etag.
func refusal(err error, r remote) error {
	switch {
	case err == nil:
		return nil
	case gcpconfig.IsChanged(err):
		return provider.ErrChanged
	}
	return gcpconfig.Explain(err, r.String())
}
