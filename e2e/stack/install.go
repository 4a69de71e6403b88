package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Installation describes how modules are deployed: their arguments, environment and ServiceAccounts.
type Installation struct {
	stack      *Stack
	namespace  string
	deployment func(ctx context.Context, module string) (deployment, error)
}

// A deployment holds the settings of one module.
type deployment struct {
	serviceAccount string
	args, env      []string
}

// plain deploys modules with default flags and the permissions that they ship, without the chart.
func plain(s *Stack) *Installation {
	return &Installation{stack: s, namespace: Namespace, deployment: func(_ context.Context, module string) (deployment, error) {
		return deployment{
			serviceAccount: module,
			args:           []string{"--leader-election-namespace=" + Namespace},
			env:            environment(s),
		}, nil
	}}
}

// environment returns variables that point modules at the servers of a stack, and at no others.
func environment(s *Stack) []string {
	all := []string{"AWS_EC2_METADATA_DISABLED=true"}
	for _, service := range []string{"STS", "SECRETS_MANAGER", "SSM"} {
		all = append(all, "AWS_ENDPOINT_URL_"+service+"="+s.AWS.URL())
	}
	return all
}

// Values returns values of the umbrella chart that enable all modules and point them at the servers of the
// stack. Further values are merged at the first level and below global; later ones take precedence.
func (s *Stack) Values(further ...Values) Values {
	env := []any{}
	for _, e := range environment(s) {
		name, value, _ := strings.Cut(e, "=")
		env = append(env, map[string]any{"name": name, "value": value})
	}
	global, all := Values{"extraEnv": env}, Values{}
	for _, m := range Modules() {
		all[m] = Values{"enabled": true}
	}
	for _, v := range further {
		for key, value := range v {
			below, isMap := value.(Values)
			if key != "global" || !isMap {
				all[key] = value
				continue
			}
			for k, value := range below {
				global[k] = value
			}
		}
	}
	all["global"] = global
	return all
}

// Values are values of the umbrella chart.
type Values = map[string]any

// Chart returns the path of the umbrella chart in the checkout of the working directory.
func Chart() (string, error) { return find("charts/direct-secrets") }

// Release returns the Installation of a release of the umbrella chart. Modules that it starts run with the
// arguments, environment and ServiceAccount of their rendered Deployments.
func (s *Stack) Release(release, namespace string) *Installation {
	return &Installation{stack: s, namespace: namespace, deployment: func(ctx context.Context, module string) (deployment, error) {
		return s.deployed(ctx, namespace, release, module)
	}}
}

// deployed reads the settings from the Deployment of a module.
func (s *Stack) deployed(ctx context.Context, namespace, release, module string) (deployment, error) {
	var list appsv1.DeploymentList
	if err := s.Admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{
		"app.kubernetes.io/instance": release, "app.kubernetes.io/name": module,
	}); err != nil {
		return deployment{}, err
	}
	if len(list.Items) != 1 || len(list.Items[0].Spec.Template.Spec.Containers) != 1 {
		return deployment{}, fmt.Errorf("release %s has %d Deployments of %s, want one of one container", release, len(list.Items), module)
	}
	pod := list.Items[0].Spec.Template.Spec
	d := deployment{serviceAccount: pod.ServiceAccountName, args: pod.Containers[0].Args}
	if err := probed(pod); err != nil {
		return deployment{}, fmt.Errorf("the Deployment of %s: %w", module, err)
	}
	// Only the chart creates the ServiceAccount.
	if err := s.Admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: pod.ServiceAccountName}, &corev1.ServiceAccount{}); err != nil {
		return deployment{}, err
	}
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom != nil {
			return deployment{}, fmt.Errorf("the Deployment of %s takes %s from elsewhere, which is not known here", module, e.Name)
		}
		d.env = append(d.env, e.Name+"="+e.Value)
	}
	return d, nil
}

// probed checks the ports and probes of a pod against the flags, because no kubelet uses them here.
func probed(pod corev1.PodSpec) error {
	if pod.AutomountServiceAccountToken == nil || !*pod.AutomountServiceAccountToken {
		return errors.New("its pods get no token of their ServiceAccount")
	}
	c := pod.Containers[0]
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path {
			return fmt.Errorf("nothing asks %s", path)
		}
		port := probe.HTTPGet.Port.StrVal
		at := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
		if at < 0 || !slices.Contains(c.Args, fmt.Sprintf("--health-probe-bind-address=:%d", c.Ports[at].ContainerPort)) {
			return fmt.Errorf("%s is asked at the port %q, where the module does not answer", path, port)
		}
	}
	return nil
}

// StartModule starts a module as it is deployed, with other addresses and further flags. It returns when the
// process answers its health probe.
func (i *Installation) StartModule(ctx context.Context, module string, flags ...string) (*Process, error) {
	binary, err := Binary(module)
	if err != nil {
		return nil, err
	}
	return i.StartBinary(ctx, binary, module, flags...)
}

// StartBinary is StartModule with another binary, for example one of another version.
func (i *Installation) StartBinary(ctx context.Context, binary, module string, flags ...string) (*Process, error) {
	d, err := i.deployment(ctx, module)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := i.Kubeconfig(ctx, module, nil)
	if err != nil {
		return nil, err
	}
	args := slices.Concat(d.args, []string{"--kubeconfig=" + kubeconfig}, flags)
	return i.stack.startProcess(ctx, binary, module, args, d.env)
}

// Kubeconfig writes a kubeconfig for the ServiceAccount of a module, through a Proxy if there is one, and
// returns its path.
func (i *Installation) Kubeconfig(ctx context.Context, module string, through *Proxy) (string, error) {
	d, err := i.deployment(ctx, module)
	if err != nil {
		return "", err
	}
	raw, err := i.stack.ServiceAccountKubeconfig(ctx, i.namespace, d.serviceAccount)
	if err != nil {
		return "", err
	}
	if through != nil {
		cfg, err := clientcmd.Load(raw)
		if err != nil {
			return "", err
		}
		for _, c := range cfg.Clusters {
			c.Server, c.CertificateAuthorityData = through.url, through.ca
		}
		if raw, err = clientcmd.Write(*cfg); err != nil {
			return "", err
		}
	}
	return i.stack.writeKubeconfig(module, raw)
}
