package keyvault

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

// fails checks the class of an error, and a part of its message. No message contains a value.
func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	if err == nil || provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s\nerror %q (%s), want one of class %s with %q", reason, err, provider.ClassOf(err), class, part)
	}
}

// read reads a value, and checks the error if a class is given; ok is false if there is no value.
func read(t *testing.T, c *Client, reason string, ref provider.Ref, class provider.Class, part string) (v provider.Value, ok bool) {
	t.Helper()
	v, err := c.Get(soon(t), ref)
	if class != "" {
		fails(t, reason, err, class, part)
		return v, false
	}
	if err != nil || v.Key != ref.Key {
		t.Fatalf("%s\nGet(...): %v, key %q", reason, err, v.Key)
	}
	return v, true
}

func TestGet(t *testing.T) {
	hour := time.Hour
	srv := start(t)
	put(t, srv, "db", "one")
	first := put(t, srv, "versions", "one")
	put(t, srv, "versions", "two")
	put(t, srv, "disabled", "hunter2", emulator.Disabled())
	old := put(t, srv, "partly", "one")
	put(t, srv, "partly", "hunter2", emulator.Disabled())
	put(t, srv, "expired", "hunter2", emulator.Expires(time.Now().Add(-hour)))
	put(t, srv, "early", "hunter2", emulator.NotBefore(time.Now().Add(hour)))
	put(t, srv, "valid", "one", emulator.NotBefore(time.Now().Add(-hour)), emulator.Expires(time.Now().Add(hour)))
	cases := map[string]struct {
		reason string
		ref    provider.Ref
		want   string
		class  provider.Class
		part   string
	}{
		"Name":        {"The name of a secret is its key.", provider.Ref{Key: "db"}, "one", "", ""},
		"Prefix":      {"The prefix of secrets is optional.", provider.Ref{Key: "secret/db"}, "one", "", ""},
		"Missing":     {"A missing secret is NotFound.", provider.Ref{Key: "none"}, "", provider.NotFound, `secret "none": does not exist`},
		"Latest":      {"Without a version the latest is read.", provider.Ref{Key: "versions"}, "two", "", ""},
		"Version":     {"A version stays readable.", provider.Ref{Key: "versions", Version: first}, "one", "", ""},
		"NoVersion":   {"A missing version is NotFound.", provider.Ref{Key: "versions", Version: strings.Repeat("e", 32)}, "", provider.NotFound, "does not exist"},
		"Disabled":    {"A disabled secret is not missing.", provider.Ref{Key: "disabled"}, "", provider.Invalid, "is disabled; enable it, or add a version"},
		"OldVersion":  {"An enabled version of a secret whose latest one is disabled is read.", provider.Ref{Key: "partly", Version: old}, "one", "", ""},
		"Expired":     {"An expired secret is not used, and not missing.", provider.Ref{Key: "expired"}, "", provider.Invalid, "has expired on "},
		"Early":       {"A secret before its activation is not used, and not missing.", provider.Ref{Key: "early"}, "", provider.Invalid, "is not valid before "},
		"Valid":       {"A secret between its dates is read.", provider.Ref{Key: "valid"}, "one", "", ""},
		"Case":        {"Key Vault ignores the case of a name, and the operator does not.", provider.Ref{Key: "DB"}, "", provider.Invalid, `the secret is named "db"; write the key so`},
		"Path":        {"A path is not a name.", provider.Ref{Key: "db/../versions"}, "", provider.Invalid, "is not the name of a secret"},
		"Long":        {"A long key is cut in the message.", provider.Ref{Key: strings.Repeat("a", 1000)}, "", provider.Invalid, "(1000 characters)"},
		"VersionText": {"A version that cannot exist is rejected.", provider.Ref{Key: "db", Version: "1/../x"}, "", provider.Invalid, "32 hexadecimal digits"},
	}
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, ok := read(t, c, tc.reason, tc.ref, tc.class, tc.part)
			if diff := cmp.Diff(tc.want, string(v.Data)); ok && diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnswers reads a secret while Key Vault fails. Each message says what to do, and contains no text of the answer.
func TestAnswers(t *testing.T) {
	forbidden := func(inner string) emulator.Fault {
		return emulator.Fault{Status: http.StatusForbidden, Code: "Forbidden", Inner: inner, Message: "hunter2"}
	}
	conflict := func(inner string) emulator.Fault {
		return emulator.Fault{Status: http.StatusConflict, Code: "Conflict", Inner: inner, Message: "hunter2"}
	}
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		class  provider.Class
		part   string
		after  time.Duration
	}{
		"Policy":     {"An access policy denies it.", forbidden("AccessDenied"), provider.Denied, "add the permission Get of secrets to the policy of the identity", 0},
		"ByPolicy":   {"The other code of an access policy means the same.", forbidden("ForbiddenByPolicy"), provider.Denied, "add the permission Get of secrets to the policy of the identity", 0},
		"RBAC":       {"A role is missing.", forbidden("ForbiddenByRbac"), provider.Denied, "Key Vault Secrets User", 0},
		"Firewall":   {"The firewall is not a missing role.", forbidden("ForbiddenByFirewall"), provider.Denied, "the firewall of the vault blocks the operator's address", 0},
		"Connection": {"A private endpoint is required.", forbidden("ForbiddenByConnection"), provider.Denied, "private endpoint", 0},
		"Forbidden":  {"An unknown cause is still a denial.", forbidden("New"), provider.Denied, "access denied", 0},
		"Deleted":    {"A soft-deleted secret is a conflict, not a missing one.", conflict("ObjectIsDeletedButRecoverable"), provider.Conflict, "is soft-deleted; recover or purge it", 0},
		"Deleting":   {"A secret that is being deleted is a conflict.", conflict("ObjectIsBeingDeleted"), provider.Conflict, "is being deleted", 0},
		"Conflict":   {"An unknown conflict is retried.", conflict("New"), provider.Conflict, "another client changes it at the same time", 0},
		"RetryAfter": {"The time to wait is passed on.", emulator.Throttled(7 * time.Second), provider.Throttled, "throttles the calls", 7 * time.Second},
		"Throttled":  {"Throttling without a time is retried with back-off.", emulator.Throttled(0), provider.Throttled, "throttles the calls", 0},
		"Bad":        {"A request that Key Vault rejects is invalid.", emulator.Fault{Status: http.StatusBadRequest, Code: "BadParameter", Message: "hunter2"}, provider.Invalid, "rejects the request", 0},
		"Server":     {"An error of the server is Unavailable.", emulator.Fault{Status: http.StatusBadGateway, Code: "BadGateway", Message: "hunter2"}, provider.Unavailable, "the status 502", 0},
		"OtherCode":  {"A 404 with another code is not a missing secret.", emulator.Fault{Status: http.StatusNotFound, Code: "VaultNotFound", Message: "hunter2"}, provider.Unavailable, "the status 404", 0},
		"NoCode":     {"A 404 of another server is not a missing secret.", emulator.Fault{Status: http.StatusNotFound}, provider.Unavailable, "the response is not that of Key Vault", 0},
		"NoValue":    {"An answer without a value is not an empty value.", emulator.Fault{Call: emulator.CallGet, Body: emulator.BodyNoValue}, provider.Unavailable, "the response is not that of Key Vault", 0},
		"OtherName":  {"An answer about another secret is not used.", emulator.Fault{Call: emulator.CallGet, Body: emulator.BodyOtherName}, provider.Unavailable, "about another secret", 0},
	}
	srv := start(t)
	put(t, srv, "db", "hunter2")
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.fault.Key = "db"
			defer srv.Inject(tc.fault)()
			_, err := c.Get(soon(t), provider.Ref{Key: "db"})
			fails(t, tc.reason, err, tc.class, tc.part)
			if diff := cmp.Diff(tc.after, provider.RetryAfter(err)); diff != "" {
				t.Errorf("%s\ntime to wait: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRevokedToken revokes the token in use: the next read logs in again, once.
func TestRevokedToken(t *testing.T) {
	srv := start(t)
	put(t, srv, "db", "one")
	c := client(t, srv)
	for round := 1; round <= 3; round++ {
		if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(round, srv.Count(emulator.CallToken)); diff != "" {
			t.Errorf("logins after %d revoked tokens: -want, +got:\n%s", round-1, diff)
		}
		srv.RevokeTokens()
	}
}

func TestFind(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		change func(*emulator.Server)
		want   []string
		class  provider.Class
		part   string
	}{
		"Pages":     {"All pages are read, without the secrets of certificates and the deleted ones.", emulator.Fault{}, nil, []string{"a", "b", "c"}, "", ""},
		"OtherHost": {"A page on another host is not read.", emulator.Fault{Call: emulator.CallList, Body: emulator.BodyOtherHost}, nil, nil, provider.Unavailable, "leads to another host; no request was sent there"},
		"SamePage":  {"A list without an end is an error.", emulator.Fault{Call: emulator.CallList, Body: emulator.BodySamePage}, nil, nil, provider.Unavailable, "repeats the same page"},
		"NoList":    {"An answer without a list is not an empty one.", emulator.Fault{Call: emulator.CallList, Body: emulator.BodyNoValue}, nil, nil, provider.Unavailable, "the response is not that of Key Vault"},
		"NotFound":  {"A vault always has a list.", emulator.Fault{Call: emulator.CallList, Status: http.StatusNotFound, Code: "SecretNotFound"}, nil, nil, provider.Unavailable, "the response is not that of Key Vault"},
		"Denied":    {"A list needs its own permission.", emulator.Fault{Call: emulator.CallList, Status: http.StatusForbidden, Code: "Forbidden", Inner: "ForbiddenByRbac"}, nil, nil, provider.Denied, "listing secrets: access denied"},
		"Disabled": {"A disabled secret fails the query, so that no key is removed.", emulator.Fault{}, func(srv *emulator.Server) {
			put(t, srv, "a", "hunter2", emulator.Disabled())
		}, nil, provider.Invalid, "is disabled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, emulator.WithPageSize(2))
			for _, name := range []string{"a", "b", "c"} {
				put(t, srv, name, "x")
			}
			put(t, srv, "cert", "x", emulator.Managed())
			if tc.change != nil {
				tc.change(srv)
			}
			if tc.fault != (emulator.Fault{}) {
				srv.Inject(tc.fault)
			}
			var got []string
			var failed error
			for v, err := range client(t, srv).Find(soon(t), provider.Query{}) {
				if failed = err; err == nil {
					got = append(got, v.Key)
				}
			}
			if tc.class != "" {
				fails(t, tc.reason, failed, tc.class, tc.part)
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || failed != nil {
				t.Errorf("%s\nFind(...): %v, -want, +got:\n%s", tc.reason, failed, diff)
			}
		})
	}
}
