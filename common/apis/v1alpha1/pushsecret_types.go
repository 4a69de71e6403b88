package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PushSecret writes values of a Secret to secret stores.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dps,categories=direct-secrets
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.selector.secret.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.storeRefs[0].kind`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.storeRefs[0].name`
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.refreshInterval`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Refreshed",type=date,JSONPath=`.status.stores[0].refreshTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type PushSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PushSecretSpec `json:"spec"`
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +kubebuilder:default={"observedGeneration":-1}
	Status PushSecretStatus `json:"status,omitempty"`
}

// PushSecretList is a list of PushSecrets.
//
// +kubebuilder:object:root=true
type PushSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PushSecret `json:"items"`
}

// PushSecretSpec describes what to write, and the stores.
type PushSecretSpec struct {
	// Stores to write to. Each is written separately: a failing store does not stop the others.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	StoreRefs []PushStoreRef `json:"storeRefs"`

	// If true, the operator does not read, write or delete anything for this object.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// If true, the operator reads the Secret and the stores, and reports in status.stores what a push would do. It
	// writes and deletes nothing in a store, and generates no values.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Interval at which the stores are compared with the Secret; a change of the Secret is pushed at once. Default 1h,
	// at least 1s; 0: never.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) == duration('0s') || duration(self) >= duration('1s')",message="refreshInterval must be 0 or at least 1s"
	RefreshInterval Duration `json:"refreshInterval,omitempty"`

	// Times at which refreshInterval can cause a comparison, and rotationInterval new values. One that becomes due at another time is
	// made when the next window opens. A change of the Secret is pushed at any time.
	// +optional
	SyncWindows *SyncWindows `json:"syncWindows,omitempty"`

	// Replace (the default): overwrite values that differ. IfNotExists: write only values that do not exist.
	// +optional
	UpdatePolicy PushUpdatePolicy `json:"updatePolicy,omitempty"`

	// None (the default): never delete anything. Delete: delete a remote secret that this object created when its entry
	// is removed from the spec, or when this object is deleted.
	// +optional
	DeletionPolicy PushDeletionPolicy `json:"deletionPolicy,omitempty"`

	// Adopt (the default): write remote secrets that exist, too. Refuse: write only those that this object created. Own:
	// as Adopt, and treat those without a mark as created by this object, so that deletionPolicy Delete deletes them.
	// +optional
	AdoptionPolicy PushAdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// Source of the values.
	Selector PushSelector `json:"selector"`

	// Single values, each for one remote secret or a property of it.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	Data []PushData `json:"data,omitempty"`

	// Many values, selected by their keys.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	DataTo []PushDataTo `json:"dataTo,omitempty"`

	// Shapes the values before they are pushed. Remote secrets do not have the metadata and type of a Secret, so
	// template.metadata and template.type must be unset, and templateFrom must return data only.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || (!has(self.metadata.labels) || size(self.metadata.labels) == 0) && (!has(self.metadata.annotations) || size(self.metadata.annotations) == 0)",message="template.metadata has no effect on remote secrets: remove it, and use metadata of data or dataTo for tags"
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || size(self.type) == 0",message="template.type has no effect on remote secrets: remove it"
	// +kubebuilder:validation:XValidation:rule="!has(self.templateFrom) || self.templateFrom.all(f, !has(f.target) || f.target in ['', 'Data'])",message="template.templateFrom.target must be Data, because labels and annotations have no effect on remote secrets: remove the entries for Labels and Annotations"
	Template *Template `json:"template,omitempty"`
}

