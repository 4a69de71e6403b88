package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/migrate"
)

// The exit codes of migrate.
const (
	exitChanged      = 1
	exitUnsupported  = 2
	exitNotConverted = 3
)

// migration are the flags of migrate.
type migration struct {
	files []string
	roles []string
	// stores are what stores become that are not in the input.
	stores []string
	// accounts are ServiceAccounts of the pods that mount a SecretProviderClass.
	accounts []string
	gke      string
	cluster  bool
	// inPlace edits the files where they are, and dryRun prints that as a diff. verify builds kustomizations before and afterwards.
	inPlace, dryRun, verify bool

	out    string
	values string
	report string
	// accept is a report whose findings are accepted.
	accept  string
	cutover cutoverFlags
}

func newMigrate(o *options) *cobra.Command {
	m := &migration{}
	c := &cobra.Command{
		Use:   "migrate {-f FILE|DIR|- ... | --cluster}",
		Short: "Convert manifests of other secret operators",
		Long: `migrate converts objects of External Secrets Operator and its reloader, Vault Secrets Operator and the Secrets Store CSI driver to
those of direct-secrets, and reports on each field. It moves annotations of Stakater's Reloader to the ExternalSecrets. It knows the fields of External Secrets Operator 1.0 to 2.9. Unless --execute or
--revert is given, it changes nothing in the cluster, and reads no value of a secret.

Objects of other tools, and objects that cannot be converted, stay as they are. So do comments, the order of documents, and all text
that needs no change. --in-place edits the files where they are: to undo that, use Git. --dry-run prints the changes as a diff.

With --cluster --execute, it moves ExternalSecrets, PushSecrets and (with -A) ClusterExternalSecrets of the cluster one by one:
direct-secrets takes over the Secret, which keeps its UID and data. An object of which anything is in doubt is left to External
Secrets Operator. If the command is stopped, run it again; it goes on from there. --cluster --revert gives back what was moved.

Exit codes: 0 all is exact, 1 something changes, 2 something cannot be converted, 3 the command failed. With --execute or --revert:
0 all is moved or given back, 2 something is left as it was, 3 something failed.`,
		Example: `  dsctl migrate -f . --in-place --values chart-values.yaml
  dsctl migrate -f manifests/ --out converted/ --values chart-values.yaml
  dsctl migrate -f externalsecret.yaml --cluster
  helm template shop ./chart | dsctl migrate -f -
  dsctl migrate --cluster --execute -n shop
  dsctl migrate --cluster --revert -n shop --selector app=db`,
		Args: func(c *cobra.Command, args []string) error { return o.notConverted(cobra.NoArgs(c, args)) },
		RunE: func(c *cobra.Command, _ []string) error { return o.notConverted(o.migrate(c.Context(), m)) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return o.notConverted(err) })
	c.Flags().StringArrayVarP(&m.files, "filename", "f", nil, "File or folder of manifests; - is standard input. Repeat it for several.")
	c.Flags().BoolVar(&m.cluster, "cluster", false, "With -f: look up stores, generators and ServiceAccounts in the cluster. Alone: convert the objects of the cluster.")
	c.Flags().StringArrayVar(&m.roles, "role", nil, "Role of a ServiceAccount, as NAMESPACE/NAME=ARN, in place of its annotation.")
	c.Flags().StringArrayVar(&m.stores, "store", nil, "Kind that a store becomes which is not in the input, as SecretStore/[NAMESPACE/]NAME=KIND or ClusterSecretStore/NAME=KIND. KIND of Vault is VaultKV:PATH.")
	c.Flags().StringArrayVar(&m.accounts, "service-account", nil, "ServiceAccount of the pods that mount a SecretProviderClass, as NAMESPACE/CLASS=NAME. Default: that of the workloads in the input.")
	c.Flags().StringVar(&m.gke, "gke-cluster", "", "GKE cluster of pods that log in at Google, as projects/PROJECT/locations/LOCATION/clusters/CLUSTER.")
	c.Flags().BoolVar(&m.inPlace, "in-place", false, "Edit the files of -f where they are.")
	c.Flags().BoolVar(&m.dryRun, "dry-run", false, "With -f: print the changes of the files as a diff, and write no file.")
	c.Flags().BoolVar(&m.verify, "verify", false, "With -f: build each kustomization before and after the conversion, and report how the objects differ. It fetches nothing.")
	c.Flags().StringVar(&m.out, "out", "", "Folder for the converted files. Default: print them.")
	c.Flags().StringVar(&m.values, "values", "", "File for the values of the chart.")
	c.Flags().StringVar(&m.report, "report", "", "File for the report. Default: standard error.")
	c.Flags().StringVar(&m.accept, "accept", "", "Report in JSON. Findings that it has, too, are accepted: they do not count for the exit code.")
	m.cutover.add(c)
	o.addNamespaces(c)
	o.addOutput(c, "wide", "markdown", "json")
	format := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error { return o.notConverted(format(c, args)) }
	c.Flags().Lookup("output").Usage = "Format of the report: wide, markdown, json. Default: text, by cause. wide has each object."
	return c
}

// exitCode ends a command that has printed what it found.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// notConverted prints an error and ends the command with an exit code that is none of a report.
func (o *options) notConverted(err error) error {
	if code := exitCode(0); err == nil || errors.As(err, &code) {
		return err
	}
	o.errs.Error(err)
	return exitCode(exitNotConverted)
}

