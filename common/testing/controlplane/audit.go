package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// An AuditEvent is a request that the API server has answered. For its fields see
// https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/.
type AuditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// IsWrite reports whether the request was to change the state of the cluster. Review requests and token requests do
// not count, although their verb is create.
func (e AuditEvent) IsWrite() bool {
	switch e.ObjectRef.APIGroup {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	switch e.Verb {
	case "create":
		return e.ObjectRef.Subresource != "token"
	case "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// AuditLog returns the path of the audit log, which has one JSON object of the kind audit.k8s.io/v1 Event in each
// line. It is empty without WithAuditLog.
func (c *ControlPlane) AuditLog() string {
	if !c.settings.audit {
		return ""
	}
	return filepath.Join(c.dir, auditLogFile)
}

// ReadAuditLog returns the recorded requests that were received at or after since, in the order of their answers. A
// request is recorded before its client gets the answer; a watch when it starts.
func (c *ControlPlane) ReadAuditLog(since time.Time) ([]AuditEvent, error) {
	if !c.settings.audit {
		return nil, errors.New("the control plane keeps no audit log: start it with WithAuditLog")
	}
	f, err := os.Open(c.AuditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()

	var events []AuditEvent
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil // An unfinished line is a request without an answer yet.
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the audit log: %w", err)
		}
		var e struct {
			AuditEvent
			Stage string `json:"stage"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("cannot read the audit log: %w", err)
		}
		if e.Stage == "ResponseStarted" && e.Verb != "watch" || e.Stage == "ResponseComplete" && e.Verb == "watch" {
			continue // There is one entry for each request.
		}
		if !e.RequestReceivedTimestamp.Before(since) {
			events = append(events, e.AuditEvent)
		}
	}
}
