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
	calls  []string // of one token; the last answers with it
}

func methods() map[string]method {
	fixed := func(f func(*generator)) func(*testing.T, *emulator.Server) func(*generator) {
		return func(*testing.T, *emulator.Server) func(*generator) { return f }
	}
	return map[string]method{
		"Key":           {"A key signs for each token.", fixed(func(*generator) {}), account, []string{emulator.MethodToken}},
		"Workload":      {"A token of Kubernetes is exchanged for each.", fixed(byWorkload("")), subject, []string{emulator.MethodExchange}},
		"Impersonation": {"Who may only impersonate hands out no token of its own.", fixed(byWorkload(account)), account, []string{emulator.MethodExchange, emulator.MethodImpersonate}},
		"OperatorKey": {"The operator's own key signs for each token.", func(t *testing.T, srv *emulator.Server) func(*generator) {
			operatorKey(t, srv.Key(operator))
			return byOperator
		}, operator, []string{emulator.MethodToken}},
		"Machine": {"The machine that the operator runs on has an identity.", func(t *testing.T, srv *emulator.Server) func(*generator) {
			operatorMachine(t, srv)
			return byOperator
		}, operator, []string{emulator.MethodMetadata}},
	}
}

// made is what a token is.
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
				{"Without scopes a token is for all that its owner may do.", nil, []string{all}},
				{"With scopes it is for these only.", []string{storage, "openid"}, []string{storage, "openid"}},
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
					for _, c := range srv.CallLog() {
						calls = append(calls, c.Method)
					}
					if diff := cmp.Diff(m.calls, calls); diff != "" {
						t.Errorf("%s\nNothing is kept, and nothing asked twice: calls: -want, +got:\n%s", m.reason, diff)
					}
					seen[token] = true
				}
				want := 2
				if name == "Machine" {
					want = 1 // the metadata server's own way
				}
				if len(seen) != want {
					t.Errorf("%s\n%d tokens, want %d", m.reason, len(seen), want)
				}
			}
		})
	}
}

// TestMetadataServer has the metadata server hand out the token that it keeps, at several ages.
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
		{"A new token lasts an hour.", 0, time.Hour, true},
		{"The one that is kept lasts for the rest of it.", 40 * time.Minute, 20 * time.Minute, true},
		{"Also shortly before it is replaced.", 54 * time.Minute, 6 * time.Minute, true},
		{"Then there is another.", 56 * time.Minute, time.Hour, false},
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
		// Our own clock stands still, more or less, and the server's does not.
		if left := time.Until(got.Expires); left > tc.left+time.Second || left < tc.left-time.Minute || (token == first) != tc.again {
			t.Errorf("%s\n%s left, want %s; the first token: %t, want %t", tc.reason, left, tc.left, token == first, tc.again)
		}
	}
}

