package provider_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestLimitAnswer(t *testing.T) {
	tooLarge := provider.NewError(provider.Unavailable, "the provider's answer is larger than 2 KiB; check the address, and store a smaller value")
	const most = 2 << 10
	cases := map[string]struct {
		reason    string
		size, got int
		err       error
	}{
		"Empty": {"An empty answer is one.", 0, 0, nil},
		"Most":  {"An answer of the largest size arrives whole.", most, most, nil},
		"More":  {"One byte more is an error, not a shorter answer.", most + 1, most, tooLarge},
		"Much":  {"What comes after it is not read.", 100 * most, most, tooLarge},
	}
	readers := map[string]func(io.Reader) io.Reader{"Whole": func(r io.Reader) io.Reader { return r }, "Bytes": iotest.OneByteReader, "DataErr": iotest.DataErrReader}
	for name, tc := range cases {
		for how, reader := range readers {
			t.Run(name+how, func(t *testing.T) {
				sent := bytes.NewReader(make([]byte, tc.size))
				got, err := io.ReadAll(provider.LimitAnswer(io.NopCloser(reader(sent)), most))
				if diff := cmp.Diff(tc.err, err); diff != "" || len(got) != tc.got {
					t.Errorf("%s\nread %d bytes, want %d; error: -want, +got:\n%s", tc.reason, len(got), tc.got, diff)
				}
				if read := tc.size - sent.Len(); read > most+1024 { // DataErrReader reads ahead.
					t.Errorf("%s\n%d bytes were taken from the connection", tc.reason, read)
				}
			})
		}
	}
}
