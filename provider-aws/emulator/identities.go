package emulator

import (
	"slices"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A Credential is a static access key of a user.
type Credential struct {
	AccessKeyID     string
	SecretAccessKey string

	// UserName appears in the user's ARN; the default is the access key id.
	UserName string

	// Deny lists the actions that the user is not allowed to do; everything else is allowed.
	Deny []Deny

	// MFASerial is the user's MFA device, and MFACodes are its codes. Each code works once.
	MFASerial string
	MFACodes  []string
}

// A Deny removes a permission. In both fields "*" matches any text.
type Deny struct {
	// Action is an IAM action, for example secretsmanager:GetSecretValue.
	Action string

	// Secret is a secret's name. Empty means every secret, and actions such as
	// secretsmanager:BatchGetSecretValue that are not about a single secret.
	Secret string
}

// A principal is an identity whose signature the emulator can check.
type principal struct {
	arn             string
	userID          string
	secretAccessKey string
	sessionToken    string
	expires         time.Time // the zero time means never
	deny            []Deny
	policy          *Policy    // nil allows everything that deny does not list
	session         *Session   // nil for a user's access key
	mfa             *mfaDevice // nil for a user without a device
	signer          *v4.Signer // one per principal, because a signer caches the key derived for it
}

func (p *principal) expired(now time.Time) bool { return !p.expires.IsZero() && !now.Before(p.expires) }

func (p *principal) denies(action, secretName string) bool {
	return slices.ContainsFunc(p.deny, func(d Deny) bool {
		return glob(d.Action, action) && (d.Secret == "" || secretName != "" && glob(d.Secret, secretName))
	})
}

// identities are the principals, roles and sessions of the account.
type identities struct {
	mu         sync.RWMutex
	principals map[string]*principal // by access key id
	roles      map[string]Role       // by ARN
	sessions   []Session
}

func (i *identities) principal(accessKeyID string) *principal {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.principals[accessKeyID]
}

func (i *identities) addPrincipal(accessKeyID string, p *principal) {
	p.signer = v4.NewSigner()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.principals == nil {
		i.principals = map[string]*principal{}
	}
	i.principals[accessKeyID] = p
}

// AddCredential adds an access key, or replaces the one with the same id.
func (e *Emulator) AddCredential(c Credential) {
	if c.UserName == "" {
		c.UserName = c.AccessKeyID
	}
	var device *mfaDevice
	if c.MFASerial != "" {
		device = &mfaDevice{serial: c.MFASerial, codes: slices.Clone(c.MFACodes)}
	}
	e.identities.addPrincipal(c.AccessKeyID, &principal{
		mfa:             device,
		arn:             "arn:aws:iam::" + e.account + ":user/" + c.UserName,
		userID:          "AIDA" + strings.ToUpper(hashString([]byte(c.UserName))),
		secretAccessKey: c.SecretAccessKey,
		deny:            c.Deny,
	})
}

// glob matches a whole text against a pattern in which * matches any text, slashes included.
func glob(pattern, text string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, head)
	if !ok {
		return false
	}
	for i := range len(rest) + 1 {
		if glob(tail, rest[i:]) {
			return true
		}
	}
	return false
}
