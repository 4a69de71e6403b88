// Package secretmanager reads and writes Google Secret Manager for the store Kinds GCPSecretManager and
// ClusterGCPSecretManager.
package secretmanager

import (
	"context"
	"crypto/x509"
	"hash/crc32"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// A Provider creates clients. Its zero value is ready for use.
type Provider struct {
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
}

// Kinds returns the store Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.KindOf(p.Connect).WithKeys(Scope, Keys),
		provider.ClusterKindOf(p.ConnectCluster).WithKeys(Scope, Keys),
	}
}

// Connect returns the client of a store. It does not call Google.
func (p Provider) Connect(ctx context.Context, s *v1alpha1.GCPSecretManager, creds provider.Credentials) (provider.Client, error) {
	return p.connect(ctx, &s.Spec.GCPSpec, creds)
}

// ConnectCluster returns the client of a cluster store. It does not call Google.
func (p Provider) ConnectCluster(ctx context.Context, s *v1alpha1.ClusterGCPSecretManager, creds provider.Credentials) (provider.Client, error) {
	return p.connect(ctx, &s.Spec.GCPSpec, creds)
}

func (p Provider) connect(ctx context.Context, spec *v1alpha1.GCPSpec, creds provider.Credentials) (provider.Client, error) {
	c, err := gcpconfig.Load(ctx, gcpconfig.SecretManager, spec, creds, p.RootCAs)
	if err != nil {
		return nil, err
	}
	return &Client{api: pb.NewSecretManagerServiceClient(c.Conn), config: c, parent: parentOf(spec)}, nil
}

// A Client reads and writes the secrets of one project, or of one location in it. It is not a provider.Batcher,
// because one call of Google's API reads one secret.
type Client struct {
	api    pb.SecretManagerServiceClient
	config *gcpconfig.Config
	parent string
}

var (
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Identity returns the project, and the location if there is one. It does not call Google: the id and the
// number of one project are two identities, which is safe.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.config.Conn.CanonicalTarget() + " " + c.parent}, nil
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Get reads one version of a secret, and its labels and annotations if metadata is requested.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	id, err := c.idOf(ref.Key)
	if err != nil {
		return provider.Value{}, err
	}
	version, err := versionOf(ref.Version)
	if err != nil {
		return provider.Value{}, err
	}
	name := c.parent + secretsPart + id
	out, err := gcpconfig.Call(ctx, c.config, c.api.AccessSecretVersion,
		&pb.AccessSecretVersionRequest{Name: name + versionsPart + version}, params("name", name+versionsPart+version))
	if err != nil {
		return provider.Value{}, gcpconfig.Explain(err, about(ref))
	}
	v, err := value(ref, id, out)
	if err != nil || !ref.Metadata {
		return v, err
	}
	s, err := gcpconfig.Call(ctx, c.config, c.api.GetSecret, &pb.GetSecretRequest{Name: name}, params("name", name))
	if err != nil {
		return provider.Value{}, gcpconfig.Explain(err, "metadata of "+about(provider.Ref{Key: ref.Key}))
	}
	v.Metadata = metadata(s)
	return v, nil
}

// metadata returns the annotations and labels of a secret. A label takes precedence over an annotation with the
// same name, because queries select by labels.
func metadata(s *pb.Secret) map[string]string {
	m := make(map[string]string, len(s.GetLabels())+len(s.GetAnnotations()))
	for _, from := range []map[string]string{s.GetAnnotations(), s.GetLabels()} {
		for k, v := range from {
			m[k] = v
		}
	}
	return m
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// value returns the Value of an answer. An answer without a value, with a wrong checksum, or of another secret
// is Unavailable.
func value(ref provider.Ref, id string, out *pb.AccessSecretVersionResponse) (provider.Value, error) {
	p := out.GetPayload()
	number, ok := numberOf(out.GetName(), id)
	switch {
	case !ok:
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: the response of Google is about another secret", about(ref))
	case p == nil:
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: the response of Google has no value", about(ref))
	case p.DataCrc32C != nil && p.GetDataCrc32C() != int64(crc32.Checksum(p.GetData(), castagnoli)):
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: the response of Google is damaged: its checksum does not match", about(ref))
	}
	v := provider.Value{Key: ref.Key, Data: p.GetData(), Version: number}
	if v.Data == nil {
		v.Data = []byte{}
	}
	return v, nil
}