// fails reports an error that is none, or of another class or text, or that shows something.
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
		"Scope":         {"A space parts scopes.", func(g *generator) { g.Spec.Scopes = []string{all, storage + " hunter2"} }, "spec.scopes[1]: is not a scope; write it as https://"},
		"Comma":         {"For the metadata server a comma does.", func(g *generator) { g.Spec.Scopes = []string{all + ",hunter2"} }, "spec.scopes[0]: "},
		"EmptyScope":    {"Nothing is no scope.", func(g *generator) { g.Spec.Scopes = []string{""} }, "spec.scopes[0]: "},
		"LongScope":     {"A scope has an end.", func(g *generator) { g.Spec.Scopes = []string{strings.Repeat("a", 257)} }, "spec.scopes[0]: "},
		"ManyScopes":    {"There are not that many.", func(g *generator) { g.Spec.Scopes = slices.Repeat([]string{all}, 21) }, "spec.scopes: must be at most 20"},
		"Endpoint":      {"Only Google and an emulator are asked.", func(g *generator) { g.Spec.Endpoint = "https://evil.example" }, "spec.endpoint: must be an emulator's address"},
		"GoogleAPI":     {"A service of Google's is no place to log in.", func(g *generator) { g.Spec.Endpoint = "https://secretmanager.googleapis.com" }, "spec.endpoint: must be an emulator's address"},
		"Plain":         {"Nothing goes over plain HTTP.", func(g *generator) { g.Spec.Endpoint = "http://evil.example" }, "spec.endpoint: "},
		"NoURL":         {"It is no URL.", func(g *generator) { g.Spec.Endpoint = "hunter2" }, "spec.endpoint: "},
		"NoSecret":      {"The Secret is not there.", func(g *generator) { g.key = nil }, "spec.auth.secretRef.secretAccessKeySecretRef: Secret shop/gcp does not exist"},
		"Garbage":       {"It holds no key.", func(g *generator) { g.key = []byte("hunter2") }, "spec.auth.secretRef.secretAccessKeySecretRef: is not the JSON"},
		"TokenURI":      {"A key does not say where to log in.", func(g *generator) { g.key = bytes.ReplaceAll(g.key, []byte(srv.URL()), []byte("https://evil.example")) }, "spec.auth.secretRef.secretAccessKeySecretRef: its token_uri"},
		"Emulator":      {"Nor does it without an emulator.", func(g *generator) { g.Spec.Endpoint = "" }, "spec.auth.secretRef.secretAccessKeySecretRef: its token_uri"},
		"Audience":      {"A token is for a pool of Google only.", workload(func(w *v1alpha1.WorkloadIdentity) { w.Audience = "https://evil.example" }), "spec.auth.workloadIdentity.audience: "},
		"Email":         {"An email is no path.", byWorkload("a@b/../x"), "spec.auth.workloadIdentity.serviceAccountEmail: "},
		"Both":          {"Which of two would win?", func(g *generator) { a := g.Spec.Auth.SecretRef; byWorkload("")(g); g.Spec.Auth.SecretRef = a }, "spec.auth: set either"},
		"Neither":       {"An auth that names nobody is a mistake.", func(g *generator) { g.Spec.Auth = &v1alpha1.GCPAuth{} }, "spec.auth: set either"},
		"None":          {"Not everybody may have the operator's tokens.", func(g *generator) { g.Spec.Auth = nil }, "spec.auth: is not set"},
		"RetryInterval": {"An interval is a time.", func(g *generator) { g.Spec.RetrySettings.RetryInterval = "soon" }, "spec.retrySettings.retryInterval"},
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
	if n := srv.Calls(""); n != 0 {
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
	srv.AddServiceAccount("owner@test-project.iam.gserviceaccount.com", "somebody-else")
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
		"DeletedKey":      {"A key may be deleted.", func(g *generator) { g.key = deleted }, provider.Denied, keyField + "Google does not accept the key"},
		"OtherAccount":    {"It may be of nobody.", func(g *generator) { g.key = bytes.ReplaceAll(g.key, []byte("deployer@"), []byte("nobody@")) }, provider.Denied, keyField + "Google does not accept the key"},
		"OtherPool":       {"A pool may be deleted.", func(g *generator) { byWorkload("")(g); g.Spec.Auth.WorkloadIdentity.Audience += "-none" }, provider.Denied, workload + ".audience: Google knows no such pool"},
		"Expired":         {"A token of Kubernetes that has expired is none.", func(g *generator) { byWorkload("")(g); g.life = -time.Hour }, provider.Denied, workload + ": Google does not accept the token"},
		"MayNot":          {"Not everybody may work as somebody.", byWorkload("owner@test-project.iam.gserviceaccount.com"), provider.Denied, workload + ".serviceAccountEmail: the ServiceAccount may not impersonate it"},
		"Nobody":          {"Nobody can work as nobody.", byWorkload("nobody@test-project.iam.gserviceaccount.com"), provider.Denied, workload + ".serviceAccountEmail: Google knows no such service account"},
		"Operator":        {"The operator's own key may be deleted.", byOperator, provider.Denied, "spec.auth: not set, and Google does not accept the operator's own identity"},
		"KeyScope":        {"A scope may not exist.", scopes(asKey), provider.Invalid, "spec.scopes: Google knows no such scope"},
		"WorkloadScope":   {"It may not exist for a pool.", scopes(byWorkload("")), provider.Invalid, "spec.scopes: Google knows no such scope"},
		"ImpersonalScope": {"Nor for who is impersonated, where Google does not say what is wrong.", scopes(byWorkload(account)), provider.Invalid, "or the scopes that are asked for"},
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
		fails(t, "A scope may not exist for the operator.", err, provider.Invalid, "spec.scopes: Google knows no such scope", nowhere)
	})
	t.Run("OperatorNobody", func(t *testing.T) {
		operatorKey(t, []byte("hunter2"))
		_, err := client(t, srv, byOperator).Generate(soon(t))
		fails(t, "The operator may have no identity.", err, provider.Denied, "the operator has no Google identity of its own")
	})
	t.Run("MachineNobody", func(t *testing.T) {
		operatorMachine(t, start(t, emulator.WithMachine("")))
		_, err := client(t, srv, byOperator).Generate(soon(t))
		fails(t, "Nor may its machine.", err, provider.Denied, "Google does not accept the operator's own identity")
	})
	t.Run("MachineScope", func(t *testing.T) {
		operatorMachine(t, srv)
		_, err := client(t, srv, scopes(byOperator)).Generate(soon(t))
		fails(t, "The metadata server does not say what is wrong.", err, provider.Denied, "Google does not accept the operator's own identity", nowhere)
	})
}

