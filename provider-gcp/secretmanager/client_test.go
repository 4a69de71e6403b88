package secretmanager

import (
	"bytes"
	"context"
	"crypto/x509"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const access = "AccessSecretVersion"

// fails tells how err differs from one of a class whose message has a part.
func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s\nno error, want %s", reason, class)
	case provider.ClassOf(err) != class || !strings.Contains(err.Error(), part):
		t.Errorf("%s\nerror %s: %s\nwant %s: …%s…", reason, provider.ClassOf(err), err, class, part)
	}
}

func TestVersions(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("one"))
	srv.Put("db", []byte("two"), emulator.Alias("stable"))
	srv.Put("db", []byte("off"))
	srv.Put("db", []byte("gone"))
	srv.Put("db", []byte("five"))
	srv.SetState("db", 3, pb.SecretVersion_DISABLED)
	srv.SetState("db", 4, pb.SecretVersion_DESTROYED)
	srv.Put("off", []byte("x"))
	srv.SetState("off", 1, pb.SecretVersion_DISABLED)
	srv.Put("gone", []byte("x"))
	srv.SetState("gone", 1, pb.SecretVersion_DESTROYED)
	srv.Put("empty", nil, emulator.Empty())
	c := client(t, srv)
	cases := map[string]struct {
		reason       string
		key, version string
		want, number string
		class        provider.Class
		message      string
	}{
		"Current":       {"No version is the latest.", "db", "", "five", "5", "", ""},
		"Latest":        {"So is Google's name for it.", "db", "latest", "five", "5", "", ""},
		"Number":        {"Older ones are read by number.", "db", "1", "one", "1", "", ""},
		"Alias":         {"An alias leads to a number.", "db", "stable", "two", "2", "", ""},
		"Disabled":      {"A version that is switched off still exists, so nothing may be removed.", "db", "3", "", "", provider.Invalid, `secret "db" version "3": is disabled`},
		"Destroyed":     {"One that is destroyed is gone for good.", "db", "4", "", "", provider.NotFound, "is destroyed"},
		"NoNumber":      {"One that never was does not exist.", "db", "6", "", "", provider.NotFound, "does not exist"},
		"NoAlias":       {"Nor does an alias that was never given.", "db", "canary", "", "", provider.NotFound, "does not exist"},
		"AllDisabled":   {"The latest counts, also where it is disabled.", "off", "", "", "", provider.Invalid, "is disabled"},
		"AllDestroyed":  {"The latest counts, also where it is destroyed.", "gone", "", "", "", provider.NotFound, "is destroyed"},
		"NoVersion":     {"No current version is as good as no secret.", "empty", "", "", "", provider.NotFound, "does not exist"},
		"NoSecret":      {"A secret that never was does not exist.", "none", "", "", "", provider.NotFound, `secret "none": does not exist`},
		"Zero":          {"Numbers begin with 1.", "db", "0", "", "", provider.Invalid, "neither a number nor an alias"},
		"LeadingZero":   {"A number has one spelling.", "db", "01", "", "", provider.Invalid, "neither a number nor an alias"},
		"Path":          {"A version is no way to another secret.", "db", "1/../../x", "", "", provider.Invalid, "neither a number nor an alias"},
		"LongAlias":     {"Aliases are short.", "db", strings.Repeat("a", 64), "", "", provider.Invalid, "neither a number nor an alias"},
		"UnicodeDigits": {"Digits are ASCII.", "db", "１", "", "", provider.Invalid, "neither a number nor an alias"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := c.Get(soon(t), provider.Ref{Key: tc.key, Version: tc.version})
			if tc.class != "" {
				fails(t, tc.reason, err, tc.class, tc.message)
				return
			}
			if diff := cmp.Diff(provider.Value{Key: tc.key, Data: []byte(tc.want), Version: tc.number}, v); diff != "" || err != nil {
				t.Errorf("%s\nGet(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestStateChanges(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	c := client(t, srv)
	srv.SetState("db", 1, pb.SecretVersion_DISABLED)
	_, err := c.Get(soon(t), provider.Ref{Key: "db"})
	fails(t, "A version can be switched off.", err, provider.Invalid, "is disabled")
	srv.SetState("db", 1, pb.SecretVersion_ENABLED)
	if v, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil || string(v.Data) != "x" {
		t.Errorf("A version can be switched on again: %q, %v", v.Data, err)
	}
}

func TestHostileKeys(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	c := client(t, srv)
	cases := map[string]struct{ reason, key string }{
		"Empty":         {"No key is no secret.", ""},
		"Parent":        {"A key is no path.", "../db"},
		"Slash":         {"Ids have no slashes.", "shop/db"},
		"Version":       {"The version has a field of its own.", "db/versions/1"},
		"VersionSuffix": {"Nor is it a suffix.", "db:1"},
		"OtherProject":  {"Another project needs another store.", "projects/other/secrets/db"},
		"Number":        {"The number of a project might be another's.", "projects/" + emulator.DefaultProjectNumber + "/secrets/db"},
		"Location":      {"A location needs another store.", "projects/test-project/locations/europe-west3/secrets/db"},
		"NameVersion":   {"A full name ends with the secret.", "projects/test-project/secrets/db/versions/1"},
		"NameParent":    {"A full name is no path either.", "projects/test-project/secrets/../secrets/db"},
		"Case":          {"A full name has one spelling.", "Projects/test-project/secrets/db"},
		"Escaped":       {"Nothing is decoded.", "%2e%2e%2fdb"},
		"Query":         {"A key is no URL.", "db?alt=x"},
		"LookAlike":     {"Letters are ASCII.", "dЬ"},
		"FullWidth":     {"Letters are ASCII.", "ｄｂ"},
		"Newline":       {"A line end is no part of a key.", "db\n"},
		"Nul":           {"Nor is a zero byte.", "db\x00"},
		"NotUTF8":       {"Nor is half a character.", "db\xff"},
		"Long":          {"Ids are short.", strings.Repeat("a", 256)},
		"VeryLong":      {"Messages are, too.", strings.Repeat("é", 100_000)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Get(soon(t), provider.Ref{Key: tc.key})
			fails(t, tc.reason, err, provider.Invalid, "key ")
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s\nthe message has %d characters", tc.reason, len(err.Error()))
			}
		})
	}
	if n := srv.Calls(""); n != 0 {
		t.Errorf("%d calls, want none: %v", n, srv.CallCounts())
	}
}

func TestFullName(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	c := client(t, srv)
	const key = "projects/test-project/secrets/db"
	v, err := c.Get(soon(t), provider.Ref{Key: key})
	if diff := cmp.Diff(provider.Value{Key: key, Data: []byte("x"), Version: "1"}, v); diff != "" || err != nil {
		t.Errorf("The full name of an own secret is a key: %v: -want, +got:\n%s", err, diff)
	}
}

func TestRegional(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("global"))
	srv.Put("db", []byte("regional"), emulator.At("europe-west3"))
	srv.Put("far", []byte("x"), emulator.At("us-east1"))
	c := client(t, srv, func(s *testStore) { s.Spec.Location = "europe-west3" })
	v, err := c.Get(soon(t), provider.Ref{Key: "db"})
	if err != nil || string(v.Data) != "regional" {
		t.Errorf("A store with a location reads the secrets there: %q, %v", v.Data, err)
	}
	_, err = c.Get(soon(t), provider.Ref{Key: "far"})
	fails(t, "It does not read those of another.", err, provider.NotFound, "does not exist")
	if got := found(t, c, provider.Query{}); !cmp.Equal(got, []string{"db"}) {
		t.Errorf("It finds those of its own only: %v", got)
	}
	if err := c.Check(soon(t)); err != nil {
		t.Error(err)
	}
	if v, err = c.Get(soon(t), provider.Ref{Key: "projects/test-project/locations/europe-west3/secrets/db"}); err != nil || string(v.Data) != "regional" {
		t.Errorf("The full name has the location in it: %q, %v", v.Data, err)
	}
	_, err = c.Get(soon(t), provider.Ref{Key: "projects/test-project/secrets/db"})
	fails(t, "A global secret is another store's.", err, provider.Invalid, "is not a secret of")
}

