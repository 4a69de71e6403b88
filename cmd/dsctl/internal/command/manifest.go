package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/manifest"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/offline"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// readFile reads a file; - means standard input.
func (o *options) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(o.in)
	}
	return os.ReadFile(name)
}

// readManifest reads the ExternalSecrets of a manifest, and skips other objects. namespace is the default for
// objects without one.
func (o *options) readManifest(name, namespace string) ([]*v1alpha1.ExternalSecret, error) {
	raw, err := o.readFile(name)
	if err != nil {
		return nil, err
	}
	var all []*v1alpha1.ExternalSecret
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		es := &v1alpha1.ExternalSecret{}
		if err := yaml.Unmarshal(doc, &es.TypeMeta); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if es.GroupVersionKind().GroupKind() != v1alpha1.GroupVersion.WithKind(snapshot.ExternalSecret).GroupKind() {
			continue
		}
		if err := manifest.Decode(doc, es); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if es.Namespace == "" {
			es.Namespace = namespace
		}
		all = append(all, es)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no ExternalSecret of %s", name, v1alpha1.Group)
	}
	return all, nil
}

// readValues reads a file with values.
func (o *options) readValues(name string) (inspect.Remote, error) {
	raw, err := o.readFile(name)
	if err != nil {
		return inspect.Remote{}, err
	}
	remote, err := offline.ParseValues(raw)
	if err != nil {
		return inspect.Remote{}, fmt.Errorf("%s: %w", name, err)
	}
	return remote, nil
}
