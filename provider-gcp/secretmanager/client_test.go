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
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const access = "AccessSecretVersion"

// fails reports an error with another class, or whose message lacks part. Without a class there must be no error.
func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	switch {
	case class == "" && err == nil:
	case class == "" || err == nil:
		t.Errorf("%s\nerror %v, want class %q", reason, err, class)
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
		"Current":       {"Without a version the latest is read.", "db", "", "five", "5", "", ""},
		"Latest":        {"The version latest is accepted, too.", "db", "latest", "five", "5", "", ""},
		"Number":        {"A version can be a number.", "db", "1", "one", "1", "", ""},
		"Alias":         {"A version can be an alias. The result has its number.", "db", "stable", "two", "2", "", ""},
		"Disabled":      {"A disabled version is not NotFound, because it still exists.", "db", "3", "", "", provider.Invalid, `secret "db" version "3": is disabled`},
		"Destroyed":     {"A destroyed version is NotFound.", "db", "4", "", "", provider.NotFound, "is destroyed"},
		"NoNumber":      {"An unknown version number is NotFound.", "db", "6", "", "", provider.NotFound, "does not exist"},
		"NoAlias":       {"An unknown alias is NotFound.", "db", "canary", "", "", provider.NotFound, "does not exist"},
		"AllDisabled":   {"A disabled latest version is not replaced by an older one.", "off", "", "", "", provider.Invalid, "is disabled"},
		"AllDestroyed":  {"A destroyed latest version is not replaced by an older one.", "gone", "", "", "", provider.NotFound, "is destroyed"},
		"NoVersion":     {"A secret without a version is NotFound.", "empty", "", "", "", provider.NotFound, "does not exist"},
		"NoSecret":      {"An unknown secret is NotFound.", "none", "", "", "", provider.NotFound, `secret "none": does not exist`},
		"Zero":          {"The version 0 is rejected.", "db", "0", "", "", provider.Invalid, "not a number or an alias"},
		"LeadingZero":   {"A number with a leading zero is rejected.", "db", "01", "", "", provider.Invalid, "not a number or an alias"},
		"Path":          {"A version with a path is rejected.", "db", "1/../../x", "", "", provider.Invalid, "not a number or an alias"},
		"LongAlias":     {"An alias that is too long is rejected.", "db", strings.Repeat("a", 64), "", "", provider.Invalid, "not a number or an alias"},
		"UnicodeDigits": {"Digits outside ASCII are rejected.", "db", "１", "", "", provider.Invalid, "not a number or an alias"},
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

func TestHostileKeys(t *testing.T) {
	srv := start(t)
	srv.Put("db", []byte("x"))
	c := client(t, srv)
	cases := map[string]struct{ reason, key string }{
		"Empty":         {"An empty key is rejected.", ""},
		"Parent":        {"A key with .. is rejected.", "../db"},
		"Slash":         {"A key with a slash is rejected.", "shop/db"},
		"Version":       {"A key with an appended version is rejected.", "db/versions/1"},
		"VersionSuffix": {"A key with a version after a colon is rejected.", "db:1"},
		"OtherProject":  {"A full name in another project is rejected.", "projects/other/secrets/db"},
		"Number":        {"A full name with a project number is rejected, because it could be that of another project.", "projects/" + emulator.DefaultProjectNumber + "/secrets/db"},
		"Location":      {"A full name with a location is rejected.", "projects/test-project/locations/europe-west3/secrets/db"},
		"NameVersion":   {"A full name with an appended version is rejected.", "projects/test-project/secrets/db/versions/1"},
		"NameParent":    {"A full name with .. is rejected.", "projects/test-project/secrets/../secrets/db"},
		"Case":          {"A full name in another case is rejected.", "Projects/test-project/secrets/db"},
		"Escaped":       {"An encoded key is rejected.", "%2e%2e%2fdb"},
		"Query":         {"A key with a query is rejected.", "db?alt=x"},
		"LookAlike":     {"A letter outside ASCII is rejected.", "dЬ"},
		"FullWidth":     {"A full-width letter is rejected.", "ｄｂ"},
		"Newline":       {"A line end is rejected.", "db\n"},
		"Nul":           {"A zero byte is rejected.", "db\x00"},
		"NotUTF8":       {"Invalid UTF-8 is rejected.", "db\xff"},
		"Long":          {"A key that is too long is rejected.", strings.Repeat("a", 256)},
		"VeryLong":      {"The message for a very long key is short.", strings.Repeat("é", 100_000)},
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
	if n := srv.Count(); n != 0 {
		t.Errorf("%d calls, want none: %v", n, srv.Counts())
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
		t.Errorf("a store with a location must read the secrets there: %q, %v", v.Data, err)
	}
	_, err = c.Get(soon(t), provider.Ref{Key: "far"})
	fails(t, "A store with a location does not read the secrets of another one.", err, provider.NotFound, "does not exist")
	if got := found(t, c, provider.Query{}); !cmp.Equal(got, []string{"db"}) {
		t.Errorf("a store with a location must find only the secrets there: %v", got)
	}
	if err := c.Check(soon(t)); err != nil {
		t.Error(err)
	}
	if v, err = c.Get(soon(t), provider.Ref{Key: "projects/test-project/locations/europe-west3/secrets/db"}); err != nil || string(v.Data) != "regional" {
		t.Errorf("the full name with the location must be accepted: %q, %v", v.Data, err)
	}
	_, err = c.Get(soon(t), provider.Ref{Key: "projects/test-project/secrets/db"})
	fails(t, "A store with a location does not accept the full name of a global secret.", err, provider.Invalid, "is not a secret of")
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
	if diff := cmp.Diff(map[string]int{access: 1}, srv.Counts()); diff != "" {
		t.Errorf("Metadata that are not requested are not read: -want, +got:\n%s", diff)
	}
	defer srv.Inject(emulator.Fault{Call: "GetSecret", Code: codes.PermissionDenied, Message: "Permission 'secretmanager.secrets.get' denied for resource 'x'"})()
	_, err := c.Get(soon(t), provider.Ref{Key: "db", Metadata: true})
	fails(t, "Metadata that cannot be read are an error.", err, provider.Denied, `metadata of secret "db": access denied: the caller lacks secretmanager.secrets.get`)
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
		"BadChecksum":  {"A value with a wrong checksum is Unavailable.", emulator.Fault{Body: emulator.BodyBadChecksum}, provider.Unavailable, "checksum", 0},
		"NoPayload":    {"An answer without a value is Unavailable.", emulator.Fault{Body: emulator.BodyNoPayload}, provider.Unavailable, "has no value", 0},
		"OtherName":    {"An answer for another secret is Unavailable.", emulator.Fault{Body: emulator.BodyOtherName}, provider.Unavailable, "about another secret", 0},
		"Denied":       {"The error names the missing permission.", emulator.Fault{Code: codes.PermissionDenied, Message: "Permission 'secretmanager.versions.access' denied for resource 'hunter2' (or it may not exist)."}, provider.Denied, "lacks secretmanager.versions.access", 0},
		"DeniedInfo":   {"The error names the permission that Google returns as metadata.", emulator.Fault{Code: codes.PermissionDenied, Reason: "IAM_PERMISSION_DENIED", Metadata: map[string]string{"permission": "secretmanager.versions.access"}}, provider.Denied, "lacks secretmanager.versions.access", 0},
		"APIDisabled":  {"A disabled API is not NotFound.", project("SERVICE_DISABLED"), provider.Invalid, "spec.projectID: the Secret Manager API is not enabled", 0},
		"NoProject":    {"An unknown project is not NotFound.", project("CONSUMER_INVALID"), provider.Invalid, "spec.projectID: the project does not exist", 0},
		"NoBilling":    {"A project without billing is not NotFound.", project("BILLING_DISABLED"), provider.Invalid, "spec.projectID: billing", 0},
		"NoAPI":        {"The reason takes precedence over the code.", emulator.Fault{Code: codes.NotFound, Message: "x", Reason: "SERVICE_DISABLED"}, provider.Invalid, "spec.projectID", 0},
		"NotASecret":   {"A NotFound about a project is not NotFound.", emulator.Fault{Code: codes.NotFound, Message: "Project [projects/1] not found."}, provider.Invalid, "spec.projectID, spec.location", 0},
		"NoLocation":   {"A NotFound about a location is not NotFound.", emulator.Fault{Code: codes.NotFound, Message: "Location europe-west99 is not known."}, provider.Invalid, "spec.projectID, spec.location", 0},
		"NoKey":        {"A NotFound of Cloud KMS is not NotFound.", emulator.Fault{Code: codes.NotFound, Message: "CryptoKey projects/shop/locations/eu/keyRings/r/cryptoKeys/k not found."}, provider.Invalid, "its KMS key does not exist", 0},
		"NoKeyRing":    {"A key ring is not a secret, whatever it is named.", emulator.Fault{Code: codes.NotFound, Message: "KeyRing projects/secret/locations/eu/keyRings/Secret [x] not found."}, provider.Invalid, "its KMS key does not exist", 0},
		"NotSaid":      {"A NotFound that does not begin with the secret is not NotFound.", emulator.Fault{Code: codes.NotFound, Message: "The Secret [x] not found."}, provider.Unavailable, "something other than the secret", 0},
		"NoText":       {"A NotFound without a text is not NotFound.", emulator.Fault{Code: codes.NotFound, Reason: "MISSING"}, provider.Unavailable, "something other than the secret", 0},
		"KeyState":     {"The state of a key is not that of a version.", emulator.Fault{Code: codes.FailedPrecondition, Message: "CryptoKeyVersion [x] is in DESTROYED state."}, provider.Unavailable, "current state", 0},
		"Throttled":    {"The wait that Google asks for is passed on.", emulator.Fault{Code: codes.ResourceExhausted, RetryAfter: 7 * time.Second}, provider.Throttled, "throttles the calls", 7 * time.Second},
		"Precondition": {"An unknown state is not NotFound.", emulator.Fault{Code: codes.FailedPrecondition, Message: "The key is in DESTROYED mode"}, provider.Unavailable, "current state", 0},
		"Faked":        {"A reason with the name of a state is not a state.", emulator.Fault{Code: codes.FailedPrecondition, Reason: "DESTROYED"}, provider.Unavailable, "current state", 0},
		"Internal":     {"An internal error of Google is Unavailable.", emulator.Fault{Code: codes.Internal, Message: "hunter2"}, provider.Unavailable, "internal error", 0},
		"Unknown":      {"An unknown error is Unavailable.", emulator.Fault{Code: codes.Unknown, Message: "hunter2 not found"}, provider.Unavailable, "the error Unknown", 0},
		"Unimpl":       {"An unimplemented method is Unavailable.", emulator.Fault{Code: codes.Unimplemented}, provider.Unavailable, "spec.endpoint", 0},
		"Invalid":      {"A rejected request is Invalid.", emulator.Fault{Code: codes.InvalidArgument, Message: "hunter2"}, provider.Invalid, "invalid", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("hunter2"))
			c := client(t, srv)
			tc.fault.Call = access
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
		"Passes":    {"A temporary error is retried.", 3, emulator.Fault{Code: codes.Unavailable, Times: 2}, 3, ""},
		"Throttled": {"Throttling without a time to wait is retried.", 3, emulator.Fault{Code: codes.ResourceExhausted, Times: 3}, 4, ""},
		"Stays":     {"The number of retries is limited.", 2, emulator.Fault{Code: codes.Internal}, 3, provider.Unavailable},
		"None":      {"Zero retries mean one attempt.", 0, emulator.Fault{Code: codes.Unavailable, Times: 1}, 1, provider.Unavailable},
		"Told":      {"Throttling with a time to wait is not retried here, because the caller waits.", 3, emulator.Fault{Code: codes.ResourceExhausted, RetryAfter: time.Hour, Times: 1}, 1, provider.Throttled},
		"Denied":    {"A denied call is not retried.", 3, emulator.Fault{Code: codes.PermissionDenied, Times: 1}, 1, provider.Denied},
		"Missing":   {"NotFound is not retried.", 3, emulator.Fault{Code: codes.NotFound, Message: "Secret [x] not found.", Times: 1}, 1, provider.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("x"))
			c := client(t, srv, func(s *testStore) { s.Spec.RetrySettings.MaxRetries = &tc.retries })
			tc.fault.Call = access
			srv.Inject(tc.fault)
			_, err := c.Get(soon(t), provider.Ref{Key: "db"})
			fails(t, tc.reason, err, tc.class, "")
			if n := srv.Count(access); n != tc.calls {
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
	srv.Inject(emulator.Fault{Call: access, Code: codes.ResourceExhausted})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	_, err := c.Get(ctx, provider.Ref{Key: "db"})
	fails(t, "A timeout during retries reports the cause of the retries.", err, provider.Throttled, "throttles the calls")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("a call must end with its context, but took %s", took)
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
	remove := srv.Inject(emulator.Fault{Call: emulator.MethodToken, Latency: 50 * time.Millisecond})
	readAll()
	readAll()
	remove()
	if n := srv.Count(emulator.MethodToken); n != 1 {
		t.Errorf("%d logins for 100 reads, want 1", n)
	}
	srv.RevokeTokens()
	readAll()
	if n := srv.Count(emulator.MethodToken); n != 2 {
		t.Errorf("%d logins after the token was revoked once, want 2", n)
	}
	srv.RevokeKeys(reader)
	srv.RevokeTokens()
	_, err := c.Get(soon(t), provider.Ref{Key: "db"})
	fails(t, "The error of a deleted key names the field.", err, provider.Denied, "spec.auth.secretRef.secretAccessKeySecretRef: Google does not accept the key")
}

const pool = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/prod"

// withWorkload logs in with a ServiceAccount token for subject, which expires after lifetime.
func withWorkload(email string, lifetime time.Duration) func(*testStore) {
	return func(s *testStore) {
		s.Spec.Auth = &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
			ServiceAccountRef: &common.ServiceAccountSelector{Name: "app"}, Audience: pool, ServiceAccountEmail: email,
		}}
		s.token = func(audiences []string) (string, error) {
			return fake.NewToken("https://kubernetes", "system:serviceaccount:shop:app", audiences[0], time.Now().Add(lifetime)), nil
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
		"Direct":      {"A ServiceAccount can be the identity itself.", []func(*testStore){withWorkload("", time.Hour)}, "system:serviceaccount:shop:app", map[string]int{emulator.MethodExchange: 1, access: 2}},
		"Impersonate": {"A ServiceAccount can impersonate a service account.", []func(*testStore){withWorkload(reader, time.Hour)}, reader, map[string]int{emulator.MethodExchange: 1, emulator.MethodImpersonate: 1, access: 2}},
		"GKE": {"For a GKE cluster the audience is the name of its pool.", []func(*testStore){withWorkload("", time.Hour), func(s *testStore) {
			s.Spec.Auth.WorkloadIdentity.Audience = "identitynamespace:p.svc.id.goog:https://container.googleapis.com/v1/c"
		}}, "system:serviceaccount:shop:app", map[string]int{emulator.MethodExchange: 1, access: 2}},
		"Audiences": {"Audiences in the spec take precedence.", []func(*testStore){withWorkload("", time.Hour), func(s *testStore) {
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
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			log := srv.Calls()
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
	srv.AddServiceAccount(reader, "another-user")
	good := string(srv.Key(reader))
	key := func(old, with string) func(*testStore) {
		return func(s *testStore) { s.secrets["key.json"] = []byte(strings.ReplaceAll(good, old, with)) }
	}
	also := func(f func(*v1alpha1.WorkloadIdentity)) func(*testStore) {
		return func(s *testStore) { withWorkload("", time.Hour)(s); f(s.Spec.Auth.WorkloadIdentity) }
	}
	own := also(func(w *v1alpha1.WorkloadIdentity) {
		w.ServiceAccountRef, w.OperatorServiceAccount = nil, &common.OperatorServiceAccount{Audience: pool}
	})
	cases := map[string]struct {
		reason string
		change func(*testStore)
		class  provider.Class
		part   string
	}{
		"MissingKey":    {"The error names a Secret without the key.", func(s *testStore) { s.secrets = nil }, provider.Invalid, `under key "key.json"`},
		"Garbage":       {"A key that is not JSON is rejected.", func(s *testStore) { s.secrets["key.json"] = []byte("hunter2") }, provider.Invalid, keyField + ": is not the JSON"},
		"OtherType":     {"A credentials file of another type is rejected, because it could run commands or read files.", key("service_account", "external_account"), provider.Invalid, keyField + ": its type"},
		"NoEmail":       {"A key without an email is rejected.", key("client_email", "x"), provider.Invalid, keyField + ": it has no client_email"},
		"NotPEM":        {"A private key that is not PEM is rejected.", key("BEGIN PRIVATE", "BEGIN"), provider.Invalid, keyField + ": its private_key is not PEM"},
		"TokenURI":      {"A key with another token URI is rejected.", key(srv.URL(), "https://evil.example"), provider.Invalid, keyField + ": its token_uri"},
		"Universe":      {"A key with another universe domain is rejected.", key(`domain":"googleapis.com`, `domain":"evil.example`), provider.Invalid, keyField + ": its universe_domain"},
		"UnknownUser":   {"The error of a deleted service account names the field.", key("reader@", "unknown@"), provider.Denied, keyField + ": Google does not accept the key"},
		"OtherPool":     {"The error of an unknown pool names the field.", also(func(w *v1alpha1.WorkloadIdentity) { w.Audience += "x" }), provider.Denied, workload + ".audience: the pool or provider does not exist at Google"},
		"BadAudience":   {"An audience that is not a pool is rejected.", also(func(w *v1alpha1.WorkloadIdentity) { w.Audience = "https://evil.example" }), provider.Invalid, workload + ".audience"},
		"WrongAudience": {"A token with another audience is Denied.", also(func(w *v1alpha1.WorkloadIdentity) { w.ServiceAccountRef.Audiences = []string{"vault"} }), provider.Denied, workload + ": Google does not accept the token"},
		"Expired":       {"An expired token is Denied.", withWorkload("", -time.Hour), provider.Denied, workload + ": Google does not accept the token"},
		"Forged": {"A token without a signature is Denied.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func([]string) (string, error) { return "forged", nil }
		}, provider.Denied, workload + ": Google does not accept the token"},
		"WrongSubject": {"A subject that the pool does not accept is Denied.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func(a []string) (string, error) {
				return fake.NewToken("i", "system:serviceaccount:evil:app", a[0], time.Now().Add(time.Hour)), nil
			}
		}, provider.Denied, workload + ".serviceAccountRef: the attribute condition"},
		"OwnRefused": {"The error names the field if the operator refuses its own ServiceAccount.", func(s *testStore) {
			own(s)
			s.token = func([]string) (string, error) {
				return "", provider.NewError(provider.Invalid, "auth: --ambient-credentials=none refuses it")
			}
		}, provider.Invalid, workload + ".operatorServiceAccount: --ambient-credentials=none refuses it"},
		"OwnSubject": {"If the pool does not accept the operator's own ServiceAccount, the error names its field.", func(s *testStore) {
			own(s)
			s.token = func(a []string) (string, error) {
				return fake.NewToken("i", "system:serviceaccount:evil:app", a[0], time.Now().Add(time.Hour)), nil
			}
		}, provider.Denied, workload + ".operatorServiceAccount: the attribute condition"},
		"NoAccount": {"The error of a missing ServiceAccount is that of Kubernetes.", func(s *testStore) {
			withWorkload("", time.Hour)(s)
			s.token = func([]string) (string, error) {
				return "", provider.NewError(provider.Invalid, "auth: ServiceAccount shop/app does not exist")
			}
		}, provider.Invalid, "ServiceAccount shop/app does not exist"},
		"NotAllowed":     {"A ServiceAccount without the permission to impersonate is Denied.", withWorkload(reader, time.Hour), provider.Denied, workload + ".serviceAccountEmail: the ServiceAccount has no permission to impersonate it"},
		"UnknownAccount": {"Impersonating an unknown service account is Denied.", withWorkload("unknown@p.iam.gserviceaccount.com", time.Hour), provider.Denied, workload + ".serviceAccountEmail: the service account does not exist at Google"},
		"BadEmail":       {"An email with a path is rejected.", withWorkload("a@b/../x", time.Hour), provider.Invalid, workload + ".serviceAccountEmail"},
		"Both":           {"Two ways to log in are rejected.", func(s *testStore) { a := s.Spec.Auth.SecretRef; withWorkload("", 1)(s); s.Spec.Auth.SecretRef = a }, provider.Invalid, "spec.auth: set either"},
		"None":           {"A missing auth is rejected.", func(s *testStore) { s.Spec.Auth = nil }, provider.Invalid, "auth is not set"},
		"Project":        {"A project with a path is rejected.", func(s *testStore) { s.Spec.ProjectID = "a/b" }, provider.Invalid, "spec.projectID"},
		"NoProject":      {"A missing project is rejected.", func(s *testStore) { s.Spec.ProjectID = "" }, provider.Invalid, "spec.projectID"},
		"Unknown":        {"The error of an unknown project names the field.", func(s *testStore) { s.Spec.ProjectID = "nowhere" }, provider.Invalid, "spec.projectID: the project does not exist"},
		"Location":       {"A location with a host is rejected.", func(s *testStore) { s.Spec.Location = "evil.example" }, provider.Invalid, "spec.location"},
		"Plain":          {"Plain http to another host is rejected.", func(s *testStore) { s.Spec.Endpoint = "http://secretmanager.example" }, provider.Invalid, "spec.endpoint: plain http"},
		"Path":           {"A path is rejected, because gRPC has none.", func(s *testStore) { s.Spec.Endpoint += "/v1" }, provider.Invalid, "spec.endpoint: must have no path"},
		"Ambient":        {"The operator's identity is used only with addresses of Google.", func(s *testStore) { s.Spec.Auth, s.ambient, s.Spec.Endpoint = nil, true, "https://evil.example" }, provider.Invalid, "spec.endpoint: without spec.auth it must be an address of googleapis.com"},
		"Retries":        {"The error of an invalid interval names the field.", func(s *testStore) { s.Spec.RetrySettings.RetryInterval = "soon" }, provider.Invalid, "spec.retrySettings.retryInterval"},
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
		log := srv.Calls()
		if got := log[len(log)-1].Caller; got != tc.caller {
			t.Errorf("%s: read as %s, want %s", name, got, tc.caller)
		}
	}
	srv.RevokeKeys("operator@test-project.iam.gserviceaccount.com")
	c := client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	fails(t, "A rejected identity of the operator is reported.", c.Check(soon(t)), provider.Denied, "Google does not accept the operator's own identity")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	fails(t, "An unreadable identity of the operator is reported.", c.Check(soon(t)), provider.Denied, "the operator has no Google identity")
}

func TestTLS(t *testing.T) {
	// The certificate of this server is valid for 127.0.0.1.
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	srv := start(t, emulator.WithTLS(lender.TLS))
	srv.Put("db", []byte("x"))
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	c := client(t, srv, func(s *testStore) { s.RootCAs = roots })
	if v, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil || !bytes.Equal(v.Data, []byte("x")) {
		t.Errorf("a trusted certificate must be accepted: %q, %v", v.Data, err)
	}
	c = client(t, srv)
	_, err := c.Get(soon(t), provider.Ref{Key: "db"})
	fails(t, "An untrusted certificate is Unavailable.", err, provider.Unavailable, "the TLS certificate of Google is signed by an authority that is not trusted")
	c = client(t, srv, func(s *testStore) { s.Spec.Auth, s.ambient = nil, true })
	file := filepath.Join(t.TempDir(), "adc.json")
	if err := os.WriteFile(file, srv.Key("operator@p"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	fails(t, "An untrusted certificate of the login is Unavailable.", c.Check(soon(t)), provider.Unavailable, "the TLS certificate of Google is signed by an authority that is not trusted")
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
	fails(t, "A server that does not run is Unavailable.", c.Check(soon(t)), provider.Unavailable, "cannot reach Google: the connection is refused")
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
		"CannotList": {"A missing permission to list passes the check.", emulator.Fault{Code: codes.PermissionDenied, Message: "Permission 'secretmanager.secrets.list' denied"}, "", ""},
		"NoAPI":      {"A disabled API fails the check.", emulator.Fault{Code: codes.PermissionDenied, Reason: "SERVICE_DISABLED"}, provider.Invalid, "spec.projectID"},
		"Scope":      {"A token with other scopes fails the check.", emulator.Fault{Code: codes.PermissionDenied, Reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}, provider.Denied, "not for Secret Manager"},
		"NotFound":   {"An unknown project fails the check.", emulator.Fault{Code: codes.NotFound}, provider.Invalid, "spec.projectID"},
		"Internal":   {"A server error is Unavailable.", emulator.Fault{Code: codes.Internal}, provider.Unavailable, "internal"},
		"BadToken":   {"A rejected token fails the check.", emulator.Fault{Code: codes.Unauthenticated}, provider.Denied, "spec.auth"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.fault.Call = "ListSecrets"
			defer srv.Inject(tc.fault)()
			err := c.Check(soon(t))
			fails(t, tc.reason, err, tc.class, tc.part)
		})
	}
}
