package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ExternalSecret keeps one Secret in sync with values of a secret store.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=des,categories=direct-secrets
// +kubebuilder:selectablefield:JSONPath=`.spec.storeRef.kind`
// +kubebuilder:selectablefield:JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.storeRef.kind`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.refreshInterval`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Refreshed",type=date,JSONPath=`.status.refreshTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Restarts",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WorkloadsRestarted")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ExternalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExternalSecretSpec `json:"spec"`
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +kubebuilder:default={"observedGeneration":-1}
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

// ExternalSecretSpec describes what to read, and the Secret to write.
//
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) || (has(self.data) && size(self.data) > 0 || has(self.dataFrom) && size(self.dataFrom) > 0) && (!has(self.data) || self.data.all(e, has(e.sourceRef))) && (!has(self.dataFrom) || self.dataFrom.all(e, has(e.sourceRef)))",message="set storeRef, or sourceRef in each entry of data and dataFrom"
// +kubebuilder:validation:XValidation:rule="(has(self.target) && has(self.target.kind) && self.target.kind == 'ConfigMap') == (has(oldSelf.target) && has(oldSelf.target.kind) && oldSelf.target.kind == 'ConfigMap')",message="target.kind cannot be changed; create another ExternalSecret"
// +kubebuilder:validation:XValidation:rule="!(has(self.target) && has(self.target.kind) && self.target.kind == 'ConfigMap') || !has(self.dataFrom) || self.dataFrom.all(e, !has(e.sourceRef) || !has(e.sourceRef.generatorRef))",message="generated values are secret: write them to a Secret"
type ExternalSecretSpec struct {
	// Store that data and dataFrom read from, unless an entry sets its own.
	// +optional
	StoreRef *StoreRef `json:"storeRef,omitempty"`

	// If true, the operator does not read, write or delete anything for this object.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// When the provider is read. Periodic (the default): every refreshInterval, and when the spec, labels or
	// annotations change. OnChange: only when they change. CreatedOnce: once.
	// +optional
	RefreshPolicy RefreshPolicy `json:"refreshPolicy,omitempty"`

	// Time between two reads under the policy Periodic. Default 1h, at least 1s; 0 behaves as CreatedOnce.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) == duration('0s') || duration(self) >= duration('1s')",message="refreshInterval must be 0 or at least 1s"
	RefreshInterval Duration `json:"refreshInterval,omitempty"`

	// Times at which refreshInterval, an event or rotationInterval can cause a refresh. One that becomes due at another time is made
	// when the next window opens.
	// +optional
	SyncWindows *SyncWindows `json:"syncWindows,omitempty"`

	// The Secret to write.
	// +optional
	Target Target `json:"target,omitzero"`

	// Single keys, each from one remote secret. They take precedence over dataFrom.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Data []DataEntry `json:"data,omitempty"`

	// Sources of many keys. Later entries take precedence.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DataFrom []DataFromEntry `json:"dataFrom,omitempty"`
}

// RefreshPolicy defines when the provider is read.
// +kubebuilder:validation:Enum="";Periodic;OnChange;CreatedOnce
type RefreshPolicy string

// The refresh policies; unset means Periodic.
const (
	RefreshPeriodic    RefreshPolicy = "Periodic"
	RefreshOnChange    RefreshPolicy = "OnChange"
	RefreshCreatedOnce RefreshPolicy = "CreatedOnce"
)

// CreationPolicy defines whether the Secret is created, and whether it is owned.
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

// DeletionPolicy defines what happens when a remote secret does not exist any more.
// +kubebuilder:validation:Enum="";Retain;Delete;Merge
type DeletionPolicy string

// The deletion policies; unset means Retain.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
	DeletionMerge  DeletionPolicy = "Merge"
)

// CleanupPolicy defines whether an owned Secret is deleted with its ExternalSecret.
// +kubebuilder:validation:Enum="";OnDelete;Never
type CleanupPolicy string

// The cleanup policies; unset inherits the operator's --default-secret-cleanup-policy.
const (
	CleanupOnDelete CleanupPolicy = "OnDelete"
	CleanupNever    CleanupPolicy = "Never"
)

// TargetKind is the Kind that an ExternalSecret writes.
//
// +kubebuilder:validation:Enum="";Secret;ConfigMap
type TargetKind string

