package emulator

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/protobuf/proto"
)

// AccessSecretVersion returns the value of a version that is enabled.
func (e *Emulator) AccessSecretVersion(_ context.Context, in *pb.AccessSecretVersionRequest) (*pb.AccessSecretVersionResponse, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, v, err := e.versionLocked(in.GetName())
	if err != nil {
		return nil, err
	}
	if v.state != pb.SecretVersion_ENABLED {
		return nil, precondition("Secret Version [%s] is in %s state.", e.versionName(s.name, v.number), v.state)
	}
	return &pb.AccessSecretVersionResponse{
		Name:    e.versionName(s.name, v.number),
		Payload: &pb.SecretPayload{Data: slices.Clone(v.data), DataCrc32C: proto.Int64(checksum(v.data))},
	}, nil
}

// GetSecret returns a secret without its value.
func (e *Emulator) GetSecret(_ context.Context, in *pb.GetSecretRequest) (*pb.Secret, error) {
	n, err := e.parseSecret(in.GetName())
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.secretLocked(n)
	if err != nil {
		return nil, err
	}
	return e.secretProto(s), nil
}

// GetSecretVersion returns a version without its value.
func (e *Emulator) GetSecretVersion(_ context.Context, in *pb.GetSecretVersionRequest) (*pb.SecretVersion, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, v, err := e.versionLocked(in.GetName())
	if err != nil {
		return nil, err
	}
	return e.versionProto(s, v), nil
}

// ListSecrets returns a page of the matching secrets, the newest first.
func (e *Emulator) ListSecrets(_ context.Context, in *pb.ListSecretsRequest) (*pb.ListSecretsResponse, error) {
	parent, err := e.parseParent(in.GetParent())
	if err != nil {
		return nil, err
	}
	match, err := parseFilter(in.GetFilter())
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	var all []*pb.Secret
	for _, s := range slices.Backward(e.order) {
		p := e.secretProto(s)
		if s.name.project == parent.project && s.name.location == parent.location && match(p) {
			all = append(all, p)
		}
	}
	page, next, err := paged(e.pageSize, all, in.GetPageSize(), in.GetPageToken())
	return &pb.ListSecretsResponse{Secrets: page, NextPageToken: next, TotalSize: int32(len(all))}, err
}

// paged returns one page of a list. The token is the number of entries on earlier pages.
func paged[T any](limit int, all []T, asked int32, token string) (page []T, next string, err error) {
	skip := 0
	if token != "" && token != samePage {
		b, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil {
			skip, err = strconv.Atoi(string(b))
		}
		if err != nil || skip < 0 {
			return nil, "", invalid("The page token is not valid")
		}
	}
	if asked > 0 {
		limit = min(limit, int(asked))
	}
	page = all[min(skip, len(all)):min(skip+limit, len(all))]
	if skip+limit < len(all) {
		next = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(skip + limit)))
	}
	return page, next, nil
}
