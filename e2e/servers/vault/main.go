// Command vault is a real Vault server for tests: the core of HashiCorp Vault with only the plugins that the
// tests need. It initialises and unseals itself, prints one line of JSON with its address, and serves on
// loopback until SIGTERM. Its data is not protected: the unseal key is stored next to it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/vault"
)

// options are the flags of the command.
type options struct {
	listen, data string
	cert, key    string
	logLevel     string
	stdin        bool
}

// An announcement is the line that the server prints once it is ready.
type announcement struct {
	Address string `json:"address"`
	credentials
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 picks a free one")
	flag.StringVar(&o.data, "data", "", "`folder` that keeps all data, so that a later start goes on with it; default: in memory")
	flag.StringVar(&o.cert, "tls-cert", "", "`file` with the server's certificate; with it the server speaks TLS, and asks for client certificates")
	flag.StringVar(&o.key, "tls-key", "", "`file` with the key of the certificate")
	flag.StringVar(&o.logLevel, "log-level", "error", "of what goes to stderr")
	flag.BoolVar(&o.stdin, "until-eof", false, "end when standard input does, so that nothing is left when whoever started it dies")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if o.stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // An error means the end, too.
			stop()
		}()
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1) //nolint:gocritic // stop only ends the watch for signals
	}
}

// run serves until ctx ends.
func run(ctx context.Context, o options) error {
	logger := hclog.New(&hclog.LoggerOptions{Name: "vault", Level: hclog.LevelFromString(o.logLevel), Output: os.Stderr})
	core, creds, err := start(ctx, o.data, logger)
	if err != nil {
		return err
	}
	l, scheme, err := listen(o)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
			Core:           core,
			ListenerConfig: &configutil.Listener{},
		}),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          logger.StandardLogger(nil),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	if err := json.NewEncoder(os.Stdout).Encode(announcement{scheme + "://" + l.Addr().String(), creds}); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	return errors.Join(srv.Close(), core.Shutdown())
}

func listen(o options) (l net.Listener, scheme string, err error) {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, "", err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, "", fmt.Errorf("%s is not on loopback, and this server is for tests only", o.listen)
	}
	l, err = net.Listen("tcp", o.listen)
	if err != nil || o.cert == "" {
		return l, "http", err
	}
	l, err = withTLS(l, o.cert, o.key)
	return l, "https", err
}
