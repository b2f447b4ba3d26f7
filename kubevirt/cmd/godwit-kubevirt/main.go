// Command godwit-kubevirt empties the nodes of a cluster with KubeVirt: see docs/kubevirt.md.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no certificates
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

const usage = `godwit-kubevirt empties the nodes that NodeEvacuations name, and migrates VMs with the eviction
strategy External that were asked to leave their node.

It runs in the cluster, or with --kubeconfig outside. Several may run: one of them leads. On SIGTERM it
finishes what it does and lets another lead; migrations go on, since KubeVirt carries them out.

`

func main() {
	var o operator.Options
	flags := flag.CommandLine
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "`ADDRESS` of the metrics; 0 is none")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "`ADDRESS` of /healthz and /readyz")
	flags.BoolVar(&o.LeaderElection, "leader-elect", true, "lead by a Lease, so that one of several acts")
	flags.StringVar(&o.Namespace, "leader-election-namespace", "", "`NAMESPACE` of the Lease (default: the pod's)")
	flags.StringVar(&o.Prometheus, "prometheus", "", "`ADDRESS` of a Prometheus that knows how fast guests write (default: what past migrations say)")
	flag.Parse()
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "godwit-kubevirt takes no arguments, has %q: see --help\n", flags.Args())
		os.Exit(2)
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "godwit-kubevirt:", err)
		os.Exit(1)
	}
}

func run(o operator.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	m, err := operator.New(config, o)
	if err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