func TestMetadata(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"), emulator.Labels(map[string]string{"team": "shop", "both": "label"}), emulator.Annotations(map[string]string{"owner": "a@b", "both": "annotation"}))
	srv.Put("plain", []byte("x"))
	c := client(t, srv)
	for key, want := range map[string]map[string]string{
		"db":    {"team": "shop", "owner": "a@b", "both": "label"},
		"plain": {},
	} {
		v, err := c.Get(soon(t), provider.Ref{Key: key, Metadata: true})
		if diff := cmp.Diff(want, v.Metadata); diff != "" || err != nil {
			t.Errorf("metadata of %s: %v: -want, +got:\n%s", key, err, diff)
		}
	}
	srv.Reset()
	if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{access: 1}, srv.CallCounts()); diff != "" {
		t.Errorf("Metadata that nobody asks for is not read: -want, +got:\n%s", diff)
	}
	defer srv.Inject(emulator.Fault{Method: "GetSecret", Code: codes.PermissionDenied, Message: "Permission 'secretmanager.secrets.get' denied for resource 'x'"})()
	_, err := c.Get(soon(t), provider.Ref{Key: "db", Metadata: true})
	fails(t, "Metadata that cannot be read is an error.", err, provider.Denied, `metadata of secret "db": access denied: the caller lacks secretmanager.secrets.get`)
}

