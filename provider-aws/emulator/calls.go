package emulator

import "time"

// A Call is one request to the AWS API. It contains no value.
type Call struct {
	Time        time.Time
	Service     string // secretsmanager, ssm, ecr, ecr-public or sts
	Operation   string
	SecretIDs   []string `json:",omitempty"` // as named in the request
	AccessKeyID string   `json:",omitempty"`
}

// CallName returns the operation.
func (c Call) CallName() string { return c.Operation }

// Reset clears the calls and the recorded sessions. Secrets, roles, credentials and faults stay, and the
// credentials of sessions remain valid.
func (e *Emulator) Reset() {
	e.CallLog.Reset()
	e.identities.mu.Lock()
	e.identities.sessions = nil
	e.identities.mu.Unlock()
}
