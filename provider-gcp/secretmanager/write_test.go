package secretmanager

import (
	"bytes"
	"context"
	"strings"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const (
	mark = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"
	add  = "AddSecretVersion"
)

// TestConformanceOfRegionalWrites runs the write checks in a location.
func TestConformanceOfRegionalWrites(t *testing.T) {
	const location = "europe-west3"
	srv := start(t)
	h := harness(srv)
	h.Connect = func(ctx context.Context) (provider.Client, error) {
		s := storeOf(srv)
		s.Spec.Location = location
		return s.connect(ctx)
	}
	h.Put = func(_ context.Context, key string, data []byte, _ map[string]string) error {
		srv.Put(key, data, emulator.At(location))
		return nil
	}
	h.Delete = func(_ context.Context, key string) error {
		srv.Delete(key, emulator.At(location))
		return nil
	}
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if !strings.HasPrefix(c.Name, "write/") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("%s:\n%v", c.Reason, err)
			}
		})
	}
	if log := srv.Calls(); !strings.Contains(log[len(log)-1].Name, "/locations/"+location+"/") {
		t.Errorf("the last call was for %s", log[len(log)-1].Name)
	}
}

func target(metadata string) provider.Target {
	t := provider.Target{Key: "db"}
	if metadata != "" {
		t.Metadata = []byte(metadata)
	}
	return t
}