func TestAnswers(t *testing.T) {
	project := func(reason string) emulator.Fault {
		return emulator.Fault{Code: codes.PermissionDenied, Message: "hunter2", Reason: reason}
	}
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
		after  time.Duration
	}{
		"BadChecksum":  {"A value that was damaged on its way is none.", emulator.Fault{Body: emulator.BodyBadChecksum}, provider.Unavailable, "checksum", 0},
		"NoPayload":    {"An answer without a value proves nothing.", emulator.Fault{Body: emulator.BodyNoPayload}, provider.Unavailable, "lacks the value", 0},
		"OtherName":    {"The value of another secret is not this one's.", emulator.Fault{Body: emulator.BodyOtherName}, provider.Unavailable, "not of this secret", 0},
		"Denied":       {"The permission is named.", emulator.Fault{Code: codes.PermissionDenied, Message: "Permission 'secretmanager.versions.access' denied for resource 'hunter2' (or it may not exist)."}, provider.Denied, "lacks secretmanager.versions.access", 0},
		"DeniedInfo":   {"It is, where Google says it apart.", emulator.Fault{Code: codes.PermissionDenied, Reason: "IAM_PERMISSION_DENIED", Metadata: map[string]string{"permission": "secretmanager.versions.access"}}, provider.Denied, "lacks secretmanager.versions.access", 0},
		"APIDisabled":  {"An API that is off is no missing secret.", project("SERVICE_DISABLED"), provider.Invalid, "spec.projectID: the Secret Manager API is not enabled", 0},
		"NoProject":    {"Nor is a project that does not exist.", project("CONSUMER_INVALID"), provider.Invalid, "spec.projectID: Google knows no such project", 0},
		"NoBilling":    {"Nor one that is not paid for.", project("BILLING_DISABLED"), provider.Invalid, "spec.projectID: billing", 0},
		"NoAPI":        {"The reason counts more than the code.", emulator.Fault{Code: codes.NotFound, Message: "x", Reason: "SERVICE_DISABLED"}, provider.Invalid, "spec.projectID", 0},
		"NotASecret":   {"Not found is not always a secret.", emulator.Fault{Code: codes.NotFound, Message: "Project [projects/1] not found."}, provider.Invalid, "spec.projectID, spec.location", 0},
		"NoLocation":   {"Nor is it always one in words.", emulator.Fault{Code: codes.NotFound, Message: "Location europe-west99 is not known."}, provider.Invalid, "spec.projectID, spec.location", 0},
		"Throttled":    {"Throttling says how long to wait.", emulator.Fault{Code: codes.ResourceExhausted, RetryAfter: 7 * time.Second}, provider.Throttled, "fewer calls", 7 * time.Second},
		"Precondition": {"A state that is not known proves nothing.", emulator.Fault{Code: codes.FailedPrecondition, Message: "The key is in DESTROYED mode"}, provider.Unavailable, "present state", 0},
		"Faked":        {"A reason cannot pass for a state.", emulator.Fault{Code: codes.FailedPrecondition, Reason: "DESTROYED"}, provider.Unavailable, "present state", 0},
		"Internal":     {"A failure of Google proves nothing.", emulator.Fault{Code: codes.Internal, Message: "hunter2"}, provider.Unavailable, "internal error", 0},
		"Unknown":      {"Nor does what nobody knows.", emulator.Fault{Code: codes.Unknown, Message: "hunter2 not found"}, provider.Unavailable, "the error Unknown", 0},
		"Unimpl":       {"Nor does the wrong service.", emulator.Fault{Code: codes.Unimplemented}, provider.Unavailable, "spec.endpoint", 0},
		"Invalid":      {"What Google rejects a person must mend.", emulator.Fault{Code: codes.InvalidArgument, Message: "hunter2"}, provider.Invalid, "not valid", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("hunter2"))
			c := client(t, srv)
			tc.fault.Method = access
			srv.Inject(tc.fault)
			_, err := c.Get(soon(t), provider.Ref{Key: "db"})
			fails(t, tc.reason, err, tc.class, tc.part)
			if got := provider.RetryAfter(err); got != tc.after {
				t.Errorf("%s\nretry after %s, want %s", tc.reason, got, tc.after)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s\nthe message shows what Google wrote: %s", tc.reason, err)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	cases := map[string]struct {
		reason  string
		retries int32
		fault   emulator.Fault
		calls   int
		class   provider.Class
	}{
		"Passes":    {"What passes is tried again.", 3, emulator.Fault{Code: codes.Unavailable, Times: 2}, 3, ""},
		"Throttled": {"So is throttling that does not say how long.", 3, emulator.Fault{Code: codes.ResourceExhausted, Times: 3}, 4, ""},
		"Stays":     {"Retries end.", 2, emulator.Fault{Code: codes.Internal}, 3, provider.Unavailable},
		"None":      {"No retry is one attempt.", 0, emulator.Fault{Code: codes.Unavailable, Times: 1}, 1, provider.Unavailable},
		"Told":      {"Where Google says how long, whoever called waits.", 3, emulator.Fault{Code: codes.ResourceExhausted, RetryAfter: time.Hour, Times: 1}, 1, provider.Throttled},
		"Denied":    {"A refusal stays one.", 3, emulator.Fault{Code: codes.PermissionDenied, Times: 1}, 1, provider.Denied},
		"Missing":   {"What does not exist will not appear.", 3, emulator.Fault{Code: codes.NotFound, Times: 1}, 1, provider.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("x"))
			c := client(t, srv, func(s *testStore) { s.Spec.RetrySettings.MaxRetries = &tc.retries })
			tc.fault.Method = access
			srv.Inject(tc.fault)
			_, err := c.Get(soon(t), provider.Ref{Key: "db"})
			if tc.class != "" {
				fails(t, tc.reason, err, tc.class, "")
			} else if err != nil {
				t.Errorf("%s\n%s", tc.reason, err)
			}
			if n := srv.Calls(access); n != tc.calls {
				t.Errorf("%s\n%d calls, want %d", tc.reason, n, tc.calls)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	hundred := int32(100)
	c := client(t, srv, func(s *testStore) {
		s.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &hundred, RetryInterval: "1h"}
	})
	if err := c.Check(soon(t)); err != nil {
		t.Fatal(err)
	}
	srv.Inject(emulator.Fault{Method: access, Code: codes.ResourceExhausted})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	_, err := c.Get(ctx, provider.Ref{Key: "db"})
	fails(t, "Whoever runs out of time learns why.", err, provider.Throttled, "fewer calls")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("A call ends with its context, but took %s", took)
	}
}

