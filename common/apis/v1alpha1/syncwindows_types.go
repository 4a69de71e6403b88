package v1alpha1

// SyncWindows limit when an object is refreshed because time has passed or an event has arrived. Everything else is done at any
// time: the first read, a requested refresh, a changed spec, a retry, and whatever would expire. If windows of both kinds are
// open, deny takes precedence. Without a window of kind allow, all times that no window denies are allowed.
type SyncWindows struct {
	// Kind of the windows that set none. allow: refresh only while a window is open. deny: do not refresh while a window is open.
	// +kubebuilder:validation:MinLength=1
	Kind SyncWindowKind `json:"kind"`

	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Windows []SyncWindow `json:"windows"`
}

// SyncWindow is open for a duration after each time of a schedule.
type SyncWindow struct {
	// Kind of this window. Default: the kind of all windows.
	// +optional
	Kind SyncWindowKind `json:"kind,omitempty"`

	// When the window opens: a cron expression with five fields (minute, hour, day of the month, month, day of the week), or @hourly,
	// @daily, @weekly, @monthly or @yearly.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="schedule cannot have a time zone: set timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every')",message="@every has no fixed times: write a cron expression such as '0 */6 * * *'"
	Schedule string `json:"schedule"`

	// How long the window stays open, at least 1m.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) >= duration('1m')",message="duration must be at least 1m"
	Duration Duration `json:"duration"`

	// Time zone of the schedule, such as Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*)?$`
	TimeZone string `json:"timeZone,omitempty"`
}

// SyncWindowKind is the effect of a window.
// +kubebuilder:validation:Enum="";allow;deny
type SyncWindowKind string

// The kinds of windows. They are written as in External Secrets Operator.
const (
	SyncAllow SyncWindowKind = "allow"
	SyncDeny  SyncWindowKind = "deny"
)
