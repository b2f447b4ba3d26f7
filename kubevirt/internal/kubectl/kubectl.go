// Package kubectl has the commands of the plugin kubectl godwit.
package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/migrations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

const long = `Drain nodes of a cluster with KubeVirt, and see why a VM stays where it is.

The commands use your kubeconfig and your rights. drain needs the controller godwit-kubevirt in the cluster; plan,
forecast, maintenance, explain and drain --dry-run do not, and change nothing.`

// plugin is what all commands have.
type plugin struct {
	loading   *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	output    string
	prom      string // address of a Prometheus
	now       func() time.Time
}

// Command returns the plugin's command.
func Command() *cobra.Command {
	p := &plugin{loading: clientcmd.NewDefaultClientConfigLoadingRules(), now: time.Now}
	c := &cobra.Command{Use: "kubectl-godwit", Short: "Drain nodes of a cluster with KubeVirt", Long: long,
		SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl godwit"}}
	flags := c.PersistentFlags()
	flags.StringVar(&p.loading.ExplicitPath, "kubeconfig", "", "`FILE` with the cluster and the credentials")
	clientcmd.BindOverrideFlags(&p.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.StringVar(&p.prom, "prometheus", "", "`ADDRESS` of a Prometheus that knows how fast guests write: http://HOST:PORT (default: what past migrations say)")
	flags.StringVarP(&p.output, "output", "o", "", "`FORMAT`: json, yaml or wide")
	c.AddCommand(p.drain(), p.plan(), p.forecast(), p.maintenance(), p.explain(), p.status())
	for _, sub := range c.Commands() {
		sub.PreRunE = func(*cobra.Command, []string) error {
			switch p.output {
			case "", "json", "yaml", "wide":
				return nil
			}
			return fmt.Errorf("--output %q: use json, yaml or wide", p.output)
		}
	}
	return c
}

// open returns a client, and the namespace of the context.
func (p *plugin) open() (client.WithWatch, string, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(p.loading, &p.overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	config.QPS, config.Burst = 50, 100
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", err
	}
	scheme, err := operator.Scheme()
	if err != nil {
		return nil, "", err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	return c, namespace, err
}

// nodes completes names of nodes.
func (p *plugin) nodes(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	cl, _, err := p.open()
	var all corev1.NodeList
	if err != nil || cl.List(c.Context(), &all) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, prefix) {
			names = append(names, all.Items[i].Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// A right is what a command does.
type right struct{ verb, group, resource string }

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

// reading are the rights to look at a cluster.
var reading = []right{{"list", "", "nodes"}, {"list", "", "namespaces"}, {"list", "", "resourcequotas"}, {"list", "", "pods"},
	{"list", "policy", "poddisruptionbudgets"}, {"list", "kubevirt.io", "virtualmachineinstances"},
	{"list", "kubevirt.io", "virtualmachineinstancemigrations"}, {"list", "kubevirt.io", "kubevirts"},
	{"list", migrations.GroupName, migrations.ResourceMigrationPolicies},
	{"list", v1alpha1.Group, "nodeevacuations"}}

// may returns an error that names every right that is missing.
func may(ctx context.Context, c client.Client, rights ...right) error {
	var missing []string
	for _, r := range rights {
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource}}}
		if err := c.Create(ctx, review); err != nil {
			return fmt.Errorf("ask for your rights: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, r.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("you lack rights in all namespaces: %s; ask an administrator for a ClusterRole with them",
		strings.Join(missing, ", "))
}

// look reads the cluster as it is now.
func (p *plugin) look(ctx context.Context, c client.Client) (*evacuate.View, error) {
	if err := may(ctx, c, reading...); err != nil {
		return nil, err
	}
	cluster, err := operator.Cluster(ctx, c)
	if err != nil {
		return nil, err
	}
	if cluster.Pods, err = operator.Pods(ctx, c); err != nil {
		return nil, err
	}
	v := &evacuate.View{Cluster: *cluster, Now: p.now()}
	var evacuations v1alpha1.NodeEvacuationList
	if err := c.List(ctx, &evacuations); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	v.Evacuations = evacuations.Items
	var budgets policyv1.PodDisruptionBudgetList
	if err := c.List(ctx, &budgets); err != nil {
		return nil, err
	}
	v.Budgets = budgets.Items
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(ctx, &pods, client.MatchingLabels{virtv1.AppLabel: "virt-launcher"},
		client.MatchingFieldsSelector{Selector: operator.Unended()}); err != nil {
		return nil, err
	}
	v.Launchers = pods.Items
	return v, nil
}

// print prints a value as JSON or YAML, or else by text.
func (p *plugin) print(out io.Writer, value any, text func(w io.Writer)) error {
	var (
		b   []byte
		err error
	)
	switch p.output {
	case "json":
		b, err = json.MarshalIndent(value, "", "  ")
		b = append(b, '\n')
	case "yaml":
		b, err = yaml.Marshal(value)
	default:
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		text(w)
		return w.Flush()
	}
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}

// errNotDone is that a drain stopped before the node was empty.
var errNotDone = errors.New("the node is not empty: the reasons are above")
