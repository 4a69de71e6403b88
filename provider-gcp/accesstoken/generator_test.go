package accesstoken

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const (
	all     = "https://www.googleapis.com/auth/cloud-platform"
	storage = "https://www.googleapis.com/auth/devstorage.read_only"
)

// A method is a way to log in.
type method struct {
	reason string
	with   func(*testing.T, *emulator.Server) func(*generator)
	caller string
	calls  []string // calls are the calls for one token; the answer to the last one contains it.
}

func methods() map[string]method {
	fixed := func(f func(*generator)) func(*testing.T, *emulator.Server) func(*generator) {
		return func(*testing.T, *emulator.Server) func(*generator) { return f }
	}
	return map[string]method{
		"Key":           {"A service account key signs a request for each token.", fixed(func(*generator) {}), account, []string{emulator.MethodToken}},
		"Workload":      {"A ServiceAccount token is exchanged for each token.", fixed(byWorkload("")), subject, []string{emulator.MethodExchange}},
		"Impersonation": {"With impersonation, the token is that of the impersonated service account.", fixed(byWorkload(account)), account, []string{emulator.MethodExchange, emulator.MethodImpersonate}},
		"OperatorKey": {"The operator's own key signs a request for each token.", func(t *testing.T, srv *emulator.Server) func(*generator) {
			operatorKey(t, srv.Key(operator))
			return byOperator
		}, operator, []string{emulator.MethodToken}},
		"Machine": {"The metadata server returns a token of the machine's identity.", func(t *testing.T, srv *emulator.Server) func(*generator) {
			operatorMachine(t, srv)
			return byOperator
		}, operator, []string{emulator.MethodMetadata}},
	}
}

// made describes a token.
type made struct {
	Keys, Scopes     []string
	Username, Caller string
	Known            bool
}

func TestGenerate(t *testing.T) {
	for name, m := range methods() {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			with := m.with(t, srv)
			for _, tc := range []struct {
				reason       string
				scopes, want []string
			}{
				{"Without scopes a token has all permissions of its owner.", nil, []string{all}},
				{"With scopes a token is limited to them.", []string{storage, "openid"}, []string{storage, "openid"}},
			} {
				c := client(t, srv, with, func(g *generator) { g.Spec.Scopes = tc.scopes })
				if err := c.Check(soon(t)); err != nil {
					t.Fatalf("%s\nCheck: %s", m.reason, err)
				}
				seen := map[string]bool{}
				for range 2 {
					srv.Reset()
					got, err := c.Generate(soon(t))
					if err != nil {
						t.Fatalf("%s\n%s", m.reason, err)
					}
					token := string(got.Values[KeyPassword])
					caller, scopes, expires, ok := srv.TokenInfo(token)
					is := made{Scopes: scopes, Username: string(got.Values[KeyUsername]), Caller: caller, Known: ok, Keys: slices.Sorted(maps.Keys(got.Values))}
					want := made{Scopes: tc.want, Username: "oauth2accesstoken", Caller: m.caller, Known: true, Keys: []string{"expiry", "password", "username"}}
					if diff := cmp.Diff(want, is); diff != "" {
						t.Errorf("%s\n%s\n-want, +got:\n%s", m.reason, tc.reason, diff)
					}
					if early := expires.Sub(got.Expires); early < -2*time.Second || early > time.Minute {
						t.Errorf("%s\nExpires %s, but the token ends %s", m.reason, got.Expires, expires)
					}
					if diff := cmp.Diff(strconv.FormatInt(got.Expires.Unix(), 10), string(got.Values[KeyExpiry])); diff != "" {
						t.Errorf("%s\nexpiry: -want, +got:\n%s", m.reason, diff)
					}
					calls := []string{}
					for _, c := range srv.Calls() {
						calls = append(calls, c.Method)
					}
					if diff := cmp.Diff(m.calls, calls); diff != "" {
						t.Errorf("%s\nNo token is cached, and no call is repeated: calls: -want, +got:\n%s", m.reason, diff)
					}
					seen[token] = true
				}
				want := 2
				if name == "Machine" {
					want = 1 // the metadata server needs one call
				}
				if len(seen) != want {
					t.Errorf("%s\n%d tokens, want %d", m.reason, len(seen), want)
				}
			}
		})
	}
}

