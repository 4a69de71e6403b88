package v1alpha1

// Names that are part of the API although no schema holds them.
const (
	// RefreshRequestAnnotation asks for a refresh whenever its value changes. It works under every
	// refresh policy.
	RefreshRequestAnnotation = Group + "/refresh-requested-at"

	// MarkAnnotationPrefix starts the annotation by which an ExternalSecret marks a Secret that it
	// writes; a hash of the ExternalSecret's name follows.
	MarkAnnotationPrefix = Group + "/es."

	// ManagedLabelSuffix follows the group of a module in the label on each Secret that it writes,
	// for example aws.direct-secrets.io/managed.
	ManagedLabelSuffix = "/managed"

	// PartAnnotation holds what is known of the values in a part.
	PartAnnotation = Group + "/part"

	// PartLabel is on each part.
	PartLabel = Group + "/part"

	// FanOutAnnotation holds, on an object that was made in many namespaces, which of its labels and
	// annotations it was given, and the digest of the spec that it was given.
	FanOutAnnotation = Group + "/fan-out"

	// StoreLabelPrefix starts the label that a target carries for each store it was read from; a
	// hash of the store's group, kind, namespace and name follows.
	StoreLabelPrefix = "stores." + Group + "/"

	// RestartAnnotationPrefix starts the annotation on a pod template with the hash of a Secret's data; the name of the
	// Secret follows.
	RestartAnnotationPrefix = "restart." + Group + "/"

	// SaltAnnotation is the annotation of a Secret with the key of that hash.
	SaltAnnotation = Group + "/restart-salt"

	// RestartFieldManager is the field manager of both annotations.
	RestartFieldManager = "direct-secrets-restart"

	// FieldManagerPrefix starts the field manager of every write to a Secret; the name of the
	// ExternalSecret follows.
	FieldManagerPrefix = "direct-secrets:"
)
