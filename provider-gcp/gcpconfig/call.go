package gcpconfig

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Call makes one call of the API, with as many retries as the store allows. A token that Google does
// not take any more is replaced once. params say which resource the request is about, as Google's
// own clients do in a header, by which requests find their way.
func Call[In, Out any](ctx context.Context, c *Config, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (Out, error) {
	return call(ctx, c, worthRetrying, f, in, params)
}

// CallOnce is Call for what must not be done twice. It is tried again only where Google has refused it;
// after any other error it may have been done.
func CallOnce[In, Out any](ctx context.Context, c *Config, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (Out, error) {
	return call(ctx, c, wasRefused, f, in, params)
}

func call[In, Out any](ctx context.Context, c *Config, worth func(error) bool, f func(context.Context, In, ...grpc.CallOption) (Out, error), in In, params string) (out Out, err error) {
	renewed := false
	err = c.retries.doWhile(ctx, worth, func(ctx context.Context) error {
		for {
			token, err := c.tokens.get(ctx)
			if err != nil {
				return err
			}
			with := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token, "x-goog-request-params", params)
			out, err = f(with, in)
			if codeOf(err) != codes.Unauthenticated || renewed {
				return err
			}
			renewed = true
			c.tokens.forget(token)
		}
	})
	return out, err
}