// TestMetadataServer reads the metadata server's cached token at several ages.
func TestMetadataServer(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	srv := start(t, emulator.WithClock(now))
	operatorMachine(t, srv)
	c := client(t, srv, byOperator)
	first := ""
	for _, tc := range []struct {
		reason string
		after  time.Duration
		left   time.Duration
		again  bool
	}{
		{"A new token lasts one hour.", 0, time.Hour, true},
		{"The cached token lasts for the rest of the hour.", 40 * time.Minute, 20 * time.Minute, true},
		{"The cached token is returned until shortly before it is replaced.", 54 * time.Minute, 6 * time.Minute, true},
		{"After that the metadata server returns a new token.", 56 * time.Minute, time.Hour, false},
	} {
		ahead.Store(int64(tc.after))
		got, err := c.Generate(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		token := string(got.Values[KeyPassword])
		if first == "" {
			first = token
		}
		// The test's own clock is real, the server's clock is moved.
		if left := time.Until(got.Expires); left > tc.left+time.Second || left < tc.left-time.Minute || (token == first) != tc.again {
			t.Errorf("%s\n%s left, want %s; the first token: %t, want %t", tc.reason, left, tc.left, token == first, tc.again)
		}
	}
}

// fails reports an error that is nil, has another class or text, or shows a hidden text.
func fails(t *testing.T, reason string, err error, class provider.Class, part string, hidden ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s\nno error, want %s", reason, class)
		return
	}
	if provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) {
		t.Errorf("%s\nerror %s: %s\nwant %s: …%s…", reason, provider.ClassOf(err), err, class, part)
	}
	for _, h := range append(hidden, "hunter2", "ya29.", "PRIVATE KEY") {
		if h != "" && strings.Contains(err.Error(), h) {
			t.Errorf("%s\nthe error shows %q: %s", reason, h, err)
		}
	}
}

func TestBadSpec(t *testing.T) {
	srv := start(t)
	workload := func(f func(*v1alpha1.WorkloadIdentity)) func(*generator) {
		return func(g *generator) { byWorkload("")(g); f(g.Spec.Auth.WorkloadIdentity) }
	}
	cases := map[string]struct {
		reason string
		change func(*generator)
		part   string
	}{
		"Scope":         {"A scope with a space is rejected, because it would be two scopes.", func(g *generator) { g.Spec.Scopes = []string{all, storage + " hunter2"} }, "spec.scopes[1]: is not a scope; write it as https://"},
		"Comma":         {"A scope with a comma is rejected, because it would be two scopes for the metadata server.", func(g *generator) { g.Spec.Scopes = []string{all + ",hunter2"} }, "spec.scopes[0]: "},
		"EmptyScope":    {"An empty scope is rejected.", func(g *generator) { g.Spec.Scopes = []string{""} }, "spec.scopes[0]: "},
		"LongScope":     {"A scope that is too long is rejected.", func(g *generator) { g.Spec.Scopes = []string{strings.Repeat("a", 257)} }, "spec.scopes[0]: "},
		"ManyScopes":    {"Too many scopes are rejected.", func(g *generator) { g.Spec.Scopes = slices.Repeat([]string{all}, 21) }, "spec.scopes: at most 20 are allowed"},
		"Endpoint":      {"An endpoint of another server is rejected.", func(g *generator) { g.Spec.Endpoint = "https://evil.example" }, "spec.endpoint: must be the address of an emulator"},
		"GoogleAPI":     {"An endpoint of another Google service is rejected.", func(g *generator) { g.Spec.Endpoint = "https://secretmanager.googleapis.com" }, "spec.endpoint: must be the address of an emulator"},
		"Plain":         {"Plain HTTP to another host is rejected.", func(g *generator) { g.Spec.Endpoint = "http://evil.example" }, "spec.endpoint: "},
		"NoURL":         {"An endpoint that is not a URL is rejected.", func(g *generator) { g.Spec.Endpoint = "hunter2" }, "spec.endpoint: "},
		"NoSecret":      {"A missing Secret is reported.", func(g *generator) { g.key = nil }, "spec.auth.secretRef.secretAccessKeySecretRef: Secret shop/gcp does not exist"},
		"Garbage":       {"A Secret without a service account key is reported.", func(g *generator) { g.key = []byte("hunter2") }, "spec.auth.secretRef.secretAccessKeySecretRef: is not the JSON"},
		"TokenURI":      {"A key with another token URI is rejected.", func(g *generator) { g.key = bytes.ReplaceAll(g.key, []byte(srv.URL()), []byte("https://evil.example")) }, "spec.auth.secretRef.secretAccessKeySecretRef: its token_uri"},
		"Emulator":      {"A key with an emulator's token URI is rejected without an emulator.", func(g *generator) { g.Spec.Endpoint = "" }, "spec.auth.secretRef.secretAccessKeySecretRef: its token_uri"},
		"Audience":      {"An audience of another server is rejected.", workload(func(w *v1alpha1.WorkloadIdentity) { w.Audience = "https://evil.example" }), "spec.auth.workloadIdentity.audience: "},
		"Email":         {"An email with a path is rejected.", byWorkload("a@b/../x"), "spec.auth.workloadIdentity.serviceAccountEmail: "},
		"Both":          {"Two ways to log in are rejected.", func(g *generator) { a := g.Spec.Auth.SecretRef; byWorkload("")(g); g.Spec.Auth.SecretRef = a }, "spec.auth: set either"},
		"Neither":       {"An empty auth is rejected.", func(g *generator) { g.Spec.Auth = &v1alpha1.GCPAuth{} }, "spec.auth: set either"},
		"None":          {"The operator's identity cannot be used unless the operator allows it.", func(g *generator) { g.Spec.Auth = nil }, "spec.auth: is not set"},
		"RetryInterval": {"An invalid retry interval is rejected.", func(g *generator) { g.Spec.RetrySettings.RetryInterval = "soon" }, "spec.retrySettings.retryInterval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(srv)
			tc.change(g)
			_, err := g.connect(t)
			fails(t, tc.reason, err, provider.Invalid, tc.part)
			twin := &v1alpha1.ClusterGCPAccessToken{}
			twin.Spec.GCPAccessTokenSpec = g.Spec
			_, err = g.ConnectCluster(t.Context(), twin, g)
			fails(t, tc.reason, err, provider.Invalid, tc.part)
		})
	}
	if n := srv.Count(); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

