package emulator

import (
	"regexp"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A name is the name of a secret. The location of a global secret is empty.
type name struct{ project, location, id string }

var (
	parentName  = regexp.MustCompile(`^projects/([^/]+)(?:/locations/([a-z0-9-]+))?$`)
	secretName  = regexp.MustCompile(`^projects/([^/]+)(?:/locations/([a-z0-9-]+))?/secrets/([A-Za-z0-9_-]{1,255})$`)
	versionName = regexp.MustCompile(`^(projects/[^/]+(?:/locations/[a-z0-9-]+)?/secrets/[A-Za-z0-9_-]{1,255})/versions/([A-Za-z0-9_-]{1,63})$`)
)

// parent returns the start of the name as in answers, with the project's number.
func (e *Emulator) parent(n name) string {
	p := "projects/" + e.projects[n.project]
	if n.location != "" {
		p += "/locations/" + n.location
	}
	return p
}

func (e *Emulator) secretName(n name) string { return e.parent(n) + "/secrets/" + n.id }

func (e *Emulator) versionName(n name, number int64) string {
	return e.secretName(n) + "/versions/" + strconv.FormatInt(number, 10)
}

// project returns the id of a project, which can also be given by its number.
func (e *Emulator) project(s string) (string, error) {
	for id, number := range e.projects {
		if s == id || s == number {
			return id, nil
		}
	}
	err := status.New(codes.PermissionDenied, "Permission denied on resource project "+s+".")
	if with, e := err.WithDetails(&errdetails.ErrorInfo{
		Reason: "CONSUMER_INVALID", Domain: "googleapis.com",
		Metadata: map[string]string{"consumer": "projects/" + s, "service": "secretmanager.googleapis.com"},
	}); e == nil {
		err = with
	}
	return "", err.Err()
}

func (e *Emulator) parseParent(s string) (name, error) {
	m := parentName.FindStringSubmatch(s)
	if m == nil {
		return name{}, invalid("The provided parent resource name [%s] does not match the expected format", s)
	}
	p, err := e.project(m[1])
	return name{project: p, location: m[2]}, err
}

func (e *Emulator) parseSecret(s string) (name, error) {
	m := secretName.FindStringSubmatch(s)
	if m == nil {
		return name{}, invalid("The provided Secret ID [%s] does not match the expected format [[a-zA-Z_0-9]+]", s)
	}
	p, err := e.project(m[1])
	return name{p, m[2], m[3]}, err
}

func (e *Emulator) parseVersion(s string) (n name, version string, err error) {
	m := versionName.FindStringSubmatch(s)
	if m == nil {
		return name{}, "", invalid("The provided Secret Version ID [%s] is not valid", s)
	}
	n, err = e.parseSecret(m[1])
	return n, m[2], err
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func precondition(format string, args ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, args...)
}
