package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ExternalSecret keeps one Secret in step with values of a secret store.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=des,categories=direct-secrets
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.refreshInterval`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Refreshed",type=date,JSONPath=`.status.refreshTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ExternalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ExternalSecretSpec   `json:"spec"`
	Status ExternalSecretStatus `json:"status,omitempty"`
}

// ExternalSecretList is a list of ExternalSecrets.
//
// +kubebuilder:object:root=true
type ExternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ExternalSecret `json:"items"`
}

// ExternalSecretSpec says what is read, and into which Secret it goes.
type ExternalSecretSpec struct {
	// The store that data and dataFrom read from, unless an entry names its own.
	// +optional
	StoreRef *StoreRef `json:"storeRef,omitempty"`

	// Touch nothing while true: no read, no write, no deletion.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// When the provider is read. Periodic (the default): every refreshInterval, and when the spec,
	// labels or annotations change. OnChange: only when they change. CreatedOnce: once.
	// +optional
	RefreshPolicy RefreshPolicy `json:"refreshPolicy,omitempty"`

	// Time between two reads under the policy Periodic. Default 1h, at least 1s; 0 behaves as CreatedOnce.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || duration(self) <= duration('0s') || duration(self) >= duration('1s')",message="refreshInterval must be 0 or at least 1s"
	RefreshInterval Duration `json:"refreshInterval,omitempty"`

	// The Secret that is written.
	// +optional
	Target Target `json:"target,omitzero"`

	// Single keys, each from one remote secret. They win over dataFrom.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Data []DataEntry `json:"data,omitempty"`

	// Sources of many keys, in rising order of precedence.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DataFrom []DataFromEntry `json:"dataFrom,omitempty"`
}

// RefreshPolicy says when the provider is read.
// +kubebuilder:validation:Enum="";Periodic;OnChange;CreatedOnce
type RefreshPolicy string

// The refresh policies; unset means Periodic.
const (
	RefreshPeriodic    RefreshPolicy = "Periodic"
	RefreshOnChange    RefreshPolicy = "OnChange"
	RefreshCreatedOnce RefreshPolicy = "CreatedOnce"
)

// CreationPolicy says whether the Secret is created, and who owns it.
// +kubebuilder:validation:Enum="";Owner;Orphan;Merge;CreateOrMerge;None
type CreationPolicy string

// The creation policies; unset means Owner.
const (
	CreateOwner         CreationPolicy = "Owner"
	CreateOrphan        CreationPolicy = "Orphan"
	CreateMerge         CreationPolicy = "Merge"
	CreateCreateOrMerge CreationPolicy = "CreateOrMerge"
	CreateNone          CreationPolicy = "None"
)

// DeletionPolicy says what happens when the provider no longer has a secret.
// +kubebuilder:validation:Enum="";Retain;Delete;Merge
type DeletionPolicy string

// The deletion policies; unset means Retain.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
	DeletionMerge  DeletionPolicy = "Merge"
)

// CleanupPolicy says whether an owned Secret goes with its ExternalSecret.
// +kubebuilder:validation:Enum="";OnDelete;Never
type CleanupPolicy string

// The cleanup policies; unset inherits the operator's --default-secret-cleanup-policy.
const (
	CleanupOnDelete CleanupPolicy = "OnDelete"
	CleanupNever    CleanupPolicy = "Never"
)