func TestOneLogin(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	c := client(t, srv)
	readAll := func() {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	remove := srv.Inject(emulator.Fault{Method: emulator.MethodToken, Latency: 50 * time.Millisecond})
	readAll()
	readAll()
	remove()
	if n := srv.Calls(emulator.MethodToken); n != 1 {
		t.Errorf("%d logins for 100 reads, want 1", n)
	}
	srv.RevokeTokens()
	readAll()
	if n := srv.Calls(emulator.MethodToken); n != 2 {
		t.Errorf("%d logins after the token died once, want 2", n)
	}
	srv.RevokeKeys(reader)
	srv.RevokeTokens()
	_, err := c.Get(soon(t), provider.Ref{Key: "db"})
	fails(t, "A key that was deleted is named.", err, provider.Denied, "spec.auth.secretRef.secretAccessKeySecretRef: Google does not accept the key")
}

const pool = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/prod"

// withWorkload logs in with a token for subject, which expires after a while.
func withWorkload(email string, life time.Duration) func(*testStore) {
	return func(s *testStore) {
		s.Spec.Auth = &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
			ServiceAccountRef: common.ServiceAccountSelector{Name: "app"}, Audience: pool, ServiceAccountEmail: email,
		}}
		s.token = func(audiences []string) (string, error) {
			return emulator.NewToken("https://kubernetes", "system:serviceaccount:shop:app", audiences[0], time.Now().Add(life)), nil
		}
	}
}

