package cli_test

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/cli"
)

// tree is commands with all that a command line can get wrong.
func tree() *cobra.Command {
	run := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "godwit", Args: cobra.NoArgs, RunE: run,
		SilenceErrors: true, SilenceUsage: true}
	plan := &cobra.Command{Use: "plan", Args: cobra.NoArgs, RunE: run}
	drain := &cobra.Command{Use: "drain FLEET HOST…", Args: cobra.MinimumNArgs(2), RunE: run}
	failover := &cobra.Command{Use: "failover FLEET -k N", Args: cobra.ExactArgs(1), RunE: run}
	add := &cobra.Command{Use: "add FILE | NAME --memory SIZE", Args: cobra.ExactArgs(1),
		RunE: run}
	accuracy := &cobra.Command{Use: "accuracy [FILE]", Args: cobra.MaximumNArgs(1), RunE: run}
	drain.Flags().Int("samples", 1, "play `N` worlds")
	drain.Flags().Uint64("seed", 1, "")
	drain.Flags().Bool("json", false, "")
	drain.Flags().Duration("heartbeat", time.Second, "")
	drain.Flags().IP("address", nil, "")
	plan.AddCommand(drain, failover)
	explain := &cobra.Command{Use: "explain VM", Args: cobra.MaximumNArgs(1), RunE: run}
	explain.AddCommand(&cobra.Command{Use: "why", RunE: run})
	root.AddCommand(plan, add, accuracy, explain)
	root.SetOut(io.Discard)
	cli.ExplainUsage(root)
	return root
}

func TestACommandLineIsExplained(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // "" is no error
	}{
		{[]string{"plan", "drain", "f", "a", "b", "--samples=3", "--seed", "7"}, ""},
		{[]string{"accuracy"}, ""},
		{[]string{"plan"}, ""},
		{[]string{"plan", "drain"}, "FLEET HOST… is missing: write godwit plan drain FLEET HOST…"},
		{[]string{"plan", "drain", "f"}, "HOST… is missing: write godwit plan drain FLEET HOST…"},
		{[]string{"plan", "failover", "f", "g", "h"},
			`"g h" is too much: write godwit plan failover FLEET -k N`},
		{[]string{"add"}, "FILE|NAME is missing: write godwit add FILE | NAME --memory SIZE"},
		{[]string{"accuracy", "a", "b"}, `"b" is too much: write godwit accuracy [FILE]`},
		{[]string{"plan", "failovr"}, `there is no command "godwit plan failovr": ` +
			"did you mean failover? see godwit help plan"},
		{[]string{"frobnicate"}, `there is no command "godwit frobnicate": see godwit help`},
		{[]string{"explain", "a", "b"}, `"b" is too much: write godwit explain VM`},
		{[]string{"help", "plan", "drain"}, ""},
		{[]string{"help", "plan", "dran"}, `there is no command "godwit plan dran": ` +
			"did you mean drain? see godwit help plan"},
		{[]string{"help", "frobnicate"},
			`there is no command "godwit frobnicate": see godwit help`},
		{[]string{"plan", "drain", "--sample", "3"}, "godwit plan drain has no flag --sample: " +
			"did you mean --samples? see godwit help plan drain"},
		{[]string{"plan", "drain", "-q"},
			"godwit plan drain has no flag -q: see godwit help plan drain"},
		{[]string{"plan", "drain", "--samples"}, "--samples has no value: write --samples N"},
		{[]string{"plan", "drain", "--samples=many"},
			`--samples needs a whole number, has "many"`},
		{[]string{"plan", "drain", "--seed=-1"},
			`--seed needs a whole number of 0 or more, has "-1"`},
		{[]string{"plan", "drain", "--json=perhaps"},
			`--json needs true or false, has "perhaps"`},
		{[]string{"plan", "drain", "--heartbeat=5"}, `--heartbeat needs a time such as 30s, has "5"`},
		{[]string{"plan", "drain", "--address=x"}, `invalid argument "x" for "--address" flag: ` +
			`failed to parse IP: "x": see godwit help plan drain`},
	} {
		root := tree()
		root.SetArgs(tt.args)
		got := ""
		if err := root.Execute(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}
