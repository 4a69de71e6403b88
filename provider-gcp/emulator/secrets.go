package emulator

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"time"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) int64 { return int64(crc32.Checksum(data, castagnoli)) }

type secret struct {
	name        name
	created     time.Time
	labels      map[string]string
	annotations map[string]string
	aliases     map[string]int64
	replication *pb.Replication // nil for a regional secret
	topics      []string
	versions    []*version // the first version has number 1
	etag        int
}

type version struct {
	number             int64
	created, destroyed time.Time
	state              pb.SecretVersion_State
	etag               int
	data               []byte
	checked            bool // whether the client that added it sent a checksum
}

func (e *Emulator) secretLocked(n name) (*secret, error) {
	s := e.secrets[n]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "Secret [%s] not found.", e.secretName(n))
	}
	return s, nil
}

func (e *Emulator) insertLocked(n name) *secret {
	s := &secret{name: n, created: e.now(), etag: 1}
	if n.location == "" {
		s.replication = &pb.Replication{Replication: &pb.Replication_Automatic_{Automatic: &pb.Replication_Automatic{}}}
	}
	e.secrets[n] = s
	e.order = append(e.order, s)
	return s
}

func (e *Emulator) removeLocked(n name) {
	if s := e.secrets[n]; s != nil {
		e.notify("SECRET_DELETE", s, nil)
	}
	e.order = slices.DeleteFunc(e.order, func(s *secret) bool { return s.name == n })
	delete(e.secrets, n)
}

func (s *secret) add(data []byte, at time.Time) *version {
	v := &version{number: int64(len(s.versions)) + 1, created: at, state: pb.SecretVersion_ENABLED, etag: 1, data: bytes.Clone(data)}
	s.versions = append(s.versions, v)
	return v
}

// versionLocked returns a version by its number or alias, or the latest.
func (e *Emulator) versionLocked(resource string) (*secret, *version, error) {
	n, which, err := e.parseVersion(resource)
	if err != nil {
		return nil, nil, err
	}
	s, ok := e.secrets[n]
	if !ok {
		return nil, nil, status.Errorf(codes.NotFound, "Secret [%s] not found or has no versions.", e.secretName(n))
	}
	var number int64
	switch alias, ok := s.aliases[which]; {
	case which == "latest":
		number = int64(len(s.versions))
		if number == 0 {
			return nil, nil, status.Errorf(codes.NotFound, "Secret [%s] not found or has no versions.", e.secretName(n))
		}
	case ok:
		number = alias
	default:
		if number, err = strconv.ParseInt(which, 10, 64); err != nil {
			return nil, nil, status.Errorf(codes.NotFound, "Secret Version alias [%s] not found in Secret [%s].", which, e.secretName(n))
		}
	}
	if number < 1 || number > int64(len(s.versions)) {
		return nil, nil, status.Errorf(codes.NotFound, "Secret Version [%s] not found.", e.versionName(n, number))
	}
	return s, s.versions[number-1], nil
}

func (e *Emulator) secretProto(s *secret) *pb.Secret {
	out := &pb.Secret{
		Name: e.secretName(s.name), CreateTime: timestamppb.New(s.created),
		Labels: maps.Clone(s.labels), Annotations: maps.Clone(s.annotations), VersionAliases: maps.Clone(s.aliases),
		Etag: fmt.Sprintf(`"%d"`, s.etag),
	}
	if s.replication != nil {
		out.Replication = proto.CloneOf(s.replication)
	}
	for _, t := range s.topics {
		out.Topics = append(out.Topics, &pb.Topic{Name: t})
	}
	return out
}

func (e *Emulator) versionProto(s *secret, v *version) *pb.SecretVersion {
	out := &pb.SecretVersion{
		Name: e.versionName(s.name, v.number), CreateTime: timestamppb.New(v.created), State: v.state,
		ClientSpecifiedPayloadChecksum: v.checked, Etag: fmt.Sprintf(`"%d"`, v.etag),
	}
	if !v.destroyed.IsZero() {
		out.DestroyTime = timestamppb.New(v.destroyed)
	}
	return out
}

// At selects the secret of a location instead of the global one.
func At(location string) PutOption { return func(p *put) { p.name.location = location } }

// Labels sets the labels of the secret. Without it they stay unchanged.
func Labels(labels map[string]string) PutOption { return func(p *put) { p.labels = labels } }

// Annotations sets the annotations of the secret. Without it they stay unchanged.
func Annotations(a map[string]string) PutOption { return func(p *put) { p.annotations = a } }

// Alias sets an alias for the version.
func Alias(alias string) PutOption { return func(p *put) { p.alias = alias } }

// Empty creates the secret without a version.
func Empty() PutOption { return func(p *put) { p.empty = true } }

// A PutOption sets other properties of a secret than its value.
type PutOption func(*put)

type put struct {
	name                name
	labels, annotations map[string]string
	alias               string
	empty               bool
}

// Put adds a version to a secret and returns the version's number. It creates the secret if necessary. It is
// not counted as a call, and has no size limit.
func (e *Emulator) Put(id string, data []byte, opts ...PutOption) int64 {
	p := put{name: name{project: DefaultProject, id: id}}
	for _, o := range opts {
		o(&p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.secrets[p.name]
	if s == nil {
		s = e.insertLocked(p.name)
		e.notify("SECRET_CREATE", s, nil)
	}
	if p.labels != nil {
		s.labels = maps.Clone(p.labels)
	}
	if p.annotations != nil {
		s.annotations = maps.Clone(p.annotations)
	}
	if p.labels != nil || p.annotations != nil {
		s.etag++
		e.notify("SECRET_UPDATE", s, nil)
	}
	if p.empty {
		return 0
	}
	v := s.add(data, e.now())
	if p.alias != "" {
		if s.aliases == nil {
			s.aliases = map[string]int64{}
		}
		s.aliases[p.alias] = v.number
	}
	e.notify("SECRET_VERSION_ADD", s, v)
	return v.number
}

// SetState enables, disables or destroys a version of a global secret. It is not counted as a call.
func (e *Emulator) SetState(id string, number int64, state pb.SecretVersion_State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.secrets[name{project: DefaultProject, id: id}]
	if s == nil || number < 1 || number > int64(len(s.versions)) {
		return
	}
	e.setLocked(s, s.versions[number-1], state)
}

func (e *Emulator) setLocked(s *secret, v *version, state pb.SecretVersion_State) {
	v.set(state, e.now())
	e.notify(stateChanges[state], s, v)
}

func (v *version) set(state pb.SecretVersion_State, at time.Time) {
	v.state = state
	v.etag++
	if state == pb.SecretVersion_DESTROYED {
		v.data, v.destroyed = nil, at
	}
}

// Delete deletes a secret. It is not counted as a call. It uses only the option At.
func (e *Emulator) Delete(id string, opts ...PutOption) {
	p := put{name: name{project: DefaultProject, id: id}}
	for _, o := range opts {
		o(&p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(p.name)
}