func TestWorkloadIdentity(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	srv.AddProvider(emulator.Provider{Audience: pool, Subjects: []string{"system:serviceaccount:shop:app"}})
	srv.AddProvider(emulator.Provider{Audience: "identitynamespace:p.svc.id.goog:https://container.googleapis.com/v1/c", TokenAudiences: []string{"p.svc.id.goog"}})
	srv.AddServiceAccount(reader, "system:serviceaccount:shop:app")
	cases := map[string]struct {
		reason string
		change []func(*testStore)
		caller string
		calls  map[string]int
	}{
		"Direct":      {"A ServiceAccount is an identity of its own.", []func(*testStore){withWorkload("", time.Hour)}, "system:serviceaccount:shop:app", map[string]int{emulator.MethodExchange: 1, access: 2}},
		"Impersonate": {"It may work as another.", []func(*testStore){withWorkload(reader, time.Hour)}, reader, map[string]int{emulator.MethodExchange: 1, emulator.MethodImpersonate: 1, access: 2}},
		"GKE": {"A cluster of Google has its pool's name as audience.", []func(*testStore){withWorkload("", time.Hour), func(s *testStore) {
			s.Spec.Auth.WorkloadIdentity.Audience = "identitynamespace:p.svc.id.goog:https://container.googleapis.com/v1/c"
		}}, "system:serviceaccount:shop:app", map[string]int{emulator.MethodExchange: 1, access: 2}},
		"Audiences": {"Audiences that are named win.", []func(*testStore){withWorkload("", time.Hour), func(s *testStore) {
			s.Spec.Auth.WorkloadIdentity.ServiceAccountRef.Audiences = []string{"https:" + pool}
		}}, "system:serviceaccount:shop:app", map[string]int{emulator.MethodExchange: 1, access: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			c := client(t, srv, tc.change...)
			for range 2 {
				if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
					t.Fatalf("%s\n%s", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.calls, srv.CallCounts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			log := srv.CallLog()
			if got := log[len(log)-1].Caller; got != tc.caller {
				t.Errorf("%s\nread as %s, want %s", tc.reason, got, tc.caller)
			}
		})
	}
}

func TestBadAuth(t *testing.T) {
	const (
		keyField = "spec.auth.secretRef.secretAccessKeySecretRef"
		workload = "spec.auth.workloadIdentity"
	)
	srv := start(t, emulator.WithTokenVerifier(func(token string) error {
		if strings.HasPrefix(token, "forged") {
			return os.ErrInvalid
		}
		return nil
	}))
	srv.Put("db", []byte("x"))
	srv.AddProvider(emulator.Provider{Audience: pool, Subjects: []string{"system:serviceaccount:shop:app"}})
	srv.AddServiceAccount(reader, "somebody-else")
	good := string(srv.Key(reader))
	key := func(old, with string) func(*testStore) {
		return func(s *testStore) { s.secrets["key.json"] = []byte(strings.ReplaceAll(good, old, with)) }
	}
	also := func(f func(*v1alpha1.WorkloadIdentity)) func(*testStore) {
		return func(s *testStore) { withWorkload("", time.Hour)(s); f(s.Spec.Auth.WorkloadIdentity) }
	}
	cases := map[string]struct {
		reason string
		change func(*testStore)
		class  provider.Class
		part   string
	}{
		"MissingKey":    {"A Secret without the key is named.", func(s *testStore) { s.secrets = nil }, provider.Invalid, `under key "key.json"`},
		"Garbage":       {"What is no JSON is no key.", func(s *testStore) { s.secrets["key.json"] = []byte("hunter2") }, provider.Invalid, keyField + ": is not the JSON"},
		"OtherType":     {"Files of other types may run commands or read files.", key("service_account", "external_account"), provider.Invalid, keyField + ": its type"},
		"NoEmail":       {"A key belongs to somebody.", key("client_email", "x"), provider.Invalid, keyField + ": it has no client_email"},
		"NotPEM":        {"The private key is PEM.", key("BEGIN PRIVATE", "BEGIN"), provider.Invalid, keyField + ": its private_key is not PEM"},
		"TokenURI":      {"A key does not say where to log in.", key(srv.URL(), "https://evil.example"), provider.Invalid, keyField + ": its token_uri"},
		"Universe":      {"Nor in which universe.", key(`domain":"googleapis.com`, `domain":"evil.example`), provider.Invalid, keyField + ": its universe_domain"},
		"UnknownUser":   {"A service account that is gone is named.", key("reader@", "nobody@"), provider.Denied, keyField + ": Google does not accept the key"},
		"OtherPool":     {"A pool that does not exist is named.", also(func(w *v1alpha1.WorkloadIdentity) { w.Audience += "x" }), provider.Denied, workload + ".audience: Google knows no such pool"},
		"BadAudience":   {"What is no pool is no audience.", also(func(w *v1alpha1.WorkloadIdentity) { w.Audience = "https://evil.example" }), provider.Invalid, workload + ".audience"},
		"WrongAudience": {"A token for somebody else is no token.", also(func(w *v1alpha1.WorkloadIdentity) { w.ServiceAccountRef.Audiences = []string{"vault"} }), provider.Denied, workload + ": Google does not accept the token"},
		"Expired":       {"Nor is one that has expired.", withWorkload("", -time.Hour), provider.Denied, workload + ": Google does not accept the token"},
		"Forged": {"Nor is one that nobody signed.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func([]string) (string, error) { return "forged", nil }
		}, provider.Denied, workload + ": Google does not accept the token"},
		"WrongSubject": {"A pool admits whom it wants.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func(a []string) (string, error) {
				return emulator.NewToken("i", "system:serviceaccount:evil:app", a[0], time.Now().Add(time.Hour)), nil
			}
		}, provider.Denied, workload + ".serviceAccountRef: the attribute condition"},
		"NoAccount": {"A ServiceAccount that is missing is what Kubernetes says.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func([]string) (string, error) {
				return "", provider.NewError(provider.Invalid, "auth: ServiceAccount shop/app does not exist")
			}
		}, provider.Invalid, "ServiceAccount shop/app does not exist"},
		"MayNot":    {"Not everybody may work as somebody.", withWorkload(reader, time.Hour), provider.Denied, workload + ".serviceAccountEmail: the ServiceAccount may not impersonate it"},
		"Nobody":    {"Nobody can work as nobody.", withWorkload("nobody@p.iam.gserviceaccount.com", time.Hour), provider.Denied, workload + ".serviceAccountEmail: Google knows no such service account"},
		"BadEmail":  {"An email is no path.", withWorkload("a@b/../x", time.Hour), provider.Invalid, workload + ".serviceAccountEmail"},
		"Both":      {"Which of two would win?", func(s *testStore) { a := s.Spec.Auth.SecretRef; withWorkload("", 1)(s); s.Spec.Auth.SecretRef = a }, provider.Invalid, "spec.auth: set either"},
		"None":      {"Nobody is no identity.", func(s *testStore) { s.Spec.Auth = nil }, provider.Invalid, "auth is not set"},
		"Project":   {"A project is no path.", func(s *testStore) { s.Spec.ProjectID = "a/b" }, provider.Invalid, "spec.projectID"},
		"NoProject": {"A project is needed.", func(s *testStore) { s.Spec.ProjectID = "" }, provider.Invalid, "spec.projectID"},
		"Unknown":   {"A project that does not exist is named.", func(s *testStore) { s.Spec.ProjectID = "nowhere" }, provider.Invalid, "spec.projectID: Google knows no such project"},
		"Location":  {"A location is no host.", func(s *testStore) { s.Spec.Location = "evil.example" }, provider.Invalid, "spec.location"},
		"Plain":     {"Tokens cross no network in the clear.", func(s *testStore) { s.Spec.Endpoint = "http://secretmanager.example" }, provider.Invalid, "spec.endpoint: plain http"},
		"Path":      {"gRPC has no paths.", func(s *testStore) { s.Spec.Endpoint += "/v1" }, provider.Invalid, "spec.endpoint: must have no path"},
		"Ambient":   {"The operator's identity is shown to Google only.", func(s *testStore) { s.Spec.Auth, s.ambient, s.Spec.Endpoint = nil, true, "https://evil.example" }, provider.Invalid, "spec.endpoint: must be an address of googleapis.com"},
		"Retries":   {"A bad interval is the spec's fault.", func(s *testStore) { s.Spec.RetrySettings.RetryInterval = "soon" }, provider.Invalid, "spec.retrySettings.retryInterval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := storeOf(srv)
			tc.change(s)
			c, err := s.connect(t.Context())
			if err == nil {
				err = c.Check(soon(t))
				if e := c.Close(); e != nil {
					t.Error(e)
				}
			}
			fails(t, tc.reason, err, tc.class, tc.part)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s\nthe message shows the credential: %s", tc.reason, err)
			}
		})
	}
}