// The Kinds; unset means Secret.
const (
	TargetSecret    TargetKind = "Secret"
	TargetConfigMap TargetKind = "ConfigMap"
)

// Target describes the Secret that an ExternalSecret writes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.deletionPolicy) && self.deletionPolicy == 'Delete' && has(self.creationPolicy) && self.creationPolicy in ['Merge', 'CreateOrMerge', 'None'])",message="deletionPolicy Delete needs creationPolicy Owner or Orphan: a shared Secret is never deleted; use deletionPolicy Merge to remove only the keys of this object"
// +kubebuilder:validation:XValidation:rule="!(has(self.deletionPolicy) && self.deletionPolicy == 'Merge' && has(self.creationPolicy) && self.creationPolicy == 'None')",message="deletionPolicy Merge needs a creationPolicy that writes a Secret; None writes none"
// +kubebuilder:validation:XValidation:rule="!(has(self.cleanupPolicy) && size(self.cleanupPolicy) > 0 && has(self.creationPolicy) && size(self.creationPolicy) > 0 && self.creationPolicy != 'Owner')",message="cleanupPolicy needs creationPolicy Owner: only an owned Secret is cleaned up"
// +kubebuilder:validation:XValidation:rule="!(has(self.immutable) && self.immutable && has(self.creationPolicy) && self.creationPolicy in ['Merge', 'CreateOrMerge', 'None'])",message="immutable needs creationPolicy Owner or Orphan: a shared Secret must stay mutable"
// +kubebuilder:validation:XValidation:rule="!(has(self.kind) && self.kind == 'ConfigMap' && has(self.template) && has(self.template.type) && size(self.template.type) > 0)",message="a ConfigMap has no type: remove template.type"
// +kubebuilder:validation:XValidation:rule="!(has(self.restart) && has(self.creationPolicy) && self.creationPolicy == 'None')",message="restart needs a creationPolicy that writes a Secret; None writes none"
type Target struct {
	// Kind to write. Secret (the default), or ConfigMap for values that are not secret, if the operator allows it. Everything that
	// is said about the Secret then holds for the ConfigMap. It cannot be changed.
	// +optional
	Kind TargetKind `json:"kind,omitempty"`

	// Name of the Secret. Default: the name of the ExternalSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="must be the name of a Secret: lower case letters, digits, '.' and '-', with a letter or digit at both ends"
	Name string `json:"name,omitempty"`

	// Owner (the default): create the Secret and own it. Orphan: create it without owning it.
	// Merge: add keys to a Secret that exists. CreateOrMerge: create it if absent, else merge.
	// None: read only, write nothing.
	// +optional
	CreationPolicy CreationPolicy `json:"creationPolicy,omitempty"`

	// Effect on the Secret if remote secrets no longer exist. Retain (the default): keep the Secret as it is and report
	// an error. Delete: remove the keys, and delete the Secret with the last of them. Merge: remove the keys, keep the
	// Secret.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// OnDelete: the Secret is garbage-collected with the ExternalSecret. Never: the Secret is kept. Unset: the value of
	// the operator's --default-secret-cleanup-policy.
	// +optional
	CleanupPolicy CleanupPolicy `json:"cleanupPolicy,omitempty"`

	// Create the Secret immutable. It is never rewritten, and the provider is not read again.
	// +optional
	Immutable bool `json:"immutable,omitempty"`

	// Shape of the Secret.
	// +optional
	Template *Template `json:"template,omitempty"`

	// Workloads to restart when the data of the Secret changes, if the operator allows it.
	// +optional
	Restart *Restart `json:"restart,omitempty"`
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

	// Replace (the default): the Secret has only the keys of the template. Merge: it has the values that were read,
	// too.
	// +optional
	MergePolicy TemplateMergePolicy `json:"mergePolicy,omitempty"`

	// Go templates, by key of the Secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Data map[string]string `json:"data,omitempty"`

	// Templates in ConfigMaps, Secrets or literals.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	TemplateFrom []TemplateFrom `json:"templateFrom,omitempty"`
}

