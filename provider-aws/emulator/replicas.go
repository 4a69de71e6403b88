package emulator

import (
	"encoding/json"
	"slices"
)

// Replicate adds a replica to a secret, as another client would.
func (e *Emulator) Replicate(name, region, kmsKeyID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.lookup(name); s != nil {
		e.replicate(s, []replica{{Region: region, KmsKeyID: kmsKeyID}})
	}
}

// Replicas returns the regions with replicas of a secret.
func (e *Emulator) Replicas(name string) (regions []string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if s := e.lookup(name); s != nil {
		for _, r := range s.replicas {
			regions = append(regions, r.Region)
		}
	}
	return regions
}

// ResourcePolicy returns the policy of a secret.
func (e *Emulator) ResourcePolicy(name string) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if s := e.lookup(name); s != nil {
		return s.policy
	}
	return ""
}

// The statuses of a replica. AWS also has InProgress, which the emulator skips.
const (
	replicaInSync = "InSync"
	replicaFailed = "Failed"
)

// A replica is a region in a request, and its state in an answer.
type replica struct {
	Region        string
	KmsKeyID      string `json:"KmsKeyId,omitempty"`
	Status        string `json:",omitempty"`
	StatusMessage string `json:",omitempty"`
}

// OccupyRegion makes replication to a region fail, as if it had secrets of the same names.
func (e *Emulator) OccupyRegion(region string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.occupied == nil {
		e.occupied = map[string]bool{}
	}
	e.occupied[region] = true
}

func (e *Emulator) checkReplicas(replicas []replica) error {
	for i, r := range replicas {
		if r.Region == "" || r.Region == e.region {
			return invalidParameter("Invalid replica region.")
		}
		if slices.ContainsFunc(replicas[:i], func(o replica) bool { return o.Region == r.Region }) {
			return invalidParameter("Replica regions must be unique.")
		}
	}
	return nil
}

// replicate adds replicas to a secret. The caller holds the lock.
func (e *Emulator) replicate(s *secret, replicas []replica) {
	for _, r := range replicas {
		r.Status, r.StatusMessage = replicaInSync, ""
		if e.occupied[r.Region] {
			r.Status, r.StatusMessage = replicaFailed, "Replication failed: Secret name simple already exists in region "+r.Region+"."
		}
		s.replicas = append(s.replicas, r)
	}
}

func stillReplicated(s *secret) error {
	return invalidRequest("You can't delete secret %s that still has replica regions.", s.name)
}

type replicationAnswer struct {
	ARN               string
	ReplicationStatus []replica
}

type replicateSecretToRegionsInput struct {
	secretRef

	AddReplicaRegions           []replica
	ForceOverwriteReplicaSecret bool
}

func (e *Emulator) replicateSecretToRegions(q *request, in *replicateSecretToRegionsInput) (any, error) {
	if len(in.AddReplicaRegions) == 0 {
		return nil, invalidField("addReplicaRegions", "Member must have length greater than or equal to 1")
	}
	if err := e.checkReplicas(in.AddReplicaRegions); err != nil {
		return nil, err
	}
	if err := e.allow(q, "ReplicateSecretToRegions", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	for _, r := range in.AddReplicaRegions {
		if slices.ContainsFunc(s.replicas, func(o replica) bool { return o.Region == r.Region }) {
			return nil, invalidParameter("The secret is already replicated to region %s.", r.Region)
		}
	}
	e.replicate(s, in.AddReplicaRegions)
	return &replicationAnswer{s.arn, slices.Clone(s.replicas)}, nil
}

type removeRegionsInput struct {
	secretRef

	RemoveReplicaRegions []string
}

func (e *Emulator) removeRegionsFromReplication(q *request, in *removeRegionsInput) (any, error) {
	if err := e.allow(q, "RemoveRegionsFromReplication", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	s.replicas = slices.DeleteFunc(s.replicas, func(r replica) bool { return slices.Contains(in.RemoveReplicaRegions, r.Region) })
	return &replicationAnswer{s.arn, slices.Clone(s.replicas)}, nil
}

type resourcePolicyAnswer struct {
	ARN            string
	Name           string
	ResourcePolicy string `json:",omitempty"`
}

type getResourcePolicyInput struct{ secretRef }

func (e *Emulator) getResourcePolicy(q *request, in *getResourcePolicyInput) (any, error) {
	if err := e.allow(q, "GetResourcePolicy", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	return &resourcePolicyAnswer{ARN: s.arn, Name: s.name, ResourcePolicy: s.policy}, nil
}

type putResourcePolicyInput struct {
	secretRef

	ResourcePolicy    string
	BlockPublicPolicy bool
}

func (e *Emulator) putResourcePolicy(q *request, in *putResourcePolicyInput) (any, error) {
	var policy struct {
		Statement []struct {
			Effect    string
			Principal any
		}
	}
	if err := json.Unmarshal([]byte(in.ResourcePolicy), &policy); err != nil || len(policy.Statement) == 0 {
		return nil, badRequest("MalformedPolicyDocumentException", "This resource policy contains invalid JSON.")
	}
	for _, s := range policy.Statement {
		if in.BlockPublicPolicy && s.Effect == "Allow" && s.Principal == "*" {
			return nil, badRequest("PublicPolicyException", "This resource policy grants broad access to your secret.")
		}
	}
	if err := e.allow(q, "PutResourcePolicy", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	s.policy, s.changed = in.ResourcePolicy, e.now()
	return &resourcePolicyAnswer{ARN: s.arn, Name: s.name}, nil
}
