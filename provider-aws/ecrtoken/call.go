package ecrtoken

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// The two clients of the SDK would add 0.8 MB to the binary for one call each, which says nothing but its
// name. So it is put together here of the parts that those clients have in common: the SDK's middleware,
// with its retries, its signer and its transport. A test compares what is sent with what they send.

const operation = "GetAuthorizationToken"

// noParameters is the body of every request.
const noParameters = "{}"

type (
	request struct{}
	options struct{}
)

// answer is that of both services: private registries send a list, public ones one object.
type answer struct {
	AuthorizationData json.RawMessage `json:"authorizationData"`
}

type authorization struct {
	AuthorizationToken string  `json:"authorizationToken"`
	ExpiresAt          float64 `json:"expiresAt"`
	ProxyEndpoint      string  `json:"proxyEndpoint"`
}

// login returns the only login of an answer. One without proves nothing.
func (a *answer) login() (*authorization, error) {
	lacks := store.NewError(store.Unavailable, "the answer of AWS lacks the login; check spec.endpoint")
	one := new(authorization)
	if strings.HasPrefix(string(a.AuthorizationData), "[") {
		var all []*authorization
		if json.Unmarshal(a.AuthorizationData, &all) != nil || len(all) == 0 || all[0] == nil {
			return nil, lacks
		}
		one = all[0]
	} else if json.Unmarshal(a.AuthorizationData, one) != nil {
		return nil, lacks
	}
	if one.AuthorizationToken == "" || one.ExpiresAt <= 0 {
		return nil, lacks
	}
	return one, nil
}

// expires is when the login ceases to work.
func (d *authorization) expires() time.Time {
	return time.UnixMilli(int64(math.Round(d.ExpiresAt * 1000))).UTC()
}

// caller returns the call of a service at an address.
func caller(cfg aws.Config, r registry, at *url.URL) func(context.Context, *request, ...func(*options)) (*answer, error) {
	signer := v4.NewSigner()
	return func(ctx context.Context, _ *request, _ ...func(*options)) (*answer, error) {
		stack := middleware.NewStack(operation, smithyhttp.NewStackRequest)
		built := errors.Join(
			stack.Serialize.Add(middleware.SerializeMiddlewareFunc("OperationSerializer", r.serialize(at)), middleware.After),
			awsmiddleware.AddClientRequestIDMiddleware(stack),
			awsmiddleware.AddSDKAgentKey(awsmiddleware.APIMetadata, strings.ReplaceAll(r.name, "-", ""))(stack),
			awsmiddleware.AddSDKAgentKey(awsmiddleware.ApplicationIdentifier, cfg.AppID)(stack),
			stack.Finalize.Add(retry.NewAttemptMiddleware(cfg.Retryer(), smithyhttp.RequestCloner), middleware.After),
			stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("Signing", r.sign(cfg.Credentials, signer)), middleware.After),
			stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("OperationDeserializer", deserialize), middleware.After),
		)
		if built != nil {
			return nil, built
		}
		out, _, err := middleware.DecorateHandler(smithyhttp.NewClientHandlerWithOptions(cfg.HTTPClient), stack).Handle(ctx, nil)
		if err != nil {
			return nil, err
		}
		return out.(*answer), nil
	}
}

type (
	serializing = func(context.Context, middleware.SerializeInput, middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error)
	finalizing  = func(context.Context, middleware.FinalizeInput, middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error)
)

// serialize makes the request of the protocol AWS JSON 1.1.
func (r registry) serialize(at *url.URL) serializing {
	return func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (out middleware.SerializeOutput, m middleware.Metadata, err error) {
		req, err := in.Request.(*smithyhttp.Request).SetStream(strings.NewReader(noParameters))
		if err != nil {
			return out, m, err
		}
		to := *at
		if to.Path == "" {
			to.Path = "/"
		}
		req.Method, req.URL = http.MethodPost, &to
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
		req.Header.Set("X-Amz-Target", r.target+"."+operation)
		in.Request = req
		return next.HandleSerialize(ctx, in)
	}
}

// sign signs each attempt anew.
func (r registry) sign(p aws.CredentialsProvider, signer *v4.Signer) finalizing {
	hash := sha256.Sum256([]byte(noParameters))
	return func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
		creds, err := p.Retrieve(ctx)
		if err != nil {
			return out, m, err
		}
		req := in.Request.(*smithyhttp.Request)
		if err := signer.SignHTTP(ctx, creds, req.Request, hex.EncodeToString(hash[:]), r.name, r.region, time.Now()); err != nil {
			return out, m, err
		}
		return next.HandleFinalize(ctx, in)
	}
}

// deserialize reads an answer, or the error that takes its place.
func deserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, m, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, m, err
	}
	resp := out.RawResponse.(*smithyhttp.Response)
	defer func() { _ = resp.Body.Close() }() // It has been read.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, m, &smithy.DeserializationError{Err: err}
	}
	if resp.StatusCode != http.StatusOK {
		return out, m, &smithyhttp.ResponseError{Response: resp, Err: apiError(resp.Header.Get("X-Amzn-ErrorType"), body)}
	}
	a := new(answer)
	if err := json.Unmarshal(body, a); err != nil {
		return out, m, &smithy.DeserializationError{Err: err}
	}
	out.Result = a
	return out, m, nil
}

// apiError is the error that AWS sends. Its code may stand between a namespace and a URL; see
// https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html#operation-error-serialization.
func apiError(header string, body []byte) error {
	var e struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"` // or Message: case does not matter here
	}
	_ = json.Unmarshal(body, &e) // What is no JSON has no code, and its status tells.
	for _, code := range []string{header, e.Type, e.Code} {
		code, _, _ = strings.Cut(code, ":")
		code = code[strings.LastIndex(code, "#")+1:]
		if code != "" {
			return &smithy.GenericAPIError{Code: code, Message: e.Message}
		}
	}
	return errors.New("no error code")
}