// TemplateMetadata holds labels and annotations for the Secret.
type TemplateMetadata struct {
	// +optional
	// +kubebuilder:validation:MaxProperties=500
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=500
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TemplateMergePolicy defines whether a template replaces the values that were read.
// +kubebuilder:validation:Enum="";Replace;Merge
type TemplateMergePolicy string

// TemplateFrom takes templates from a ConfigMap, a Secret, or a literal; exactly one must be set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.configMap) ? 1 : 0) + (has(self.secret) ? 1 : 0) + (has(self.literal) ? 1 : 0) == 1",message="set exactly one of configMap, secret and literal"
type TemplateFrom struct {
	// +optional
	ConfigMap *TemplateSource `json:"configMap,omitempty"`
	// +optional
	Secret *TemplateSource `json:"secret,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Literal *string `json:"literal,omitempty"`
	// Part of the Secret that the result is for. Default: Data.
	// +optional
	// +kubebuilder:validation:Enum="";Data;Labels;Annotations
	Target string `json:"target,omitempty"`
	// How each value of the result is decoded, for example to write bytes. Default: None.
	// +optional
	// +kubebuilder:validation:Enum="";None;Base64;Base64URL;Auto
	ValuesDecodingStrategy string `json:"valuesDecodingStrategy,omitempty"`
}

// TemplateSource names keys of a ConfigMap or Secret in the namespace of the ExternalSecret.
type TemplateSource struct {
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name"`
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Items []TemplateSourceItem `json:"items"`
}

// TemplateSourceItem names one key that holds a template.
type TemplateSourceItem struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// Values (the default): the template returns one value. KeysAndValues: it returns a YAML map.
	// +optional
	// +kubebuilder:validation:Enum="";Values;KeysAndValues
	TemplateAs string `json:"templateAs,omitempty"`
}

// DataEntry fills one key of the Secret.
type DataEntry struct {
	// Key in the Secret: letters, digits, ".", "-" and "_".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]*$') && !self.startsWith('..') && self != '.'",message="secretKey must have letters, digits, '.', '-' and '_' only, must not be '.' and must not begin with '..'"
	SecretKey string `json:"secretKey"`

	// Skip this key when the remote secret or its property does not exist.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// The remote secret, or a property of it. conversionStrategy must not be Unicode, because secretKey is used
	// unchanged.
	// +kubebuilder:validation:XValidation:rule="!has(self.conversionStrategy) || self.conversionStrategy != 'Unicode'",message="conversionStrategy Unicode has no effect in data, because secretKey is used unchanged: remove it, or use dataFrom"
	RemoteRef RemoteRef `json:"remoteRef"`

	// Store to read from, instead of spec.storeRef.
	// +optional
	SourceRef *DataSourceRef `json:"sourceRef,omitempty"`
}

// DataSourceRef names the store of one entry.
type DataSourceRef struct {
	StoreRef StoreRef `json:"storeRef"`
}

// RemoteRef names a remote secret and how its value is read.
type RemoteRef struct {
	// Key of the remote secret, in the format of the provider.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Key string `json:"key"`

	// Path into a secret that holds JSON, in gjson syntax (for example db.password or hosts.0).
	// Unset: the whole secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Property string `json:"property,omitempty"`

	// Version, in the format of the provider. Unset: the current one.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Version string `json:"version,omitempty"`

	// Fetch: read the metadata of the secret (for example tags) instead of its value.
	// +optional
	// +kubebuilder:validation:Enum="";None;Fetch
	MetadataPolicy string `json:"metadataPolicy,omitempty"`

	// How the value is decoded. Default: None.
	// +optional
	// +kubebuilder:validation:Enum="";None;Base64;Base64URL;Auto
	DecodingStrategy string `json:"decodingStrategy,omitempty"`

	// How characters that are not valid in a Secret key are converted. Default: Default (to "_").
	// +optional
	// +kubebuilder:validation:Enum="";Default;Unicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`

	// Fail: a decoded value with a null byte is an error, for clients that end a value there. Default: Ignore.
	// +optional
	// +kubebuilder:validation:Enum="";Ignore;Fail
	NullBytePolicy string `json:"nullBytePolicy,omitempty"`
}

