//go:build linux

// Command qemufaults shows what QEMU itself does wrong in a live migration. It starts two
// QEMUs, speaks QMP to them and passes their migration through a relay of its own: nothing of
// godwit's backends takes part, only the test guest. docs/known-hypervisor-faults.md says
// what follows from what it shows.
//
//	qemufaults [-qemu PROGRAM] [-accel kvm|tcg] [-rounds N] [-stop] postcopy-resume
//	qemufaults [-qemu PROGRAM] [-accel kvm|tcg] [-rounds N] [-cut] [-rate N] lost-writes
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	qemu, accel string
	rounds      int
	stop, cut   bool
	rate        int64
	slow        time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.qemu, "qemu", "qemu-system-x86_64", "the QEMU to look at")
	flag.StringVar(&o.accel, "accel", "tcg", "its accelerator: kvm or tcg")
	flag.IntVar(&o.rounds, "rounds", 1, "how often to try")
	flag.BoolVar(&o.stop, "stop", false, "postcopy-resume: stop the guest before post-copy begins")
	flag.BoolVar(&o.cut, "cut", false, "lost-writes: cut the link for a moment on the way")
	flag.Int64Var(&o.rate, "rate", 1<<20, "lost-writes: bytes of pages that the guest writes a second")
	flag.DurationVar(&o.slow, "slow", 0, "lost-writes: over a narrow link so long")
	flag.Parse()
	run := map[string]func(options) (string, error){
		"postcopy-resume": postcopyResume, "lost-writes": lostWrites}[flag.Arg(0)]
	if run == nil {
		flag.Usage()
		os.Exit(2)
	}
	if version, err := exec.Command(o.qemu, "--version").Output(); err == nil {
		fmt.Println(strings.SplitN(string(version), "\n", 2)[0]+",", o.accel)
	}
	outcomes := map[string]int{}
	for range o.rounds {
		outcome, err := run(o)
		if err != nil {
			outcome = "error: " + err.Error()
		}
		outcomes[outcome]++
	}
	for outcome, n := range outcomes {
		fmt.Printf("%4d × %s\n", n, outcome)
	}
}