// Target describes the Secret that an ExternalSecret writes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.deletionPolicy) && self.deletionPolicy == 'Delete' && has(self.creationPolicy) && self.creationPolicy in ['Merge', 'CreateOrMerge', 'None'])",message="deletionPolicy Delete needs creationPolicy Owner or Orphan: a Secret that others share is never deleted; use deletionPolicy Merge to drop only the own keys"
// +kubebuilder:validation:XValidation:rule="!(has(self.deletionPolicy) && self.deletionPolicy == 'Merge' && has(self.creationPolicy) && self.creationPolicy == 'None')",message="deletionPolicy Merge needs a creationPolicy that writes a Secret; None writes none"
// +kubebuilder:validation:XValidation:rule="!(has(self.cleanupPolicy) && size(self.cleanupPolicy) > 0 && has(self.creationPolicy) && size(self.creationPolicy) > 0 && self.creationPolicy != 'Owner')",message="cleanupPolicy needs creationPolicy Owner: only an owned Secret is cleaned up"
// +kubebuilder:validation:XValidation:rule="!(has(self.immutable) && self.immutable && has(self.creationPolicy) && self.creationPolicy in ['Merge', 'CreateOrMerge', 'None'])",message="immutable needs creationPolicy Owner or Orphan: a Secret that others share is not frozen"
type Target struct {
	// Name of the Secret. Default: the name of the ExternalSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Owner (the default): create the Secret and own it. Orphan: create it without owning it.
	// Merge: add keys to a Secret that exists. CreateOrMerge: create it if absent, else merge.
	// None: read only, write nothing.
	// +optional
	CreationPolicy CreationPolicy `json:"creationPolicy,omitempty"`

	// What happens when the provider says that secrets are gone. Retain (the default): keep the
	// Secret as it is and report it. Delete: drop the keys, and the Secret with the last of them.
	// Merge: drop the keys, keep the Secret.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// OnDelete: the Secret is garbage-collected with the ExternalSecret. Never: it stays. Unset:
	// the operator's --default-secret-cleanup-policy.
	// +optional
	CleanupPolicy CleanupPolicy `json:"cleanupPolicy,omitempty"`

	// Create the Secret immutable. It is never rewritten, and the provider is not read again.
	// +optional
	Immutable bool `json:"immutable,omitempty"`

	// Shape of the Secret.
	// +optional
	Template *Template `json:"template,omitempty"`
}

// Template shapes the Secret from the values that were read.
type Template struct {
	// Type of the Secret. Default: Opaque.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type,omitempty"`

	// Labels and annotations of the Secret.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`

	// Replace (the default): the Secret holds only what the template yields. Merge: the values
	// that were read, too.
	// +optional
	MergePolicy TemplateMergePolicy `json:"mergePolicy,omitempty"`

	// Go templates, by key of the Secret.
	// +optional
	Data map[string]string `json:"data,omitempty"`

	// Templates kept elsewhere.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	TemplateFrom []TemplateFrom `json:"templateFrom,omitempty"`
}

// TemplateMetadata holds labels and annotations for the Secret.
type TemplateMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TemplateMergePolicy says whether a template replaces the values that were read.
// +kubebuilder:validation:Enum="";Replace;Merge
type TemplateMergePolicy string

// TemplateFrom takes templates from a ConfigMap, a Secret, or a literal; exactly one is set.
type TemplateFrom struct {
	// +optional
	ConfigMap *TemplateSource `json:"configMap,omitempty"`
	// +optional
	Secret *TemplateSource `json:"secret,omitempty"`
	// +optional
	Literal *string `json:"literal,omitempty"`
	// Where the result goes. Default: Data.
	// +optional
	// +kubebuilder:validation:Enum="";Data;Labels;Annotations
	Target string `json:"target,omitempty"`
}

// TemplateSource names keys of a ConfigMap or Secret in the namespace of the ExternalSecret.
type TemplateSource struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Items []TemplateSourceItem `json:"items"`
}

// TemplateSourceItem names one key that holds a template.
type TemplateSourceItem struct {
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// Values (the default): the template yields one value. KeysAndValues: it yields a YAML map.
	// +optional
	// +kubebuilder:validation:Enum="";Values;KeysAndValues
	TemplateAs string `json:"templateAs,omitempty"`
}

// DataEntry fills one key of the Secret.
type DataEntry struct {
	// Key in the Secret.
	SecretKey string `json:"secretKey"`

	// Skip this key when the remote secret or its property does not exist.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// The remote secret, or a property of it. The key is secretKey as it is written, so conversionStrategy must not be
	// Unicode.
	// +kubebuilder:validation:XValidation:rule="!has(self.conversionStrategy) || self.conversionStrategy != 'Unicode'",message="conversionStrategy Unicode has no effect in data, where secretKey is the key as it is written: remove it, or use dataFrom"
	RemoteRef RemoteRef `json:"remoteRef"`

	// The store to read from instead of spec.storeRef.
	// +optional
	SourceRef *DataSourceRef `json:"sourceRef,omitempty"`
}