// PushStoreRef names a store, or selects all stores of a Kind by labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.labelSelector)",message="set either name or labelSelector"
type PushStoreRef struct {
	// Only the group is used; the version is ignored. Unset: any Kind whose group ends in direct-secrets.io.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:Pattern=`^[-./a-z0-9]*$`
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the store, for example AWSSecretsManager.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// Name of the store. A namespaced Kind is looked up in the namespace of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// Labels of the stores.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PushUpdatePolicy defines what happens to a remote value that exists.
// +kubebuilder:validation:Enum="";Replace;IfNotExists
type PushUpdatePolicy string

// The update policies; unset means Replace.
const (
	UpdateReplace     PushUpdatePolicy = "Replace"
	UpdateIfNotExists PushUpdatePolicy = "IfNotExists"
)

// PushDeletionPolicy defines what happens to remote secrets that this object created when they are removed from the
// spec.
// +kubebuilder:validation:Enum="";None;Delete
type PushDeletionPolicy string

// The deletion policies of a PushSecret; unset means None.
const (
	PushDeletionNone   PushDeletionPolicy = "None"
	PushDeletionDelete PushDeletionPolicy = "Delete"
)

// PushAdoptionPolicy defines what happens to remote secrets that this object did not create.
// +kubebuilder:validation:Enum="";Adopt;Refuse;Own
type PushAdoptionPolicy string

// The adoption policies; unset means Adopt.
const (
	AdoptionAdopt  PushAdoptionPolicy = "Adopt"
	AdoptionRefuse PushAdoptionPolicy = "Refuse"
	AdoptionOwn    PushAdoptionPolicy = "Own"
)

// PushSelector is the source of the values; exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secret) != has(self.generatorRef)",message="set either secret or generatorRef"
type PushSelector struct {
	// +optional
	Secret *PushSecretSelector `json:"secret,omitempty"`
	// +optional
	GeneratorRef *StoreRef `json:"generatorRef,omitempty"`
}

// PushSecretSelector selects one Secret in the same namespace by name, or many by labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="set either name or selector"
type PushSecretSelector struct {
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// Labels of the Secrets. Each is pushed separately; use ${name} in remoteKey to give each its own remote secret.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// PushData pushes one value.
type PushData struct {
	Match PushMatch `json:"match"`

	// Settings of the remote secret, in the provider's terms; see the page of its Kind.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Metadata *runtime.RawExtension `json:"metadata,omitempty"`

	// ReverseUnicode: _Uxxxx_ in keys of the Secret stands for the character that it encodes.
	// +optional
	// +kubebuilder:validation:Enum="";None;ReverseUnicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
}

// PushMatch maps a key of the Secret to a remote secret.
type PushMatch struct {
	// Key of the Secret. Unset: all keys, as a JSON object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]*$`
	SecretKey string `json:"secretKey,omitempty"`

	RemoteRef PushRemoteRef `json:"remoteRef"`
}

// PushRemoteRef names a remote secret, or a property of it.
type PushRemoteRef struct {
	// Key of the remote secret, in the format of the provider. ${namespace} and ${name} are replaced by those of the
	// Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	RemoteKey string `json:"remoteKey"`

	// Path of the value inside a remote secret that holds JSON, for example db.password. Unset: the value
	// is the whole secret.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Property string `json:"property,omitempty"`
}

// PushDataTo pushes many keys of the Secret.
type PushDataTo struct {
	// The store among storeRefs to which this entry applies, by Kind and name. Unset: all stores.
	// +optional
	StoreRef *StoreRef `json:"storeRef,omitempty"`

	// Keys of the Secret. Unset: all keys.
	// +optional
	Match *PushKeyMatch `json:"match,omitempty"`

	// Changes of the keys, applied in this order. The result is the remote key or, with remoteKey, the property.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Rewrite []Rewrite `json:"rewrite,omitempty"`

	// One remote secret for all keys, each as a property. Unset: each key is a remote secret. ${namespace} and ${name}
	// are replaced by those of the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RemoteKey string `json:"remoteKey,omitempty"`

	// Settings of the remote secrets, in the provider's terms; see the page of its Kind.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Metadata *runtime.RawExtension `json:"metadata,omitempty"`

	// ReverseUnicode: _Uxxxx_ in keys of the Secret stands for the character that it encodes.
	// +optional
	// +kubebuilder:validation:Enum="";None;ReverseUnicode
	ConversionStrategy string `json:"conversionStrategy,omitempty"`
}

// PushKeyMatch selects keys of a Secret.
type PushKeyMatch struct {
	// Regular expression in RE2 syntax that matches any part of the key.
	// +kubebuilder:validation:MaxLength=512
	RegExp string `json:"regexp"`
}

// PushSecretStatus is the observed state of a PushSecret. It never contains a value.
type PushSecretStatus struct {
	// Generation of the spec that the Ready condition describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Value of the annotation direct-secrets.io/refresh-requested-at that all stores have answered last, also with an error. The Ready
	// condition has the answer.
	// +optional
	AttemptedRefreshRequest string `json:"attemptedRefreshRequest,omitempty"`

	// State of each store. The module that serves a store writes its entry.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	Stores []PushStoreStatus `json:"stores,omitempty"`

	// Contributions of modules: generated values.
	// +optional
	// +listType=map
	// +listMapKey=module
	Parts []PartStatus `json:"parts,omitempty"`

	// Ready summarizes all stores; the module of the first storeRef writes it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PushStoreStatus is the state of one store.
type PushStoreStatus struct {
	// Group and version of the store.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`

	// Generation of the spec that this entry describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Value of the annotation direct-secrets.io/refresh-requested-at that was last served.
	// +optional
	ObservedRefreshRequest string `json:"observedRefreshRequest,omitempty"`

	// Value of that annotation which was last answered, also with an error.
	// +optional
	AttemptedRefreshRequest string `json:"attemptedRefreshRequest,omitempty"`

	// Hash of the Secrets that were pushed last, and their versions.
	// +optional
	ObservedSource string `json:"observedSource,omitempty"`

	// Version of the generated values that were pushed last.
	// +optional
	ObservedPart string `json:"observedPart,omitempty"`

	// Time of the last success. It can be up to ten minutes old.
	// +optional
	RefreshTime *metav1.Time `json:"refreshTime,omitempty"`

	// Time of the next comparison with the store.
	// +optional
	NextRefreshTime *metav1.Time `json:"nextRefreshTime,omitempty"`

	// Time at which the next of spec.syncWindows opens, while a comparison waits for it.
	// +optional
	NextWindowTime *metav1.Time `json:"nextWindowTime,omitempty"`

	// Hash of the place where the store keeps its secrets, such as account and region. Stores with an equal place lead to the
	// same remote secrets.
	// +optional
	Place string `json:"place,omitempty"`

	// Remote secrets and properties that were pushed.
	// +optional
	// +listType=atomic
	Entries []PushEntryStatus `json:"entries,omitempty"`

	// Remote secrets and properties that a push would change in this store. Only with spec.dryRun.
	// +optional
	Difference *PushDifference `json:"difference,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PushDifference lists what a push would do in one store. It holds no value.
type PushDifference struct {
	// Remote secrets and properties, at most 100. Those that are in sync are left out.
	// +optional
	// +listType=atomic
	Entries []PushDifferenceEntry `json:"entries,omitempty"`

	// True if there are more than 100 entries and the list is cut off.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// PushDifferenceEntry is what a push would do with one remote secret, or a property of it.
type PushDifferenceEntry struct {
	RemoteKey string `json:"remoteKey"`
	// Unset: the whole remote secret.
	// +optional
	Property string `json:"property,omitempty"`
	// Create, Update, UpdateMetadata, Delete, Own, Keep or Fail.
	Action PushAction `json:"action"`
}

// PushAction is what a push would do with a remote secret, or a property of it.
type PushAction string

// These are the actions.
const (
	PushCreate PushAction = "Create"
	PushUpdate PushAction = "Update"
	// PushUpdateMetadata changes the metadata of a remote secret, and not its value.
	PushUpdateMetadata PushAction = "UpdateMetadata"
	PushDelete         PushAction = "Delete"
	// PushOwn marks a remote secret that exists as created by this object.
	PushOwn PushAction = "Own"
	// PushKeep leaves unchanged what updatePolicy IfNotExists protects, and what this object created but another
	// writer has changed or another PushSecret pushes.
	PushKeep PushAction = "Keep"
	// PushFail is a value that would not be written. The condition Synced has the error.
	PushFail PushAction = "Fail"
)

// PushEntryStatus is the state of one remote secret, or a property of it.
type PushEntryStatus struct {
	RemoteKey string `json:"remoteKey"`
	// +optional
	Property string `json:"property,omitempty"`
	// Name of the Secret that the value is from.
	// +optional
	Source string `json:"source,omitempty"`
	// Version of the remote secret when it was last in sync.
	// +optional
	Version string `json:"version,omitempty"`
	// Distinguishes the remote secret from another one with the same name.
	// +optional
	ID string `json:"id,omitempty"`
	// True if this object created it. Only then does this object ever delete it.
	// +optional
	Created bool `json:"created,omitempty"`
	// UID of the object that owns the remote secret, by its mark; unset if that is this object, or none. That object can hand
	// the secret over to this one.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Time from which it is removed, once the spec no longer names it.
	// +optional
	RemoveAfter *metav1.Time `json:"removeAfter,omitempty"`
}

// ConditionSynced is the condition of one store of a PushSecret.
const ConditionSynced = "Synced"

// ReasonSecretAlreadyExists says that updatePolicy IfNotExists left a remote value alone. It counts as
// ready.
const ReasonSecretAlreadyExists = "SecretAlreadyExists"
