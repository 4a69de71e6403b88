package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

// mixes is the number of objects of three modules that are created, one after another.
const mixes = 30

// vaultServer names the environment variable with the path of the Vault server for tests; `make bench` sets it.
const vaultServer = "VAULT_TEST_SERVER"

// Mixed measures how long an object with values from AWS, Vault and a generated password waits for its Secret,
// with one process for each module.
func Mixed(ctx context.Context, r *Report) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) { return struct{}{}, mixed(ctx, s, r) })
	return err
}

func mixed(ctx context.Context, s *stack.Stack, r *Report) error {
	v, err := startVault()
	if err != nil {
		return err
	}
	defer v.stop()
	const ns = "mixed"
	if err := errors.Join(s.CreateNamespace(ctx, ns), s.AWSStore(ctx, ns, "store"), s.VaultStore(ctx, ns, "vault", v.Address, "secret", v.RootToken),
		s.Admin.Create(ctx, &passwordv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pw"}}),
		v.post("sys/mounts/secret", `{"type":"kv","options":{"version":"2"}}`)); err != nil {
		return err
	}
	for _, module := range []string{stack.ProviderAWS, stack.ProviderVault, stack.GeneratorPassword} {
		p, err := s.StartModule(ctx, module)
		if err != nil {
			return err
		}
		defer func() { _ = p.Kill() }()
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return err
	}
	defer seen.stop()
	var waits []time.Duration
	for i := range mixes + 1 {
		o := Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("mix-%02d", i)}, Key: fmt.Sprintf("mixed/%02d", i)}
		s.AWS.Put(o.Key, value(o))
		if err := v.post("secret/data/"+o.Key, `{"data":{"host":"db"}}`); err != nil {
			return err
		}
		start := time.Now()
		if err := s.Admin.Create(ctx, externalSecret(o, func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
				SecretKey: "host", RemoteRef: v1alpha1.RemoteRef{Key: o.Key, Property: "host"},
				SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "VaultKV", Name: "vault"}},
			})
			es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "Password", Name: "pw"}}}}
		})); err != nil {
			return err
		}
		last, err := seen.wait(ctx, []Object{o})
		if err != nil {
			return err
		}
		if i > 0 { // The first object waits for the modules to start.
			waits = append(waits, last.Sub(start))
		}
	}
	r.Add(Row{Scenario: "mixed", What: "AWS, Vault and a password, create to Secret: p50", Value: percentile(waits, 50), Unit: "s"})
	r.Add(Row{Scenario: "mixed", What: fmt.Sprintf("the same: slowest of %d", mixes), Value: percentile(waits, 100), Unit: "s", Bound: atMost(2)})
	return nil
}

// vault is a real Vault server.
type vault struct {
	Address   string `json:"address"`
	RootToken string `json:"rootToken"`
	stop      func()
}

func startVault() (*vault, error) {
	path := os.Getenv(vaultServer)
	if path == "" {
		return nil, fmt.Errorf("%s does not name the Vault server for tests; run make bench", vaultServer)
	}
	dir, err := os.MkdirTemp("", "direct-secrets-vault-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-listen", "127.0.0.1:0", "-data", dir, "-until-eof") //nolint:noctx,gosec // It ends with its input; the path is the caller's.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	v := &vault{stop: func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		v.stop()
		return nil, fmt.Errorf("Vault did not start: %w", err) //nolint:staticcheck // A name.
	}
	return v, nil
}

// post writes to Vault with the root token.
func (v *vault) post(path, body string) error {
	req, err := http.NewRequest(http.MethodPost, v.Address+"/v1/"+path, bytes.NewBufferString(body)) //nolint:noctx // A loopback address.
	if err != nil {
		return err
	}
	req.Header.Set("X-Vault-Token", v.RootToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("vault answers %s to %s", resp.Status, path)
	}
	return nil
}

// has reports whether the root token finds a secret in Vault.
func (v *vault) has(path string) (bool, error) {
	req, err := http.NewRequest(http.MethodGet, v.Address+"/v1/"+path, nil) //nolint:noctx // A loopback address.
	if err != nil {
		return false, err
	}
	req.Header.Set("X-Vault-Token", v.RootToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	return resp.StatusCode == http.StatusOK, resp.Body.Close()
}
