package secretmanager

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// createdBy is the key of the annotation with the mark. A label cannot hold every mark. Neither allows a slash in its key.
const createdBy = provider.Reserved + "_created-by"

// The limits of labels, annotations and topics follow the description of Secret in Google's protos.
const (
	maxLabels      = 64
	maxTopics      = 10
	maxAnnotations = 16 << 10 // bytes of all keys and values; the total must be less
	maxKeyBytes    = 128
	maxLabelRunes  = 63
)

// Lengths are checked separately: a Unicode class that is repeated 63 times would need megabytes.
var (
	labelKey      = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]*$`)
	labelValue    = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]*$`)
	annotationKey = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	topicName     = regexp.MustCompile(`^projects/[^/]+/topics/[^/]+$`)
	kmsKeyName    = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`)
)

// settings is the decoded metadata of a Target. A field that is not set leaves the secret's setting unchanged.
type settings struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Replication *replication      `json:"replication"`
	// Topics replaces all topics of the secret; nil leaves them unchanged.
	Topics []string `json:"topics"`
}

type replication struct {
	Automatic   *encryption  `json:"automatic"`
	UserManaged *userManaged `json:"userManaged"`
}

type encryption struct {
	KMSKeyName string `json:"kmsKeyName"`
}

type userManaged struct {
	Replicas []replica `json:"replicas"`
}

type replica struct {
	Location string `json:"location"`
	encryption
}

func refused(format string, args ...any) error {
	return provider.NewError(provider.Invalid, format, args...)
}

// settingsOf decodes metadata strictly, so that no unknown field is silently ignored.
func (c *Client) settingsOf(metadata []byte) (settings, error) {
	var s settings
	if err := provider.DecodeMetadata(metadata, &s, "labels and annotations (maps of strings), replication and topics"); err != nil || metadata == nil {
		return s, err
	}
	return s, s.check(c.regional())
}

func (s settings) check(regional bool) error {
	if err := provider.CheckSettings("labels", s.Labels, checkLabel); err != nil {
		return err
	}
	if err := provider.CheckSettings("annotations", s.Annotations, checkAnnotation); err != nil {
		return err
	}
	if len(s.Topics) > maxTopics {
		return refused("metadata.topics: has %d entries, and a secret has at most %d", len(s.Topics), maxTopics)
	}
	for i, t := range s.Topics {
		if !topicName.MatchString(t) {
			return refused("metadata.topics[%d]: %s is not a topic; write it as projects/PROJECT/topics/TOPIC", i, provider.Quoted(t))
		}
	}
	if s.Replication != nil && regional {
		return refused("metadata.replication: regional secrets are not replicated; remove it, or spec.location of the store")
	}
	if err := s.Replication.check(); err != nil {
		return err
	}
	return withinLimits(s.Labels, s.Annotations)
}

func checkLabel(key, value string) (wrong string) {
	switch {
	case !labelKey.MatchString(key) || tooLong(key):
		return "must have at most 63 lower-case letters, digits, _ and -, and begin with a letter"
	case !labelValue.MatchString(value) || tooLong(value):
		return "must have a value of at most 63 lower-case letters, digits, _ and -; use an annotation for others"
	}
	return ""
}

func checkAnnotation(key, _ string) (wrong string) {
	if !annotationKey.MatchString(key) {
		return "must have at most 63 letters, digits, _, - and dots, and begin and end with a letter or digit"
	}
	return ""
}

func (r *replication) check() error {
	switch {
	case r == nil:
		return nil
	case (r.Automatic == nil) == (r.UserManaged == nil):
		return refused("metadata.replication: set either automatic or userManaged")
	case r.Automatic != nil:
		return r.Automatic.check("metadata.replication.automatic.kmsKeyName")
	case len(r.UserManaged.Replicas) == 0:
		return refused("metadata.replication.userManaged.replicas: is empty; name a location")
	}
	seen := map[string]bool{}
	for i, at := range r.UserManaged.Replicas {
		switch {
		case at.Location == "":
			return refused("metadata.replication.userManaged.replicas[%d].location: is empty; write it as europe-west3", i)
		case seen[at.Location]:
			return refused("metadata.replication.userManaged.replicas[%d].location: %s is listed twice", i, provider.Quoted(at.Location))
		}
		seen[at.Location] = true
		if err := at.check("metadata.replication.userManaged.replicas[].kmsKeyName"); err != nil {
			return err
		}
	}
	return nil
}

func (e encryption) check(field string) error {
	if e.KMSKeyName != "" && !kmsKeyName.MatchString(e.KMSKeyName) {
		return refused("%s: %s is not a key; write it as projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY", field, provider.Quoted(e.KMSKeyName))
	}
	return nil
}

// withinLimits checks the total of labels and annotations that a secret would have.
func withinLimits(labels, annotations map[string]string) error {
	size := 0
	for k, v := range annotations {
		size += len(k) + len(v)
	}
	switch {
	case len(labels) > maxLabels:
		return refused("metadata.labels: with them, the secret has %d labels, at most %d are allowed", len(labels), maxLabels)
	case size >= maxAnnotations:
		return refused("metadata.annotations: with them, the secret has %d bytes of annotations, less than %d are allowed", size, maxAnnotations)
	}
	return nil
}

// secret returns a new secret with these settings and the mark.
func (s settings) secret(regional bool, mark string) (*pb.Secret, error) {
	out := &pb.Secret{Labels: s.Labels, Annotations: s.Annotations, Topics: topics(s.Topics)}
	if mark != "" {
		out.Annotations = provider.Merged(out.Annotations, map[string]string{createdBy: mark})
	}
	switch {
	case regional:
	case s.Replication == nil:
		out.Replication = (&replication{Automatic: &encryption{}}).proto()
	default:
		out.Replication = s.Replication.proto()
	}
	return out, withinLimits(out.Labels, out.Annotations)
}

func topics(names []string) []*pb.Topic {
	var out []*pb.Topic
	for _, n := range names {
		out = append(out, &pb.Topic{Name: n})
	}
	return out
}

func (r *replication) proto() *pb.Replication {
	if r.Automatic != nil {
		return &pb.Replication{Replication: &pb.Replication_Automatic_{Automatic: &pb.Replication_Automatic{CustomerManagedEncryption: r.Automatic.proto()}}}
	}
	out := &pb.Replication_UserManaged{}
	for _, at := range r.UserManaged.Replicas {
		out.Replicas = append(out.Replicas, &pb.Replication_UserManaged_Replica{Location: at.Location, CustomerManagedEncryption: at.proto()})
	}
	return &pb.Replication{Replication: &pb.Replication_UserManaged_{UserManaged: out}}
}

func (e encryption) proto() *pb.CustomerManagedEncryption {
	if e.KMSKeyName == "" {
		return nil
	}
	return &pb.CustomerManagedEncryption{KmsKeyName: e.KMSKeyName}
}

// fits returns an error for a setting that an existing secret can never get.
func (s settings) fits(current *pb.Secret) error {
	if s.Replication == nil || slices.Equal(places(s.Replication.proto()), places(current.GetReplication())) {
		return nil
	}
	return refused("metadata.replication: the secret has another replication, which cannot be changed; correct it, or delete the secret so that it is created again")
}

// places formats a replication so that it can be compared.
func places(r *pb.Replication) []string {
	out := []string{"automatic " + r.GetAutomatic().GetCustomerManagedEncryption().GetKmsKeyName()}
	if u := r.GetUserManaged(); u != nil {
		out = nil
		for _, at := range u.GetReplicas() {
			out = append(out, at.GetLocation()+" "+at.GetCustomerManagedEncryption().GetKmsKeyName())
		}
	}
	slices.Sort(out)
	return out
}

// drift returns the names of the settings that differ from those of a secret.
func (s settings) drift(current *pb.Secret) []string {
	out := slices.Concat(provider.Differing("annotations", s.Annotations, current.GetAnnotations()), provider.Differing("labels", s.Labels, current.GetLabels()))
	if s.Topics != nil && !slices.Equal(names(topics(s.Topics)), names(current.GetTopics())) {
		out = append(out, "topics")
	}
	return out
}

func names(topics []*pb.Topic) []string {
	var out []string
	for _, t := range topics {
		out = append(out, t.GetName())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// onto returns a secret with the settings applied, and the names of the fields that change.
func (s settings) onto(current *pb.Secret) (to *pb.Secret, fields []string, err error) {
	to = &pb.Secret{
		Labels:      provider.Merged(current.GetLabels(), s.Labels),
		Annotations: provider.Merged(current.GetAnnotations(), s.Annotations),
		Topics:      topics(s.Topics),
	}
	for _, d := range s.drift(current) {
		field, _, _ := strings.Cut(d, ".")
		fields = append(fields, field)
	}
	return to, slices.Compact(fields), withinLimits(to.Labels, to.Annotations)
}

// tooLong reports whether the key or the value of a label is too long.
func tooLong(label string) bool {
	return len(label) > maxKeyBytes || utf8.RuneCountInString(label) > maxLabelRunes
}