// DataSourceRef names the store of one entry.
type DataSourceRef struct {
	StoreRef StoreRef `json:"storeRef"`
}

// RemoteRef names a remote secret and how its value is read.
type RemoteRef struct {
	// Key of the secret, as the provider spells it.
	Key string `json:"key"`

	// Path into a secret that holds JSON, in gjson syntax (for example db.password or hosts.0).
	// Unset: the whole secret.
	// +optional
	Property string `json:"property,omitempty"`

	// Version in the provider's terms. Unset: the current one.
	// +optional
	Version string `json:"version,omitempty"`

	// Fetch: read the metadata (for example tags) of the secret instead of its value.
	// +optional
	// +kubebuilder:validation:Enum="";None;Fetch
	MetadataPolicy string `json:"metadataPolicy,omitempty"`

	// How the value is decoded. Default: None.
	// +optional
	// +kubebuilder:validation:Enum="";None;Base64;Base64URL;Auto
	DecodingStrategy string `json:"decodingStrategy,omitempty"`

	// How characters that a Secret key may not hold are converted. Default: Default (to "_").
	// +optional
	// +kubebuilder:validation:Enum="";Default;Unicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
}

// DataFromEntry is a source of many keys: extract, find, or a generator.
type DataFromEntry struct {
	// All keys of one remote secret that holds a JSON object.
	// +optional
	Extract *RemoteRef `json:"extract,omitempty"`

	// All secrets that match.
	// +optional
	Find *Find `json:"find,omitempty"`

	// Changes to the keys, one after another.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Rewrite []Rewrite `json:"rewrite,omitempty"`

	// The store to read from instead of spec.storeRef, or a generator.
	// +optional
	SourceRef *SourceRef `json:"sourceRef,omitempty"`
}

// SourceRef names a store or a generator; exactly one is set.
type SourceRef struct {
	// +optional
	StoreRef *StoreRef `json:"storeRef,omitempty"`
	// +optional
	GeneratorRef *StoreRef `json:"generatorRef,omitempty"`
}

// Find selects secrets by path, name and tags; all that are set must match.
type Find struct {
	// +optional
	Path string `json:"path,omitempty"`
	// +optional
	Name *FindName `json:"name,omitempty"`
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Default;Unicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";None;Base64;Base64URL;Auto
	DecodingStrategy string `json:"decodingStrategy,omitempty"`
}

// FindName selects secrets by name.
type FindName struct {
	// Regular expression in RE2 syntax.
	RegExp string `json:"regexp"`
}

// Rewrite changes keys; exactly one field is set.
type Rewrite struct {
	// +optional
	Regexp *RewriteRegexp `json:"regexp,omitempty"`
	// +optional
	Transform *RewriteTransform `json:"transform,omitempty"`
	// +optional
	Merge *RewriteMerge `json:"merge,omitempty"`
}

// RewriteRegexp replaces what matches Source by Target.
type RewriteRegexp struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// RewriteTransform yields each new key by a Go template over the old one.
type RewriteTransform struct {
	Template string `json:"template"`
}

