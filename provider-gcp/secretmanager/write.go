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

// maxSize is the largest value that Google stores, in bytes.
const maxSize = 64 << 10

var _ provider.Writer = &Client{}

// Features are both: a secret is created once, with its mark, and though nobody guards its versions, their
// numbers tell whether somebody wrote in between.
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

// regional reports whether the secrets are those of a location.
func (c *Client) regional() bool { return strings.Contains(c.parent, "/locations/") }

// checkSize refuses values that Google does not store.
func checkSize(data []byte) error {
	switch {
	case len(data) == 0:
		return refused("the value is empty, and Google stores no empty values")
	case len(data) > maxSize:
		return refused("the value has %d bytes, and at most %d are stored", len(data), maxSize)
	}
	return nil
}

// Observe reads a secret and its latest version. One that is disabled or destroyed is no value.
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

// idOfSecret tells a secret from another of its name: by when it was created.
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
		return nil, provider.NewError(provider.Unavailable, "%s: the answer of Google is not of this secret", r)
	}
	return s, nil
}

// enabled reads a version; the zero Value where there is none with a value that can be read.
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

// Create makes a secret that bears the mark, and then its first version. Where that fails the secret is
// removed again.
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

// withdraw removes a secret again that got no version. Where it has one after all, or that cannot be told,
// the secret stays: it bears the mark, and the next Update gives it a value. A version is looked for by its
// number, which unlike the latest is always up to date.
func (c *Client) withdraw(ctx context.Context, r remote, etag string) {
	const first = "1"
	name := r.name + versionsPart + first
	_, err := gcpconfig.Call(ctx, c.config, c.api.GetSecretVersion, &pb.GetSecretVersionRequest{Name: name}, params("name", name))
	if err == nil || !provider.IsNotFound(gcpconfig.Explain(err, "")) {
		return
	}
	_ = c.remove(ctx, r, etag) // The error that led here is the one to report.
}

// Update adds a version, and brings the settings in line first, so that what is found out about the
// version is the last word.
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

// align gives a secret its settings. Google replaces a map as a whole, so what others set is sent along,
// and the etag tells whether they have just changed it.
func (c *Client) align(ctx context.Context, r remote, seen provider.Observed) error {
	s, err := c.secret(ctx, r)
	if err != nil {
		return goneIsConflict(err, r)
	}
	if seen.Token != "" && s.GetEtag() != seen.Token {
		return changed(r)
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

// add adds a version. Google does not compare with what the caller has seen, but numbers versions without
// gaps: if the new one does not follow on the one that was seen, then it covers what somebody else wrote.
func (c *Client) add(ctx context.Context, r remote, seen provider.Observed, data []byte) (provider.Written, error) {
	out, err := gcpconfig.CallOnce(ctx, c.config, c.api.AddSecretVersion, &pb.AddSecretVersionRequest{
		Parent:  r.name,
		Payload: &pb.SecretPayload{Data: data, DataCrc32C: proto.Int64(int64(crc32.Checksum(data, castagnoli)))},
	}, params("parent", r.name))
	if err != nil {
		return provider.Written{}, goneIsConflict(gcpconfig.Explain(err, r.String()), r)
	}
	version, ok := numberOf(out.GetName(), r.id)
	switch {
	case !ok:
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: the answer of Google is not of this secret", r)
	case !out.GetClientSpecifiedPayloadChecksum():
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: Google did not check what it stored", r)
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
			" was written, and version " + strconv.FormatInt(before, 10) + ", which somebody else wrote at the same time, cannot be read to bring it back: " + e.Message}
	}
	w.Lost = covered.Data
	return w, nil
}

// Mark gives a secret another mark.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	r, s, err := c.ifSeen(ctx, t.Key, seen)
	if err != nil {
		return goneIsConflict(err, r)
	}
	to := &pb.Secret{Name: r.name, Etag: s.GetEtag(), Annotations: overlay(s.GetAnnotations(), map[string]string{createdBy: mark})}
	_, err = gcpconfig.Call(ctx, c.config, c.api.UpdateSecret,
		&pb.UpdateSecretRequest{Secret: to, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"annotations"}}}, params("secret.name", r.name))
	return refusal(err, r)
}

// Delete removes a secret with all its versions.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	r, s, err := c.ifSeen(ctx, t.Key, seen)
	switch {
	case provider.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return c.remove(ctx, r, s.GetEtag())
}

// ifSeen returns a secret that is as it was seen. From then on its etag tells of changes, but not of versions.
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
	switch {
	case err != nil:
		return r, nil, err
	case v.Version != seen.Version, idOfSecret(s) != seen.ID, s.GetAnnotations()[createdBy] != seen.Mark:
		return r, nil, changed(r)
	}
	return r, s, nil
}

// remove removes a secret whose settings did not change since it had the etag.
func (c *Client) remove(ctx context.Context, r remote, etag string) error {
	_, err := gcpconfig.Call(ctx, c.config, c.api.DeleteSecret, &pb.DeleteSecretRequest{Name: r.name, Etag: etag}, params("name", r.name))
	if err != nil && gcpconfig.Explain(err, "").Class == provider.NotFound {
		return nil
	}
	return refusal(err, r)
}

// refusal explains the error of a call that was sent an etag.
func refusal(err error, r remote) error {
	switch {
	case err == nil:
		return nil
	case gcpconfig.IsChanged(err):
		return changed(r)
	}
	return goneIsConflict(gcpconfig.Explain(err, r.String()), r)
}

func changed(r remote) error {
	return provider.NewError(provider.Conflict, "%s: somebody else has changed it meanwhile", r)
}

// goneIsConflict turns the NotFound of a secret that was there into a Conflict.
func goneIsConflict(err error, r remote) error {
	if provider.IsNotFound(err) {
		return provider.NewError(provider.Conflict, "%s: somebody else has deleted it meanwhile", r)
	}
	return err
}
