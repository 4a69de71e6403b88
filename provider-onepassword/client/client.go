package client

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// parallel is the maximum number of concurrent requests of one batch or search.
	parallel = 8
	// few is the number of items up to which a batch looks up each title, instead of listing the vaults.
	few = 4
	// batchSize is the maximum number of items in one batch.
	batchSize = 100
)

// A Client reads and writes the items of some vaults.
type Client struct {
	api       api
	transport *http.Transport
	names     []string // of spec.vaults
	place     string
	// plain is true if the traffic is not encrypted.
	plain bool

	mu     sync.Mutex
	vaults []vault // in order of search; nil before they are known
	places places

	// unanswered has the items whose creation was not answered, and until when each may still appear. Writes use it, which are Serial.
	// Bound: one per creation within unansweredWait, and one creation is made at a time.
	unanswered map[string]time.Time
}

var (
	_ provider.Batcher    = &Client{}
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Close closes idle connections.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// Identity returns the address of the server and the vaults.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.place}, nil
}

// Check lists the vaults. It warns if the traffic is not encrypted.
func (c *Client) Check(ctx context.Context) error {
	c.forgetVaults()
	if _, err := c.searched(ctx); err != nil {
		return err
	}
	if c.plain {
		return provider.Warnings{"spec.allowPlainHTTP: the token and all values are sent without TLS; only the network protects them"}
	}
	return nil
}

// Get reads an item by its title or ID. The value is a JSON object with its fields and the text files.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	i, err := c.item(ctx, ref.Key)
	if err != nil {
		return provider.Value{}, err
	}
	return c.value(ctx, ref, i)
}

func (c *Client) value(ctx context.Context, ref provider.Ref, i *item) (provider.Value, error) {
	contents, err := c.contents(ctx, i)
	if err != nil {
		return provider.Value{}, err
	}
	v := valueOf(ref.Key, i, contents)
	if ref.Version != "" && ref.Version != v.Version {
		return provider.Value{}, provider.NewError(provider.Invalid, "item %s: has no version %.64q, because Connect returns only the current one; remove version", provider.Quoted(ref.Key), ref.Version)
	}
	if ref.Metadata {
		v.Metadata = metadataOf(i.Tags)
	}
	return v, nil
}

// contents returns the contents of the files of an item that are not too large, by ID.
func (c *Client) contents(ctx context.Context, i *item) (map[string][]byte, error) {
	contents := map[string][]byte{}
	for _, f := range i.Files {
		if tooLarge(i, f) != "" {
			continue
		}
		b, err := c.api.getFile(ctx, i, f)
		if provider.IsNotFound(err) { // The item is another one now.
			err = changed(i)
		}
		if err != nil {
			return nil, err
		}
		contents[f.ID] = b
	}
	return contents, nil
}

func changed(i *item) error {
	return provider.NewError(provider.Unavailable, "item %s: has changed while it was read; retrying", provider.Quoted(i.Title))
}

// BatchSize implements provider.Batcher.
func (c *Client) BatchSize() int { return batchSize }

// GetBatch finds the items with one list of each vault, and then reads several at a time.
func (c *Client) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	c.locateAll(ctx, refs)
	return provider.ReadEach(refs, parallel, func(ref provider.Ref) (provider.Value, error) { return c.Get(ctx, ref) })
}