func TestRefused(t *testing.T) {
	const (
		keyField = "spec.auth.secretRef.secretAccessKeySecretRef: "
		workload = "spec.auth.workloadIdentity"
		nowhere  = "https://www.googleapis.com/oops/hunter2"
	)
	srv := start(t)
	srv.AddServiceAccount("owner@test-project.iam.gserviceaccount.com", "another-user")
	deleted := srv.Key("deleted@test-project.iam.gserviceaccount.com")
	srv.RevokeKeys("deleted@test-project.iam.gserviceaccount.com")
	scopes := func(f func(*generator)) func(*generator) {
		return func(g *generator) { f(g); g.Spec.Scopes = []string{nowhere} }
	}
	operatorKey(t, deleted)
	asKey := func(*generator) {}
	cases := map[string]struct {
		reason string
		change func(*generator)
		class  provider.Class
		part   string
	}{
		"DeletedKey":      {"A deleted key is Denied.", func(g *generator) { g.key = deleted }, provider.Denied, keyField + "Google does not accept the key"},
		"OtherAccount":    {"A key of an unknown service account is Denied.", func(g *generator) { g.key = bytes.ReplaceAll(g.key, []byte("deployer@"), []byte("unknown@")) }, provider.Denied, keyField + "Google does not accept the key"},
		"OtherPool":       {"An unknown pool is Denied.", func(g *generator) { byWorkload("")(g); g.Spec.Auth.WorkloadIdentity.Audience += "-none" }, provider.Denied, workload + ".audience: the pool or provider does not exist at Google"},
		"Expired":         {"An expired ServiceAccount token is Denied.", func(g *generator) { byWorkload("")(g); g.lifetime = -time.Hour }, provider.Denied, workload + ": Google does not accept the token"},
		"NotAllowed":      {"A ServiceAccount without the permission to impersonate is Denied.", byWorkload("owner@test-project.iam.gserviceaccount.com"), provider.Denied, workload + ".serviceAccountEmail: the ServiceAccount has no permission to impersonate it"},
		"Unknown":         {"Impersonating an unknown service account is Denied.", byWorkload("unknown@test-project.iam.gserviceaccount.com"), provider.Denied, workload + ".serviceAccountEmail: the service account does not exist at Google"},
		"Operator":        {"A deleted key of the operator is Denied.", byOperator, provider.Denied, "spec.auth: not set, and Google does not accept the operator's own identity"},
		"KeyScope":        {"An unknown scope is Invalid with a key.", scopes(asKey), provider.Invalid, "spec.scopes: the scope does not exist at Google"},
		"WorkloadScope":   {"An unknown scope is Invalid with a ServiceAccount token.", scopes(byWorkload("")), provider.Invalid, "spec.scopes: the scope does not exist at Google"},
		"ImpersonalScope": {"An unknown scope with impersonation is Invalid, and the message names both causes that Google's answer can have.", scopes(byWorkload(account)), provider.Invalid, "or the requested scopes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, srv, tc.change)
			_, err := c.Generate(soon(t))
			fails(t, tc.reason, err, tc.class, tc.part, nowhere)
			fails(t, tc.reason, c.Check(soon(t)), tc.class, tc.part, nowhere)
		})
	}
	t.Run("OperatorScope", func(t *testing.T) {
		operatorKey(t, srv.Key(operator))
		_, err := client(t, srv, scopes(byOperator)).Generate(soon(t))
		fails(t, "An unknown scope is Invalid with the operator's key.", err, provider.Invalid, "spec.scopes: the scope does not exist at Google", nowhere)
	})
	t.Run("OperatorWithoutIdentity", func(t *testing.T) {
		operatorKey(t, []byte("hunter2"))
		_, err := client(t, srv, byOperator).Generate(soon(t))
		fails(t, "An operator without an identity is reported.", err, provider.Denied, "the operator has no Google identity of its own")
	})
	t.Run("MachineWithoutIdentity", func(t *testing.T) {
		operatorMachine(t, start(t, emulator.WithMachine("")))
		_, err := client(t, srv, byOperator).Generate(soon(t))
		fails(t, "A machine without an identity is reported.", err, provider.Denied, "Google does not accept the operator's own identity")
	})
	t.Run("MachineScope", func(t *testing.T) {
		operatorMachine(t, srv)
		_, err := client(t, srv, scopes(byOperator)).Generate(soon(t))
		fails(t, "An error of the metadata server, which names no cause, is reported.", err, provider.Denied, "Google does not accept the operator's own identity", nowhere)
	})
}

