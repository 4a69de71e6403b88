package emulator

import (
	"context"
	"maps"
	"regexp"
	"slices"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// These are the limits of https://cloud.google.com/secret-manager/quotas, and those in the descriptions of
// Google's protos.
const (
	maxLabels      = 64
	maxTopics      = 10
	maxAnnotations = 16 << 10 // bytes of all keys and values; the total must be less
)

var (
	secretID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	labelKey   = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
	topicName  = regexp.MustCompile(`^projects/[^/]+/topics/[^/]+$`)
	annotation = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
)

// CreateSecret creates a secret without a version.
func (e *Emulator) CreateSecret(_ context.Context, in *pb.CreateSecretRequest) (*pb.Secret, error) {
	n, err := e.parseParent(in.GetParent())
	if err != nil {
		return nil, err
	}
	n.id = in.GetSecretId()
	switch {
	case !secretID.MatchString(n.id):
		return nil, invalid("The provided Secret ID [%s] does not match the expected format [[a-zA-Z_0-9]+]", n.id)
	case (n.location == "") != (in.GetSecret().GetReplication().GetReplication() != nil):
		return nil, invalid("Secret.replication is required, but not for a regional secret")
	}
	var made secret
	for _, path := range []string{"labels", "annotations", "topics"} {
		if err := made.update(path, in.GetSecret()); err != nil {
			return nil, err
		}
	}
	if err := checkReplication(in.GetSecret().GetReplication()); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, exists := e.secrets[n]; exists {
		return nil, status.Errorf(codes.AlreadyExists, "Secret [%s] already exists.", e.secretName(n))
	}
	s := e.insertLocked(n)
	s.labels, s.annotations, s.topics = made.labels, made.annotations, made.topics
	if r := in.GetSecret().GetReplication(); r != nil {
		s.replication = proto.CloneOf(r)
	}
	e.notify("SECRET_CREATE", s, nil)
	return e.secretProto(s), nil
}

// checkReplication checks the locations of a secret's values.
func checkReplication(r *pb.Replication) error {
	if r.GetUserManaged() == nil {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, replica := range r.GetUserManaged().GetReplicas() {
		if seen[replica.GetLocation()] {
			return invalid("The replica [%s] is not valid", replica.GetLocation())
		}
		seen[replica.GetLocation()] = true
	}
	return nil
}

func checkAnnotations(annotations map[string]string) error {
	size := 0
	for k, v := range annotations {
		if !annotation.MatchString(k) {
			return invalid("The annotation key [%s] is not valid", k)
		}
		size += len(k) + len(v)
	}
	if size >= maxAnnotations {
		return invalid("The annotations must have less than %d bytes", maxAnnotations)
	}
	return nil
}

func checkTopics(topics []string) error {
	if len(topics) > maxTopics || slices.ContainsFunc(topics, func(t string) bool { return !topicName.MatchString(t) }) {
		return invalid("The topics %q are not valid", topics)
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	for k, v := range labels {
		if len(labels) > maxLabels || !labelKey.MatchString(k) || !labelValue.MatchString(v) {
			return invalid("The label [%s] is not valid", k)
		}
	}
	return nil
}

// AddSecretVersion adds a version.
func (e *Emulator) AddSecretVersion(_ context.Context, in *pb.AddSecretVersionRequest) (*pb.SecretVersion, error) {
	n, err := e.parseSecret(in.GetParent())
	if err != nil {
		return nil, err
	}
	p := in.GetPayload()
	switch {
	case len(p.GetData()) == 0:
		return nil, invalid("Field [payload] is required.")
	case len(p.GetData()) > MaxPayload:
		return nil, invalid("Secret payload size exceeds %d bytes", MaxPayload)
	case p.DataCrc32C != nil && p.GetDataCrc32C() != checksum(p.GetData()):
		return nil, invalid("The checksum in the request does not match the payload")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.secretLocked(n)
	if err != nil {
		return nil, err
	}
	v := s.add(p.GetData(), e.now())
	v.checked = p.DataCrc32C != nil
	e.notify("SECRET_VERSION_ADD", s, v)
	return e.versionProto(s, v), nil
}

// UpdateSecret changes the labels, annotations and topics that its mask names.
func (e *Emulator) UpdateSecret(_ context.Context, in *pb.UpdateSecretRequest) (*pb.Secret, error) {
	n, err := e.parseSecret(in.GetSecret().GetName())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.secretLocked(n)
	if err != nil {
		return nil, err
	}
	if etag := in.GetSecret().GetEtag(); etag != "" && etag != e.secretProto(s).GetEtag() {
		return nil, precondition("The etag does not match")
	}
	changed := *s
	if len(in.GetUpdateMask().GetPaths()) == 0 {
		return nil, invalid("The update mask is required")
	}
	for _, p := range in.GetUpdateMask().GetPaths() {
		if err := changed.update(p, in.GetSecret()); err != nil {
			return nil, err
		}
	}
	changed.etag++
	*s = changed
	e.notify("SECRET_UPDATE", s, nil)
	return e.secretProto(s), nil
}

func (s *secret) update(path string, to *pb.Secret) error {
	switch path {
	case "labels":
		s.labels = maps.Clone(to.GetLabels())
		return checkLabels(s.labels)
	case "annotations":
		s.annotations = maps.Clone(to.GetAnnotations())
		return checkAnnotations(s.annotations)
	case "topics":
		s.topics = nil
		for _, t := range to.GetTopics() {
			s.topics = append(s.topics, t.GetName())
		}
		return checkTopics(s.topics)
	}
	return invalid("The emulator cannot update [%s]", path)
}

// DeleteSecret deletes a secret with all versions.
func (e *Emulator) DeleteSecret(_ context.Context, in *pb.DeleteSecretRequest) (*emptypb.Empty, error) {
	n, err := e.parseSecret(in.GetName())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.secretLocked(n)
	if err != nil {
		return nil, err
	}
	if in.GetEtag() != "" && in.GetEtag() != e.secretProto(s).GetEtag() {
		return nil, precondition("The etag does not match")
	}
	e.removeLocked(n)
	return &emptypb.Empty{}, nil
}