func observe(t *testing.T, c *Client, metadata string) provider.Observed {
	t.Helper()
	o, err := c.Observe(soon(t), target(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestNoValue(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  pb.SecretVersion_State
		want   string // the version that Update creates
	}{
		"None":      {"A secret without a version has no value.", pb.SecretVersion_STATE_UNSPECIFIED, "1"},
		"Disabled":  {"A disabled version is not a value.", pb.SecretVersion_DISABLED, "2"},
		"Destroyed": {"A destroyed version is not a value.", pb.SecretVersion_DESTROYED, "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			note := emulator.Annotations(map[string]string{createdBy: mark})
			srv.Put("db", nil, emulator.Empty(), note)
			if tc.state != pb.SecretVersion_STATE_UNSPECIFIED {
				srv.Put("db", []byte("x"))
				srv.SetState("db", 1, tc.state)
			}
			c := client(t, srv)
			o := observe(t, c, "")
			if o.Data != nil || o.Version != "" || o.Mark != mark || o.ID == "" {
				t.Errorf("%s\nObserve(...) = %+v", tc.reason, o)
			}
			w, err := c.Update(soon(t), target(""), o, []byte("x"))
			if err != nil || w.Version != tc.want || w.ID != o.ID || w.Lost != nil {
				t.Errorf("%s\nUpdate(...) = %+v, %v", tc.reason, w, err)
			}
			if err := c.Delete(soon(t), target(""), o); provider.ClassOf(err) != provider.Conflict {
				t.Errorf("%s\nA secret that has a value now must not be deleted as one without: %v", tc.reason, err)
			}
		})
	}
}

func TestWrittenInBetween(t *testing.T) {
	cases := map[string]struct {
		reason string
		others func(srv *emulator.Server)
		data   string
		want   provider.Written
		class  provider.Class
		part   string
	}{
		"NoOther": {"If the new number follows directly, nothing was lost.", func(*emulator.Server) {}, "ours", provider.Written{Version: "2"}, "", ""},
		"One": {"A value of another writer is returned as lost.", func(srv *emulator.Server) { srv.Put("db", []byte("theirs")) }, "ours",
			provider.Written{Version: "3", Lost: []byte("theirs")}, "", ""},
		"Several": {"Of several values of another writer, the latest is returned, because it was derived from the others.", func(srv *emulator.Server) {
			srv.Put("db", []byte("theirs"))
			srv.Put("db", []byte("latest"))
		}, "ours", provider.Written{Version: "4", Lost: []byte("latest")}, "", ""},
		"Empty": {"An empty value of another writer is returned as lost.", func(srv *emulator.Server) { srv.Put("db", []byte{}) }, "ours", provider.Written{Version: "3", Lost: []byte{}}, "", ""},
		"Disabled": {"A version that another writer disabled again is not returned.", func(srv *emulator.Server) {
			srv.Put("db", []byte("theirs"))
			srv.SetState("db", 2, pb.SecretVersion_DISABLED)
		}, "ours", provider.Written{Version: "3"}, "", ""},
		"Destroyed": {"A version that another writer destroyed is not returned.", func(srv *emulator.Server) {
			srv.Put("db", []byte("theirs"))
			srv.SetState("db", 2, pb.SecretVersion_DESTROYED)
		}, "ours", provider.Written{Version: "3"}, "", ""},
		"Unreadable": {"The error names a version that cannot be read.", func(srv *emulator.Server) {
			srv.Put("db", []byte("theirs"))
			srv.Inject(emulator.Fault{Call: access, Code: codes.PermissionDenied})
		}, "ours", provider.Written{}, provider.Denied, "version 3 was written, and version 2, which another client wrote at the same time, cannot be read to restore it"},
		"Unchecked": {"An unchecked checksum is Unavailable.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: add, Body: emulator.BodyNoPayload})
		}, "ours", provider.Written{}, provider.Unavailable, "did not confirm"},
		"OtherName": {"An answer for another secret is Unavailable.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: add, Body: emulator.BodyOtherName})
		}, "ours", provider.Written{}, provider.Unavailable, "about another secret"},
		"Recreated": {"The version of a secret that was created again starts with 1.", func(srv *emulator.Server) {
			srv.Delete("db")
			srv.Put("db", nil, emulator.Empty())
		}, "ours", provider.Written{Version: "1"}, "", ""},
		"Gone": {"A deleted secret is not created again.", func(srv *emulator.Server) { srv.Delete("db") }, "ours", provider.Written{}, provider.Conflict, "deleted it meanwhile"},
		"Same": {"An unchanged value creates no version.", func(*emulator.Server) {}, "seen", provider.Written{Version: "1"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("seen"))
			c := client(t, srv)
			o := observe(t, c, "")
			tc.others(srv)
			w, err := fake.Writer(c).Update(soon(t), target(""), o, []byte(tc.data))
			switch {
			case tc.class != "":
				fails(t, tc.reason, err, tc.class, tc.part)
			case err != nil:
				t.Errorf("%s\n%s", tc.reason, err)
			default:
				tc.want.ID = o.ID
			}
			if diff := cmp.Diff(tc.want, w); diff != "" {
				t.Errorf("%s\nUpdate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAddsOnce(t *testing.T) {
	three := int32(3)
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		calls  int
		class  provider.Class
		want   string // the current version after the call
	}{
		"Lost":      {"A call without an answer is not repeated, because it may have had its effect.", emulator.Fault{Body: emulator.BodyLost}, 1, provider.Unavailable, "2"},
		"Cut":       {"Unavailable is not retried, because the call may have had its effect.", emulator.Fault{Code: codes.Unavailable}, 1, provider.Unavailable, "1"},
		"Internal":  {"Internal is not retried, because the call may have had its effect.", emulator.Fault{Code: codes.Internal}, 1, provider.Unavailable, "1"},
		"Aborted":   {"Aborted is not retried, because the call may have had its effect.", emulator.Fault{Code: codes.Aborted}, 1, provider.Unavailable, "1"},
		"Throttled": {"Throttling is retried, because the call had no effect.", emulator.Fault{Code: codes.ResourceExhausted, Times: 2}, 3, "", "2"},
		"Login":     {"A rejected token is replaced and the call retried, because it had no effect.", emulator.Fault{Code: codes.Unauthenticated, Times: 1}, 2, "", "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Put("db", []byte("x"))
			c := client(t, srv, func(s *testStore) { s.Spec.RetrySettings.MaxRetries = &three })
			o := observe(t, c, "")
			tc.fault.Call = add
			remove := srv.Inject(tc.fault)
			_, err := c.Update(soon(t), target(""), o, []byte("y"))
			fails(t, tc.reason, err, tc.class, "")
			remove()
			if n, o := srv.Count(add), observe(t, c, ""); n != tc.calls || o.Version != tc.want {
				t.Errorf("%s\n%d calls, want %d; version %s, want %s", tc.reason, n, tc.calls, o.Version, tc.want)
			}
		})
	}
}

func TestCreateIsWhole(t *testing.T) {
	none := provider.Observed{}
	cases := map[string]struct {
		reason string
		faults []emulator.Fault
		class  provider.Class
		want   provider.Observed // none if the secret does not exist
	}{
		"Refused":   {"A secret whose value was denied is deleted.", []emulator.Fault{{Call: add, Code: codes.PermissionDenied}}, provider.Denied, none},
		"Throttled": {"A secret whose value was throttled is deleted.", []emulator.Fault{{Call: add, Code: codes.ResourceExhausted}}, provider.Throttled, none},
		"Cut":       {"A secret whose value was not stored is deleted.", []emulator.Fault{{Call: add, Code: codes.Unavailable}}, provider.Unavailable, none},
		"Lost": {"If the value was stored after all, the secret stays, with the mark.", []emulator.Fault{{Call: add, Body: emulator.BodyLost}}, provider.Unavailable,
			provider.Observed{Data: []byte("x"), Version: "1", Mark: mark}},
		"NotTold": {"If it is unknown whether the value was stored, the secret stays.", []emulator.Fault{{Call: add, Code: codes.PermissionDenied}, {Call: "GetSecretVersion", Code: codes.PermissionDenied}}, provider.Denied,
			provider.Observed{Mark: mark}},
		"Stays": {"If the secret cannot be deleted, it stays with the mark.", []emulator.Fault{{Call: add, Code: codes.PermissionDenied}, {Call: "DeleteSecret", Code: codes.PermissionDenied}}, provider.Denied,
			provider.Observed{Mark: mark}},
		"Changed": {"A secret that another writer changed meanwhile stays.", []emulator.Fault{{Call: add, Code: codes.PermissionDenied}, {Call: "DeleteSecret", Code: codes.FailedPrecondition}}, provider.Denied,
			provider.Observed{Mark: mark}},
		"Known": {"An existing secret is a Conflict.", []emulator.Fault{{Call: "CreateSecret", Code: codes.AlreadyExists}}, provider.Conflict, none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv)
			var undo []func()
			for _, f := range tc.faults {
				undo = append(undo, srv.Inject(f))
			}
			_, err := c.Create(soon(t), target(""), []byte("x"), mark)
			fails(t, tc.reason, err, tc.class, "")
			for _, f := range undo {
				f()
			}
			o, err := c.Observe(soon(t), target(""))
			if cmp.Equal(tc.want, none) {
				fails(t, tc.reason, err, provider.NotFound, "does not exist")
				return
			}
			o.ID, o.Token = "", ""
			if diff := cmp.Diff(tc.want, o); diff != "" || err != nil {
				t.Errorf("%s\nObserve(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestDeleteOnlyWhatWasSeen(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(srv *emulator.Server)
		class   provider.Class
		deleted bool
	}{
		"Same": {"An unchanged secret is deleted.", func(*emulator.Server) {}, "", true},
		"Label": {"A secret with a new label is deleted.", func(srv *emulator.Server) {
			srv.Put("db", nil, emulator.Empty(), emulator.Labels(map[string]string{"a": "b"}))
		}, "", true},
		"Value": {"A secret with a new value is kept.", func(srv *emulator.Server) { srv.Put("db", []byte("theirs")) }, provider.Conflict, false},
		"Mark": {"A secret with another mark is kept.", func(srv *emulator.Server) {
			srv.Put("db", nil, emulator.Empty(), emulator.Annotations(map[string]string{createdBy: "another"}))
		}, provider.Conflict, false},
		"Recreated": {"A new secret with the same number of versions is kept.", func(srv *emulator.Server) {
			srv.Delete("db")
			srv.Put("db", []byte("x"), emulator.Annotations(map[string]string{createdBy: mark}))
		}, provider.Conflict, false},
		"Disabled": {"A secret whose version was disabled is kept.", func(srv *emulator.Server) { srv.SetState("db", 1, pb.SecretVersion_DISABLED) }, provider.Conflict, false},
		"Etag": {"A secret that changes just before the deletion is kept.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: "DeleteSecret", Code: codes.FailedPrecondition})
		}, provider.Conflict, false},
		"Aborted": {"Google's other error for a changed etag is a Conflict, too.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: "DeleteSecret", Code: codes.Aborted})
		}, provider.Conflict, false},
		"Reason": {"The error of a denied deletion names the cause.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: "DeleteSecret", Code: codes.FailedPrecondition, Reason: "BILLING_DISABLED"})
		}, provider.Invalid, false},
		"Lost": {"A deletion without an answer is repeated, and NotFound is then a success.", func(srv *emulator.Server) {
			srv.Inject(emulator.Fault{Call: "DeleteSecret", Body: emulator.BodyLost, Times: 1})
		}, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, srv)
			if _, err := c.Create(soon(t), target(""), []byte("x"), mark); err != nil {
				t.Fatal(err)
			}
			o := observe(t, c, "")
			tc.change(srv)
			err := fake.Writer(c).Delete(soon(t), target(""), o)
			fails(t, tc.reason, err, tc.class, "")
			if _, err := c.Observe(soon(t), target("")); provider.IsNotFound(err) != tc.deleted {
				t.Errorf("%s\nObserve: %v, want it gone: %t", tc.reason, err, tc.deleted)
			}
		})
	}
}

func TestMissingPermissions(t *testing.T) {
	for method, want := range map[string]string{
		"CreateSecret": "secretmanager.secrets.create; grant it roles/secretmanager.admin",
		add:            "secretmanager.versions.add; grant it roles/secretmanager.secretVersionAdder",
	} {
		srv := start(t)
		permission, _, _ := strings.Cut(want, ";")
		srv.Inject(emulator.Fault{Call: method, Code: codes.PermissionDenied, Message: "Permission '" + permission + "' denied", Reason: "IAM_PERMISSION_DENIED"})
		_, err := client(t, srv).Create(soon(t), target(""), []byte("x"), mark)
		fails(t, "The message names the permission, and a role that contains it.", err, provider.Denied, want)
	}
}

func TestLargestValue(t *testing.T) {
	c := client(t, start(t))
	data := bytes.Repeat([]byte("x"), maxSize)
	if _, err := c.Create(soon(t), target(""), data, mark); err != nil {
		t.Fatal(err)
	}
	if o := observe(t, c, ""); !bytes.Equal(data, o.Data) {
		t.Errorf("%d bytes, want %d", len(o.Data), len(data))
	}
}