// DataFromEntry is a source of many keys: extract, find, or a generator.
//
// +kubebuilder:validation:XValidation:rule="(has(self.extract) ? 1 : 0) + (has(self.find) ? 1 : 0) + (has(self.sourceRef) && has(self.sourceRef.generatorRef) ? 1 : 0) == 1",message="set exactly one of extract, find and sourceRef.generatorRef"
// +kubebuilder:validation:XValidation:rule="!(has(self.optional) && self.optional && has(self.sourceRef) && has(self.sourceRef.generatorRef))",message="optional has no effect with a generator, which always returns values: remove it"
type DataFromEntry struct {
	// All keys of one remote secret that holds a JSON object.
	// +optional
	Extract *RemoteRef `json:"extract,omitempty"`

	// All secrets that match.
	// +optional
	Find *Find `json:"find,omitempty"`

	// Changes of the keys, applied in this order.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Rewrite []Rewrite `json:"rewrite,omitempty"`

	// Ignore a remote secret or property that does not exist, and a find without a match.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// Store to read from, instead of spec.storeRef, or a generator.
	// +optional
	SourceRef *SourceRef `json:"sourceRef,omitempty"`
}

// SourceRef names a store or a generator; exactly one must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) != has(self.generatorRef)",message="set either storeRef or generatorRef"
type SourceRef struct {
	// +optional
	StoreRef *StoreRef `json:"storeRef,omitempty"`
	// +optional
	GeneratorRef *StoreRef `json:"generatorRef,omitempty"`
}

// Find selects secrets by path, name and tags. All fields that are set must match.
//
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.name) || has(self.tags)",message="set path, name or tags"
type Find struct {
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Path string `json:"path,omitempty"`
	// +optional
	Name *FindName `json:"name,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Tags map[string]string `json:"tags,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Default;Unicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";None;Base64;Base64URL;Auto
	DecodingStrategy string `json:"decodingStrategy,omitempty"`
	// Fail: a decoded value with a null byte is an error. Default: Ignore.
	// +optional
	// +kubebuilder:validation:Enum="";Ignore;Fail
	NullBytePolicy string `json:"nullBytePolicy,omitempty"`
}

// FindName selects secrets by name.
type FindName struct {
	// Regular expression in RE2 syntax.
	// +kubebuilder:validation:MaxLength=512
	RegExp string `json:"regexp"`
}

// Rewrite changes keys; exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.regexp) ? 1 : 0) + (has(self.transform) ? 1 : 0) + (has(self.merge) ? 1 : 0) == 1",message="set exactly one of regexp, transform and merge"
type Rewrite struct {
	// +optional
	Regexp *RewriteRegexp `json:"regexp,omitempty"`
	// +optional
	Transform *RewriteTransform `json:"transform,omitempty"`
	// +optional
	Merge *RewriteMerge `json:"merge,omitempty"`
}

// RewriteRegexp replaces the matches of source by target.
type RewriteRegexp struct {
	// +kubebuilder:validation:MaxLength=512
	Source string `json:"source"`
	// +kubebuilder:validation:MaxLength=512
	Target string `json:"target"`
}

// RewriteTransform computes each new key with a Go template from the old one.
type RewriteTransform struct {
	// +kubebuilder:validation:MaxLength=65536
	Template string `json:"template"`
}

