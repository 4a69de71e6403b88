package emulator

import (
	"context"
	"path"
	"strings"
	"sync"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// Name is what published tables of results call this server.
const Name = "Google emulator of this project"

// An Emulator is a SecretManagerService with its login endpoints, and the subscriptions that its notifications are sent to. Start creates one.
type Emulator struct {
	pb.UnimplementedSecretManagerServiceServer

	config
	fake.CallLog[Call]
	fake.Faults[Fault]

	mu      sync.RWMutex
	secrets map[name]*secret
	order   []*secret // in order of creation

	identities    identities
	handedOut     handedOut
	subscriptions subscriptions
}

func build(c config) *Emulator { return &Emulator{config: c, secrets: map[name]*secret{}} }

var _ pb.SecretManagerServiceServer = &Emulator{}

// named are the requests that name a resource.
type named interface{ GetName() string }

// parented are the requests that name the parent of a resource.
type parented interface{ GetParent() string }

// subscribed are the requests that name a subscription.
type subscribed interface{ GetSubscription() string }

func resourceOf(req any) string {
	switch r := req.(type) {
	case subscribed:
		return r.GetSubscription()
	case *pb.CreateSecretRequest:
		return r.GetParent() + "/secrets/" + r.GetSecretId()
	case named:
		return r.GetName()
	case parented:
		return r.GetParent()
	case *pb.UpdateSecretRequest:
		return r.GetSecret().GetName()
	}
	return ""
}

// intercept counts a call, applies injected faults, authorizes the call and runs it, in that order: a call that
// fails is counted, too.
func (e *Emulator) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method, resource := path.Base(info.FullMethod), resourceOf(req)
	token := bearer(ctx)
	holder, known := e.identities.lookupToken(token, e.now())
	e.Record(Call{Time: e.now(), Method: method, Name: resource, Caller: holder.caller})
	fault, err := e.suffer(ctx, method, secretIDOf(resource))
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, status.Error(codes.Unauthenticated, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.")
	}
	if !holder.forAll() {
		insufficient := Fault{Code: codes.PermissionDenied, Message: "Request had insufficient authentication scopes.", Reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}
		return nil, insufficient.asError()
	}
	out, err := handle(ctx, req)
	if err == nil && fault.Body == BodyLost {
		return nil, status.Error(codes.Unavailable, "The connection was cut.")
	}
	if err == nil {
		damage(out, fault.Body)
	}
	return out, err
}

func bearer(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		if token, ok := strings.CutPrefix(v, "Bearer "); ok {
			return token
		}
	}
	return ""
}

// secretIDOf returns the id of the secret in a resource name, or "".
func secretIDOf(resource string) string {
	_, rest, ok := strings.Cut(resource, "/secrets/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// samePage is the token of a page that has already been sent.
const samePage = "again"

func damage(out any, f BodyFault) {
	switch out := out.(type) {
	case *pb.AccessSecretVersionResponse:
		switch f {
		case BodyNoPayload:
			out.Payload = nil
		case BodyBadChecksum:
			out.Payload.Data = append([]byte("x"), out.GetPayload().GetData()...)
		case BodyOtherName:
			out.Name = "projects/1/secrets/another/versions/1"
		}
	case *pb.SecretVersion:
		switch f {
		case BodyNoPayload:
			out.ClientSpecifiedPayloadChecksum = false
		case BodyOtherName:
			out.Name = "projects/1/secrets/another/versions/1"
		}
	case *pb.ListSecretsResponse:
		if f == BodySamePage {
			out.NextPageToken = samePage
		}
	}
}
