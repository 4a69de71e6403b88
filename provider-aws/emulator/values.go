package emulator

import "slices"

type createSecretInput struct {
	newValue

	Name        string
	Description string
	KmsKeyID    string `json:"KmsKeyId"`
	Type        string
	Tags        []tag

	AddReplicaRegions []replica
}

func (in *createSecretInput) secretIDs() []string { return []string{in.Name} }

func (e *Emulator) createSecret(q *request, in *createSecretInput) (any, error) {
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := e.checkReplicas(in.AddReplicaRegions); err != nil {
		return nil, err
	}
	if len(in.AddReplicaRegions) > 0 {
		if err := e.allow(q, "ReplicateSecretToRegions", in.Name); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.lookup(in.Name); s != nil {
		return in.again(s)
	}
	s := e.insert(in.Name)
	e.replicate(s, in.AddReplicaRegions)
	s.description, s.kmsKeyID, s.kind = in.Description, in.KmsKeyID, in.Type
	s.tags = withTags(nil, in.Tags)
	out := &secretName{ARN: s.arn, Name: s.name}
	if in.given() {
		out.VersionID = s.put(in.ClientRequestToken, in.payload(), []string{stageCurrent}, e.now()).id
	}
	return out, nil
}

// again answers a request to create a secret that exists. It succeeds only if the request repeats the one that
// created it.
func (in *createSecretInput) again(s *secret) (any, error) {
	if s.scheduled() {
		return nil, invalidRequest("You can't create this secret because a secret with this name is already scheduled for deletion.")
	}
	v, err := in.replayed(s)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, badRequest("ResourceExistsException", "The operation failed because the secret %s already exists.", s.name)
	}
	return &secretName{ARN: s.arn, Name: s.name, VersionID: v.id}, nil
}

type getSecretValueInput struct {
	secretRef

	VersionID    string `json:"VersionId"`
	VersionStage string
}

// secretValue is one secret with its value, in a single read or in a batch.
type secretValue struct {
	ARN           string
	Name          string
	VersionID     string   `json:"VersionId"`
	SecretString  *string  `json:",omitempty"`
	SecretBinary  []byte   `json:",omitempty"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   *epoch
}

func newSecretValue(s *secret, v *version) *secretValue {
	out := &secretValue{
		ARN: s.arn, Name: s.name, VersionID: v.id,
		VersionStages: slices.Clone(v.stages), CreatedDate: date(v.created),
	}
	if v.value.binary {
		out.SecretBinary = v.value.data
	} else {
		text := string(v.value.data)
		out.SecretString = &text
	}
	return out
}

func (e *Emulator) getSecretValue(_ *request, in *getSecretValueInput) (any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.value(in.SecretID, in.VersionID, in.VersionStage)
}

// value reads one secret. The caller holds the lock.
func (e *Emulator) value(id, versionID, stage string) (*secretValue, error) {
	s, err := e.find(id)
	if err != nil {
		return nil, err
	}
	v, err := s.read(versionID, stage)
	if err != nil {
		return nil, err
	}
	s.touch(e.now())
	return newSecretValue(s, v), nil
}

type putSecretValueInput struct {
	secretRef
	newValue

	VersionStages []string
}

func (e *Emulator) putSecretValue(s *secret, in *putSecretValueInput) (any, error) {
	if !in.given() {
		return nil, invalidRequest("You must provide either SecretString or SecretBinary.")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	stages := in.VersionStages
	if stages == nil {
		stages = []string{stageCurrent}
	}
	v, err := in.replayed(s)
	if err != nil {
		return nil, err
	}
	if v == nil {
		v = s.put(in.ClientRequestToken, in.payload(), stages, e.now())
	}
	return &secretName{ARN: s.arn, Name: s.name, VersionID: v.id, VersionStage: slices.Clone(v.stages)}, nil
}

type updateSecretInput struct {
	secretRef
	newValue

	Description *string
	KmsKeyID    *string `json:"KmsKeyId"`
	Type        *string
}

// updateSecret changes only settings: the emulator has no update of a value.
func (e *Emulator) updateSecret(s *secret, in *updateSecretInput) (any, error) {
	if in.given() {
		return nil, invalidRequest("The emulator has no update of a value")
	}
	set(&s.description, in.Description)
	set(&s.kmsKeyID, in.KmsKeyID)
	set(&s.kind, in.Type)
	s.changed = e.now()
	return &secretName{ARN: s.arn, Name: s.name}, nil
}

func set(field, given *string) {
	if given != nil {
		*field = *given
	}
}