// RewriteMerge merges keys that hold JSON objects.
//
// +kubebuilder:validation:XValidation:rule="!has(self.into) || size(self.into) == 0 || (has(self.strategy) && self.strategy == 'JSON')",message="merge.into has no effect with strategy Extract: remove it, or set strategy: JSON"
type RewriteMerge struct {
	// Key of the merged object. Required for strategy JSON, and only valid for it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Into string `json:"into,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Extract;JSON
	Strategy string `json:"strategy,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	Priority []string `json:"priority,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Strict;IgnoreNotFound
	PriorityPolicy string `json:"priorityPolicy,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";Error;Ignore
	ConflictPolicy string `json:"conflictPolicy,omitempty"`
}

// ExternalSecretStatus is the observed state of an ExternalSecret. It never contains a value.
type ExternalSecretStatus struct {
	// Time of the last successful refresh. It can be up to ten minutes old.
	// +optional
	RefreshTime *metav1.Time `json:"refreshTime,omitempty"`

	// Time of the next read of the provider.
	// +optional
	NextRefreshTime *metav1.Time `json:"nextRefreshTime,omitempty"`

	// Time at which the next of spec.syncWindows opens, while a refresh waits for it.
	// +optional
	NextWindowTime *metav1.Time `json:"nextWindowTime,omitempty"`

	// Generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Value of the annotation direct-secrets.io/refresh-requested-at that was last served.
	// +optional
	ObservedRefreshRequest string `json:"observedRefreshRequest,omitempty"`

	// Value of that annotation which was last answered, also with an error. The Ready condition has the answer.
	// +optional
	AttemptedRefreshRequest string `json:"attemptedRefreshRequest,omitempty"`

	// Hash of the labels and annotations at the last refresh.
	// +optional
	ObservedMetadataHash string `json:"observedMetadataHash,omitempty"`

	// The Secret, for consumers of the Service Binding specification (servicebinding.io, Provisioned Service).
	// +optional
	Binding *Binding `json:"binding,omitempty"`

	// Remote secrets and generators whose values are in the Secret.
	// +optional
	// +listType=atomic
	Sources []SourceStatus `json:"sources,omitempty"`

	// Kind and name of the event source that reported the present versions. Empty if polling or a request found them.
	// +optional
	EventSource string `json:"eventSource,omitempty"`

	// Names of what another creationPolicy would change in the target. Only with creationPolicy None.
	// +optional
	Difference *Difference `json:"difference,omitempty"`

	// Restarts of workloads. Only with spec.target.restart.
	// +optional
	Restart *RestartStatus `json:"restart,omitempty"`

	// Contributions of modules: generated values, and values read for an object that another module reconciles.
	// +optional
	// +listType=map
	// +listMapKey=module
	Parts []PartStatus `json:"parts,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Difference lists what differs between a Secret and what an ExternalSecret yields. It holds no value.
type Difference struct {
	// True if the Secret exists. If not, everything is added.
	Exists bool `json:"exists"`

	// The type that the ExternalSecret asks for, if the Secret has another one.
	// +optional
	Type string `json:"type,omitempty"`

	// Keys of the data.
	// +optional
	Data NameDifference `json:"data,omitzero"`

	// +optional
	Labels NameDifference `json:"labels,omitzero"`

	// +optional
	Annotations NameDifference `json:"annotations,omitzero"`
}

// NameDifference lists names, at most 100 each.
type NameDifference struct {
	// Names that only the ExternalSecret yields.
	// +optional
	// +listType=atomic
	Added []string `json:"added,omitempty"`

	// Names whose values differ.
	// +optional
	// +listType=atomic
	Changed []string `json:"changed,omitempty"`

	// Names that only the Secret has. A creationPolicy of Owner keeps those that others wrote.
	// +optional
	// +listType=atomic
	Removed []string `json:"removed,omitempty"`

	// True if a list has more than 100 names and is cut off.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
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

// PartPurpose is the purpose of the Secret of a contribution.
// +kubebuilder:validation:Enum="";Read;Generated
type PartPurpose string

// The purposes of contributions.
const (
	// PartRead: what a module read for an object that another module reconciles.
	PartRead PartPurpose = "Read"
	// PartGenerated: what the generators of a module made for an object.
	PartGenerated PartPurpose = "Generated"
)

// PartStatus is the contribution of one operator for one purpose: the Secret that stores it, and why values are
// missing.
type PartStatus struct {
	// Identifies the entry. Do not parse it: use group, class and purpose.
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
	// Name of the Secret that stores the contribution.
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
	// Cause of the failure, and the next step.
	// +optional
	Message string `json:"message,omitempty"`
	// Value of the annotation direct-secrets.io/refresh-requested-at that the message answers.
	// +optional
	AttemptedRefreshRequest string `json:"attemptedRefreshRequest,omitempty"`
	// Time at which the next of spec.syncWindows opens, while a read or a rotation waits for it.
	// +optional
	NextWindowTime *metav1.Time `json:"nextWindowTime,omitempty"`
}

// Condition types, after the kstatus conventions of sigs.k8s.io/cli-utils.
const (
	// ConditionReady is True while the object is in sync with its spec.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator retries a failure, or has not finished.
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
	ReasonDryRun             = "DryRun"
	// ReasonNoRemoteChanges says that the operator runs with --no-remote-changes, which holds this object back.
	ReasonNoRemoteChanges = "NoRemoteChanges"
)
