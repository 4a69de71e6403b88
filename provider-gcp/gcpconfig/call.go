package gcpconfig

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Call makes one call of the API, with as many retries as the store allows. It replaces a token that Google no
// longer accepts, once. params names the resource of the request in a header, which Google uses for routing, as
// its own clients do.
func Call[In, Out any](ctx context.Context, c *Config, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (Out, error) {
	return call(ctx, c, worthRetrying, f, in, params)
}

// CallOnce is Call for a request that must not have its effect twice. It retries only requests that Google has
// rejected. After any other error the request may have had its effect.
func CallOnce[In, Out any](ctx context.Context, c *Config, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (Out, error) {
	return call(ctx, c, wasRefused, f, in, params)
}

func call[In, Out any](ctx context.Context, c *Config, worth func(error) bool, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (out Out, err error) {
	renewed := false
	err = c.retries.doWhile(ctx, worth, func(ctx context.Context) error {
		for {
			token, err := c.tokens.Get(ctx)
			if err != nil {
				return err
			}
			with := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token, "x-goog-request-params", params)
			out, err = f(with, in)
			if codeOf(err) != codes.Unauthenticated || renewed {
				return err
			}
			renewed = true
			c.tokens.Forget(token)
		}
	})
	return out, err
}
