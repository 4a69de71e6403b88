package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// FuzzKeys sends keys as the SDK does: it joins paths, and puts them into an address.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a", "shop/db", "../x", "a/../../b", "a//b", "%2e%2e%2f", "a?b#c", "．．／x", "a\x00", "a/.", ";", "\xff", "//", "a..b", "..a/b.."} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if (&Client{engine: kv2{}}).checkKey(key) != nil {
			return
		}
		u := url.URL{Scheme: "https", Host: "vault", Path: path.Join("", "/v1/"+kv2{}.read("secret", key))}
		sent, err := url.ParseRequestURI(u.RequestURI())
		if err != nil || sent.Path != "/v1/secret/data/"+key || sent.RawQuery != "" || sent.Host != "" {
			t.Errorf("key %q leads to %+v, %v", key, sent, err)
		}
	})
}

// FuzzAnswers decodes arbitrary answers of a server.
func FuzzAnswers(f *testing.F) {
	for _, raw := range []string{
		`{"errors":[]}`, `{"errors":["x"]}`, `{"errors":null}`, `{"errors":[],"warnings":["x"]}`, `<html>`, ``, `null`, `[]`, `{"data":null}`,
		`{"data":{"data":{"a":"b"},"metadata":{"version":3,"custom_metadata":{"a":"b"}}}}`, `{"data":{"data":null,"metadata":{"version":1,"destroyed":true}}}`,
		`{"data":{"data":{},"metadata":{"version":1e9}}}`, `{"data":{"data":[],"metadata":{"version":-1}}}`, `{"data":[]}`, `{"data":{"a":"b"}}`,
	} {
		f.Add(http.StatusNotFound, []byte(raw))
		f.Add(http.StatusOK, []byte(raw))
	}
	f.Fuzz(func(t *testing.T, status int, raw []byte) {
		_, err := session.Send(t.Context(), func(context.Context) (*api.Response, error) {
			return &api.Response{Response: &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(raw))}}, nil
		})
		var r *session.Refusal
		if errors.As(err, &r) && notThere(r) && (status != http.StatusNotFound || !strings.Contains(strings.ToLower(string(raw)), "errors")) {
			t.Errorf("status %d, %q is taken for a definite answer", status, raw)
		}
		if err != nil && provider.IsNotFound(session.Explain(err, "")) {
			t.Errorf("status %d, %q is NotFound before the mount is known", status, raw)
		}
		for _, e := range []engine{kv1{}, kv2{}} {
			v, err := e.value(provider.Ref{Key: "a", Metadata: true}, session.Answer{Raw: raw})
			if err == nil && (v.Version == "" || v.Metadata == nil && e.version() == "2" || e.version() == "2" && !json.Valid(v.Data)) {
				t.Errorf("%q yields %+v", raw, v)
			}
			if err != nil && provider.ClassOf(err) != provider.Unavailable {
				t.Errorf("%q: error %v, want Unavailable", raw, err)
			}
		}
	})
}