func (o *options) migrate(ctx context.Context, m *migration) error {
	if m.cutover.JournalNamespace == "" {
		return errors.New("--journal-namespace must not be empty: name a namespace in which tenants cannot write ConfigMaps")
	}
	if m.cutover.execute || m.cutover.revert {
		return o.cutOver(ctx, m)
	}
	if err := m.check(); err != nil {
		return err
	}
	files, options, err := o.input(ctx, m)
	if err != nil {
		return err
	}
	var sources []migrate.Source
	for _, f := range files {
		sources = append(sources, f.Source)
	}
	result, err := migrate.Convert(sources, options)
	if err != nil {
		return err
	}
	if m.verify {
		if err := verify(files, &result, options); err != nil {
			return err
		}
	}
	if err := m.acceptFormer(&result.Report); err != nil {
		return err
	}
	if err := o.writeResult(m, files, result); err != nil {
		return err
	}
	switch result.Report.Verdict() {
	case migrate.Changed:
		return exitCode(exitChanged)
	case migrate.Unsupported:
		return exitCode(exitUnsupported)
	}
	return nil
}

// input reads what is converted, and what is only looked up.
func (o *options) input(ctx context.Context, m *migration) ([]file, migrate.Options, error) {
	options, err := m.options()
	if err != nil {
		return nil, options, err
	}
	if options.Namespace, _, err = o.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, options, fmt.Errorf("cannot tell the namespace: %w", err)
	}
	files, err := o.readSources(m.files)
	if err != nil || !m.cluster {
		return files, options, err
	}
	s, err := o.connect()
	if err != nil {
		return nil, options, err
	}
	namespace := ""
	if n := o.config.Namespace; n != nil && len(m.files) == 0 {
		namespace = *n
	}
	found, others, _, err := clusterSource(ctx, s, m.cutover.Options, namespace, migrate.Knows)
	if len(m.files) == 0 {
		files = append(files, file{Source: found, out: "cluster.yaml"})
	} else {
		options.Context = append(options.Context, found)
	}
	options.Context = append(options.Context, others)
	if err != nil {
		return files, options, err
	}
	workloads, err := o.workloadSource(ctx, s.Client, namespace)
	options.Context = append(options.Context, workloads)
	return files, options, err
}

// acceptFormer marks what the report of --accept has, too.
func (m *migration) acceptFormer(r *migrate.Report) error {
	if m.accept == "" {
		return nil
	}
	raw, err := os.ReadFile(m.accept)
	if err != nil {
		return fmt.Errorf("--accept: %w", err)
	}
	var former migrate.Report
	if err := json.Unmarshal(raw, &former); err != nil {
		return fmt.Errorf("--accept: %s is not a report of dsctl migrate -o json: %w", m.accept, err)
	}
	r.Accept(former)
	return nil
}

// givenStores reads what stores become that are not in the input.
func (m *migration) givenStores(stores map[string]migrate.GivenStore) error {
	for _, s := range m.stores {
		from, to, found := strings.Cut(s, "=")
		if kind, name, ok := strings.Cut(from, "/"); !found || !ok || name == "" || (kind != "SecretStore" && kind != "ClusterSecretStore") {
			return fmt.Errorf("--store: %q is not SecretStore/[NAMESPACE/]NAME=KIND or ClusterSecretStore/NAME=KIND", s)
		}
		store, err := migrate.ParseStore(to)
		switch {
		case err != nil:
			return fmt.Errorf("--store: %w", err)
		case strings.HasPrefix(from, "Cluster") != strings.HasPrefix(to, "Cluster"), strings.HasPrefix(from, "Cluster") && strings.Count(from, "/") > 1:
			return fmt.Errorf("--store: %q: a ClusterSecretStore has no namespace and becomes a cluster Kind, and a SecretStore does not", s)
		}
		stores[from] = store
	}
	return nil
}

// check returns an error if flags do not fit together.
func (m *migration) check() error {
	edits := m.inPlace || m.dryRun
	switch {
	case len(m.files) == 0 && !m.cluster:
		return errors.New("use -f or --cluster")
	case edits && len(m.files) == 0:
		return errors.New("--in-place and --dry-run edit files: name them with -f")
	case edits && slices.Contains(m.files, "-"):
		return errors.New("--in-place and --dry-run edit files, and standard input is none")
	case m.verify && len(m.files) == 0:
		return errors.New("--verify builds files: name them with -f")
	case edits && m.out != "":
		return errors.New("use either --out or --in-place")
	}
	return nil
}

func (m *migration) options() (migrate.Options, error) {
	options := migrate.Options{Roles: map[string]string{}, Accounts: map[string]string{}, Stores: map[string]migrate.GivenStore{}, GKECluster: m.gke}
	if err := m.givenStores(options.Stores); err != nil {
		return options, err
	}
	for _, a := range m.accounts {
		class, account, found := strings.Cut(a, "=")
		if namespace, name, ok := strings.Cut(class, "/"); !found || !ok || namespace == "" || name == "" || account == "" {
			return options, fmt.Errorf("--service-account: %q is not NAMESPACE/CLASS=NAME", a)
		}
		options.Accounts[class] = account
	}
	for _, r := range m.roles {
		account, arn, found := strings.Cut(r, "=")
		if namespace, name, ok := strings.Cut(account, "/"); !found || !ok || namespace == "" || name == "" || !strings.HasPrefix(arn, "arn:") {
			return options, fmt.Errorf("--role: %q is not NAMESPACE/NAME=ARN", r)
		}
		options.Roles[account] = arn
	}
	return options, nil
}