// TestFaults has the last call of each way to log in go wrong.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"NoExpiry":  {"A token that would be good forever is none.", emulator.Fault{Body: emulator.BodyNoExpiry}, provider.Unavailable, "cannot log in: "},
		"Throttled": {"Google may ask for fewer calls.", emulator.Fault{Code: codes.ResourceExhausted, Message: "hunter2"}, provider.Throttled, "fewer calls"},
		"Down":      {"It may be down.", emulator.Fault{Code: codes.Unavailable, Message: "hunter2"}, provider.Unavailable, "status 503"},
		"Forbidden": {"It may refuse for reasons of its own.", emulator.Fault{Code: codes.PermissionDenied, Message: "hunter2"}, provider.Denied, "spec.auth"},
	}
	for name, m := range methods() {
		for fault, tc := range cases {
			t.Run(name+"/"+fault, func(t *testing.T) {
				srv := start(t)
				c := client(t, srv, m.with(t, srv))
				tc.fault.Method = m.calls[len(m.calls)-1]
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
		"One":  {"What passes is tried again.", 1, true},
		"None": {"Unless nothing is to be tried again.", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, srv, func(g *generator) { g.Spec.RetrySettings.MaxRetries = &tc.max })
			defer srv.Inject(emulator.Fault{Method: emulator.MethodToken, Code: codes.Unavailable, Times: 1})()
			if _, err := c.Generate(soon(t)); (err == nil) != tc.ok {
				t.Errorf("%s\n%v", tc.reason, err)
			}
		})
	}
}

// TestHang gives up logins that hang, in each of the ways to log in.
func TestHang(t *testing.T) {
	for name, m := range methods() {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv, m.with(t, srv))
			defer srv.Inject(emulator.Fault{Hang: true})()
			ended := make(chan error, 1)
			begin := func(ctx context.Context) {
				t.Helper()
				n := srv.Calls("")
				go func() { _, err := c.Generate(ctx); ended <- err }()
				if err := srv.WaitForCalls(soon(t), "", n+1); err != nil {
					t.Fatal(err)
				}
			}
			wait := func() error {
				select {
				case err := <-ended:
					return err
				case <-time.After(10 * time.Second): // On its own a request ends after 15 s, or is tried again.
					t.Fatal("it hangs")
					return nil
				}
			}
			ctx, giveUp := context.WithCancel(t.Context())
			begin(ctx)
			giveUp()
			fails(t, "It ends with its caller.", wait(), provider.Unavailable, "Google did not answer in time")
			begin(t.Context())
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			fails(t, "It ends with the client.", wait(), provider.Unavailable, "Google did not answer in time")
		})
	}
}

func TestCapabilities(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	if diff := cmp.Diff([]string{provider.CapabilityGenerate, provider.CapabilityCheck}, provider.Capabilities(c)); diff != "" {
		t.Errorf("Google prolongs no access token, and revokes none: capabilities: -want, +got:\n%s", diff)
	}
}
