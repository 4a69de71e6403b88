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
		if r.Region == "" || r.Region == e.region || slices.ContainsFunc(replicas[:i], func(o replica) bool { return o.Region == r.Region }) {
			return invalidParameter("Invalid replica region.")
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

type replicationAnswer struct {
	ARN               string
	ReplicationStatus []replica
}

type replicateSecretToRegionsInput struct {
	secretRef

	AddReplicaRegions []replica
}

func (e *Emulator) replicateSecretToRegions(s *secret, in *replicateSecretToRegionsInput) (any, error) {
	if err := e.checkReplicas(slices.Concat(s.replicas, in.AddReplicaRegions)); err != nil {
		return nil, err
	}
	e.replicate(s, in.AddReplicaRegions)
	return &replicationAnswer{s.arn, slices.Clone(s.replicas)}, nil
}

type removeRegionsInput struct {
	secretRef

	RemoveReplicaRegions []string
}

func (*Emulator) removeRegionsFromReplication(s *secret, in *removeRegionsInput) (any, error) {
	s.replicas = slices.DeleteFunc(s.replicas, func(r replica) bool { return slices.Contains(in.RemoveReplicaRegions, r.Region) })
	return &replicationAnswer{s.arn, slices.Clone(s.replicas)}, nil
}

type resourcePolicyAnswer struct {
	ARN            string
	Name           string
	ResourcePolicy string `json:",omitempty"`
}

type getResourcePolicyInput struct{ secretRef }

func (*Emulator) getResourcePolicy(s *secret, _ *getResourcePolicyInput) (any, error) {
	return &resourcePolicyAnswer{ARN: s.arn, Name: s.name, ResourcePolicy: s.policy}, nil
}

type putResourcePolicyInput struct {
	secretRef

	ResourcePolicy    string
	BlockPublicPolicy bool
}

func (e *Emulator) putResourcePolicy(s *secret, in *putResourcePolicyInput) (any, error) {
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
	s.policy, s.changed = in.ResourcePolicy, e.now()
	return &resourcePolicyAnswer{ARN: s.arn, Name: s.name}, nil
}