func TestAmbient(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, srv.Key("operator@test-project.iam.gserviceaccount.com"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for name, tc := range map[string]struct {
		change func(*testStore)
		caller string
	}{
		"WithAuth": {func(*testStore) {}, reader},
		"Without":  {func(s *testStore) { s.Spec.Auth, s.ambient = nil, true }, "operator@test-project.iam.gserviceaccount.com"},
	} {
		c := client(t, srv, tc.change)
		if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
			t.Errorf("%s: %s", name, err)
			continue
		}
		log := srv.CallLog()
		if got := log[len(log)-1].Caller; got != tc.caller {
			t.Errorf("%s: read as %s, want %s", name, got, tc.caller)
		}
	}
	srv.RevokeKeys("operator@test-project.iam.gserviceaccount.com")
	c := client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	fails(t, "The operator's identity may be refused.", c.Check(soon(t)), provider.Denied, "Google does not accept the operator's own identity")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	fails(t, "It may be garbage.", c.Check(soon(t)), provider.Denied, "the operator has no Google identity")
}

func TestTLS(t *testing.T) {
	// The test server lends its certificate, which is good for 127.0.0.1.
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	srv := start(t, emulator.WithTLS(lender.TLS))
	srv.Put("db", []byte("x"))
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	c := client(t, srv, func(s *testStore) { s.RootCAs = roots })
	if v, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil || !bytes.Equal(v.Data, []byte("x")) {
		t.Errorf("A certificate that is trusted works: %q, %v", v.Data, err)
	}
	c = client(t, srv)
	_, err := c.Get(soon(t), provider.Ref{Key: "db"})
	fails(t, "One that is not proves nothing about a secret.", err, provider.Unavailable, "the certificate of Google's address is signed by an authority that is not trusted")
	c = client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	file := filepath.Join(t.TempDir(), "adc.json")
	if err := os.WriteFile(file, srv.Key("operator@p"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	fails(t, "Nor does a login there.", c.Check(soon(t)), provider.Unavailable, "the certificate of Google's address is signed by an authority that is not trusted")
}

func TestUnreachable(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	if err := c.Check(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	fails(t, "A server that is gone proves nothing.", c.Check(soon(t)), provider.Unavailable, "cannot reach Google: the connection is refused")
}

func TestCheck(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	for name, tc := range map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"MayNotList": {"Who may read but not list is logged in.", emulator.Fault{Code: codes.PermissionDenied, Message: "Permission 'secretmanager.secrets.list' denied"}, "", ""},
		"NoAPI":      {"An API that is off serves nobody.", emulator.Fault{Code: codes.PermissionDenied, Reason: "SERVICE_DISABLED"}, provider.Invalid, "spec.projectID"},
		"Scope":      {"A token for something else is a login that failed.", emulator.Fault{Code: codes.PermissionDenied, Reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}, provider.Denied, "not for Secret Manager"},
		"NotFound":   {"A project that does not exist is no empty one.", emulator.Fault{Code: codes.NotFound}, provider.Invalid, "spec.projectID"},
		"Internal":   {"A failure is no verdict.", emulator.Fault{Code: codes.Internal}, provider.Unavailable, "internal"},
		"BadToken":   {"A token that is refused is a login that failed.", emulator.Fault{Code: codes.Unauthenticated}, provider.Denied, "spec.auth"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.fault.Method = "ListSecrets"
			defer srv.Inject(tc.fault)()
			err := c.Check(soon(t))
			if tc.class != "" {
				fails(t, tc.reason, err, tc.class, tc.part)
			} else if err != nil {
				t.Errorf("%s\n%s", tc.reason, err)
			}
		})
	}
}