// TestFaults makes the last call of each way to log in fail.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"NoExpiry":  {"A token without an expiry is rejected.", emulator.Fault{Body: emulator.BodyNoExpiry}, provider.Unavailable, "cannot log in: "},
		"Throttled": {"Throttling is Throttled.", emulator.Fault{Code: codes.ResourceExhausted, Message: "hunter2"}, provider.Throttled, "throttles the calls"},
		"Down":      {"A server error is Unavailable.", emulator.Fault{Code: codes.Unavailable, Message: "hunter2"}, provider.Unavailable, "status 503"},
		"Forbidden": {"A denied login is Denied.", emulator.Fault{Code: codes.PermissionDenied, Message: "hunter2"}, provider.Denied, "spec.auth"},
	}
	for name, m := range methods() {
		for fault, tc := range cases {
			t.Run(name+"/"+fault, func(t *testing.T) {
				srv := start(t)
				c := client(t, srv, m.with(t, srv))
				tc.fault.Call = m.calls[len(m.calls)-1]
				defer srv.Inject(tc.fault)()
				_, err := c.Generate(soon(t))
				fails(t, m.reason+" "+tc.reason, err, tc.class, tc.part)
			})
		}
	}
}

func TestRetries(t *testing.T) {
	srv := start(t)
	for name, tc := range map[string]struct {
		reason string
		max    int32
		ok     bool
	}{
		"One":  {"A temporary error is retried.", 1, true},
		"None": {"With zero retries no error is retried.", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, srv, func(g *generator) { g.Spec.RetrySettings.MaxRetries = &tc.max })
			defer srv.Inject(emulator.Fault{Call: emulator.MethodToken, Code: codes.Unavailable, Times: 1})()
			if _, err := c.Generate(soon(t)); (err == nil) != tc.ok {
				t.Errorf("%s\n%v", tc.reason, err)
			}
		})
	}
}

// TestHang cancels logins that hang, for each way to log in.
func TestHang(t *testing.T) {
	for name, m := range methods() {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv, m.with(t, srv))
			defer srv.Inject(emulator.Fault{Hang: true})()
			ended := make(chan error, 1)
			begin := func(ctx context.Context) {
				t.Helper()
				n := srv.Count()
				go func() { _, err := c.Generate(ctx); ended <- err }()
				if err := srv.Wait(soon(t), n+1); err != nil {
					t.Fatal(err)
				}
			}
			wait := func() error {
				select {
				case err := <-ended:
					return err
				case <-time.After(10 * time.Second): // Without a cancellation a request ends after 15 s or is retried.
					t.Fatal("it hangs")
					return nil
				}
			}
			ctx, giveUp := context.WithCancel(t.Context())
			begin(ctx)
			giveUp()
			fails(t, "The login ends with the caller's context.", wait(), provider.Unavailable, "Google did not answer in time")
			begin(t.Context())
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			fails(t, "The login ends when the client is closed.", wait(), provider.Unavailable, "Google did not answer in time")
		})
	}
}

func TestCapabilities(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	if diff := cmp.Diff([]string{provider.CapabilityGenerate, provider.CapabilityCheck}, provider.Capabilities(c)); diff != "" {
		t.Errorf("The generator must neither renew nor revoke tokens: capabilities: -want, +got:\n%s", diff)
	}
}