// RewriteMerge merges keys that hold JSON objects.
//
// +kubebuilder:validation:XValidation:rule="!has(self.into) || size(self.into) == 0 || (has(self.strategy) && self.strategy == 'JSON')",message="merge.into has no effect with strategy Extract: remove it, or set strategy: JSON"
type RewriteMerge struct {
	// Key that the merged object goes to. Only for strategy JSON, which needs it.
	// +optional
	Into string `json:"into,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Extract;JSON
	Strategy string `json:"strategy,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Priority []string `json:"priority,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Strict;IgnoreNotFound
	PriorityPolicy string `json:"priorityPolicy,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Error;Ignore
	ConflictPolicy string `json:"conflictPolicy,omitempty"`
}

// ExternalSecretStatus is what the operator last saw and did. It never holds a value.
type ExternalSecretStatus struct {
	// Time of the last successful refresh; at most ten minutes behind it.
	// +optional
	RefreshTime *metav1.Time `json:"refreshTime,omitempty"`

	// Time at which the provider is read next.
	// +optional
	NextRefreshTime *metav1.Time `json:"nextRefreshTime,omitempty"`

	// Generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Value of the annotation direct-secrets.io/refresh-requested-at that was last served.
	// +optional
	ObservedRefreshRequest string `json:"observedRefreshRequest,omitempty"`

	// Hash of the labels and annotations at the last refresh.
	// +optional
	ObservedMetadataHash string `json:"observedMetadataHash,omitempty"`

	// The Secret, as the Service Binding specification calls it (servicebinding.io, Provisioned
	// Service).
	// +optional
	Binding *Binding `json:"binding,omitempty"`

	// What was read.
	// +optional
	// +listType=atomic
	Sources []SourceStatus `json:"sources,omitempty"`

	// What each module contributes: what it has generated, or read for an object that another one reconciles.
	// +optional
	// +listType=map
	// +listMapKey=module
	Parts []PartStatus `json:"parts,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Binding names the Secret for consumers of the Service Binding specification.
type Binding struct {
	Name string `json:"name"`
}

// SourceStatus names a remote secret or a generator whose values the Secret holds, and their version.
type SourceStatus struct {
	// RemoteSecret or Generator.
	// +optional
	Kind SourceKind `json:"kind,omitempty"`
	// Key of the remote secret, or Kind and name of the generator, separated by a slash.
	Key string `json:"key"`
	// +optional
	Version string `json:"version,omitempty"`
}

// SourceKind is the kind of a source.
// +kubebuilder:validation:Enum="";RemoteSecret;Generator
type SourceKind string

// The kinds of sources.
const (
	SourceRemoteSecret SourceKind = "RemoteSecret"
	SourceGenerator    SourceKind = "Generator"
)

// PartPurpose is what the Secret of a contribution stores.
// +kubebuilder:validation:Enum="";Read;Generated
type PartPurpose string

// The purposes of contributions.
const (
	// PartRead: what a module read for an object that another module reconciles.
	PartRead PartPurpose = "Read"
	// PartGenerated: what the generators of a module made for an object.
	PartGenerated PartPurpose = "Generated"
)

// PartStatus records the contribution of one operator for one purpose: the Secret that stores it, and why values
// are missing.
type PartStatus struct {
	// Identifies the entry. It is opaque: group, class and purpose tell whose entry it is.
	// +kubebuilder:validation:MaxLength=512
	Module string `json:"module"`
	// API group of the module that contributes.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Controller class of its operator.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class,omitempty"`
	// Read: values that were read for an object that another module reconciles. Generated: values of generators.
	// +optional
	Purpose PartPurpose `json:"purpose,omitempty"`
	// The Secret that stores the contribution.
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Reason that the Ready condition has for the message. Default: SecretSyncedError.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// Class of the error: NotFound, Denied, Throttled, Unavailable, Invalid, Template or Conflict.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ErrorClass string `json:"errorClass,omitempty"`
	// What failed, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types, after the kstatus conventions of sigs.k8s.io/cli-utils.
const (
	// ConditionReady is True while all is as the spec asks.
	ConditionReady = "Ready"
	// ConditionReconciling is True while something failed and is retried, or has yet to finish.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when only a change by a person can help.
	ConditionStalled = "Stalled"
)

// Reasons of the Ready condition of an ExternalSecret.
const (
	ReasonSecretSynced       = "SecretSynced"
	ReasonSecretSyncedError  = "SecretSyncedError"
	ReasonSecretDeleted      = "SecretDeleted"
	ReasonSecretMissing      = "SecretMissing"
	ReasonStoreNotReady      = "StoreNotReady"
	ReasonStoreNotFound      = "StoreNotFound"
	ReasonProviderNotRunning = "ProviderNotRunning"
	ReasonVersionSkew        = "VersionSkew"
	ReasonConflict           = "Conflict"
	ReasonForbidden          = "Forbidden"
	ReasonInvalidSpec        = "InvalidSpec"
	ReasonSuspended          = "Suspended"
)
