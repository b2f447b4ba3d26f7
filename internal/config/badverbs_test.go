package config_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
)

// bad is an event that is refused, and what the error says.
type bad struct{ text, want string }

const methods = "Host, Domains, Domain, Receive, Migrate, Progress, Adjust, Do, Start, Stop, " +
	"Kill, Reboot, Pause, Unpause, Activate, Discard, Resume, Abandon, Release, Resize, " +
	"Forget, AttachDisk, DetachDisk, MoveDisk, SwitchDisk, EndDiskMove, Cancel, " +
	"StartPostCopy, PauseGuest, SetDowntime, SetBandwidth"

// badVerbs has a mistake for every verb.
var badVerbs = []bad{
	{"drain", `a host is missing`},
	{"drain n9", `there is no host "n9"`},
	{"drain n1 unmovable=Kill", `unmovable: unknown choice "Kill" for VMs that cannot be migrated; use Keep, ShutDown or Restart`},
	{"drain n1 grace=x", `grace=: "x" is no duration; write 150s, 900ms or 1h30m`},
	{"release web-1", "by= is missing: name the requester"},
	{"undrain web-1", `there is no host "web-1"`},
	{"cordon n1 n2", `"n2" does not belong here; write: cordon HOST`},
	{"uncordon n1 for=1m", `"for=1m" does not belong here; write: uncordon HOST`},
	{"mark", `a VM is missing`},
	{"mark db", `there is no VM "default/db"`},
	{"unmark other/web-1", `there is no VM "other/web-1"`},
	{"pause other/web-1", `there is no VM "other/web-1"`},
	{"resume other/web-1", `there is no VM "other/web-1"`},
	{"migrate web-1 to=n9", `there is no host "n9"`},
	{"migrate web-1 to=", `to= says nothing`},
	{"migrate web-1 to=n2 to=n3", `to= is there twice`},
	{"migrate web-1 to=n2 force=perhaps", `force: "perhaps" is no force: want absent, no or yes`},
	{"migrate web-1 to=n2 compat=1", "compat=1: use yes or no"},
	{"migrate web-1 priority=high",
		`priority "high": use system-critical, user-triggered or system-maintenance`},
	{"cancel n1", `there is no VM "default/n1"`},
	{"delete web-1 db", `"db" does not belong here; write: delete VM`},
	{"stop /", `there is no VM "/"`},
	{"start web-9", `there is no VM "default/web-9"`},
	{"reboot", `a VM is missing`},
	{"reboot web-1 web-1", `"web-1" does not belong here; write: reboot VM`},
	{"attach-disk web-1 data", `a disk has a name of lower-case letters, digits and -, and a path: write attach-disk VM data path=/nfs/data`},
	{"attach-disk web-1 Data path=/nfs/data", `a disk has a name of lower-case letters, digits and -, and a path: write attach-disk VM data path=/nfs/data`},
	{"detach-disk web-1", `a disk is missing`},
	{"move-disk web-1 data path=here", `a disk moves to an absolute path: write move-disk VM data path=/nfs/data`},
	{"resize web-1", `a VM has memory and CPUs: write memory=, cpus= or both, above zero`},
	{"resize web-1 cpus=0", `a VM has memory and CPUs: write memory=, cpus= or both, above zero`},
	{"resize web-1 cpus=-1", `cpus=: "-1" is no count`},
	{"resize web-1 memory=8", `memory: "8" has no unit of memory; write 64GiB, 512MiB or 4KiB`},
	{"resize web-1 cpus=2 disk=8GiB",
		`"disk=8GiB" does not belong here; write: resize VM [memory=SIZE] [cpus=N]`},
	{"hold web-1", `what holds the VM is missing`},
	{"hold web-1 disk", `"disk" holds no VM: use backup, utility, hotplug, cpu or memory`},
	{"unhold web-1 backups",
		`"backups" holds no VM: use backup, utility, hotplug, cpu or memory`},
	{"detach web-9", `there is no VM "default/web-9"`},
	{"claim web-1", `by= is missing: name a migration, or none`},
	{"load web-1 rate=200 hot=1GiB",
		`rate: "200" has no unit of speed; write 10Gbit/s or 800MiB/s`},
	{"load web-1 rate=1MiB/s", `hot: "" has no unit of memory; write 64GiB, 512MiB or 4KiB`},
	{"load web-1 rate=1MiB/s hot=-1GiB", `hot: "-1GiB" is no amount of memory: it is negative`},
	{"load web-1 rate=1MiB/s hot=5GiB", `hot: 5GiB is more than the memory, 4GiB`},
	{"configure", `bandwidth: "" has no unit of speed; write 10Gbit/s or 800MiB/s`},
	{"crash-controller", `for=TIME is missing: how long does it last?`},
	{"crash-controller n1 for=1s",
		`"n1" does not belong here; write: crash-controller for=TIME [after=WRITES]`},
	{"crash-agent n1 for=1s after=-1", `after=: "-1" is no count`},
	{"crash-agent n1 for=10", `for=: "10" is no duration; write 150s, 900ms or 1h30m`},
	{"drop-notifications for=1s", `a host, or controller, is missing`},
	{"drop-notifications n1 for=-1s", `for=: "-1s" is negative`},
	{"repeat n1 times=2", `"times=2" does not belong here; write: repeat HOST|controller`},
	{"stale-reads n1", `for=TIME is missing: how long does it last?`},
	{"stale-reads n1 for=0s", `for=TIME is missing: how long does it last?`},
	{"conflict n1", `there is no VM "default/n1"`},
	{"mute n1 times=x", `times=: "x" is no count`},
	{"full-store", `for=TIME is missing: how long does it last?`},
	{"crash-hypervisor controller for=1m", `there is no host "controller"`},
	{"break n1", `how=: use FailBefore, FailAfter, Hang, LateAnswer, LateEffect`},
	{"break n1 how=fail", `how=: use FailBefore, FailAfter, Hang, LateAnswer, LateEffect`},
	{"break n1 how=Hang op=Migrat", `op=: use ` + methods},
	{"break n1 how=Hang delay=soon", `delay=: "soon" is no duration; write 150s, 900ms or 1h30m`},
	{"cut n1", `a host is missing`},
	{"cut n1 n2 for=", `for= says nothing`},
	{"cut n1 n2 by=1s", `"by=1s" does not belong here; write: cut HOST HOST [for=TIME]`},
	{"reset n1 web-1", `there is no host "web-1"`},
	{"kill web-1", `a host is missing`},
	{"kill n1 web-1", `there is no VM "default/n1"`},
	{"crash n1 for=9999999h", `for=: "9999999h" is no duration; write 150s, 900ms or 1h30m`},
	{"crash n1 for=900000h", `for=: "900000h" is longer than a hundred years`},
	{"fence n1 now", `"now" does not belong here; write: fence HOST`},
	{"return", `a host is missing`},
	{"second-agent n1 directory=lost", `directory=lost: use copied or new`},
	{"backup n1", `"n1" does not belong here; write: backup`},
	{"set-back forgotten=perhaps", `forgotten=perhaps: use yes or no`},
	{"reconcile n1", `"n1" does not belong here; write: reconcile`},
	{"second-agent n9", `there is no host "n9"`},
	{"empty-directory", `a host is missing`},
	{"empty-directory n1 for=long", `for=: "long" is no duration; write 150s, 900ms or 1h30m`},
	{"adopt web-1", `there is no host "web-1"`},
	{"confirm-down n1 n2", `"n2" does not belong here; write: confirm-down HOST`},
	{"skew n1 by=--5s", `by=: "-5s" is negative`},
	{"skew n1 by=5", `by=: "5" is no duration; write 150s, 900ms or 1h30m`},
}

// badTimes has mistakes in what comes before the verb.
var badTimes = []bad{
	{"", `a verb is missing`},
	{"   ", `a verb is missing`},
	{"10s", `a verb is missing`},
	{"for=1m", `a verb is missing`},
	{"10 drain n1", `"10" is no duration; write 150s, 900ms or 1h30m`},
	{"10sec drain n1", `"10sec" is no duration; write 150s, 900ms or 1h30m`},
	{"900000h drain n1", `"900000h" is longer than a hundred years`},
	{"when web-1=Running", `a verb is missing`},
	{"when web-9=Running drain n1", `there is no VM "default/web-9"`},
	{"when =Running drain n1", `there is no VM "default/"`},
	{"when web-1=Sleeping drain n1", `when VM=PHASE: "Sleeping" is no phase`},
	{"when web-1 drain n1", `when VM=PHASE: "" is no phase`},
	{"when web-1=Running drain n9", `there is no host "n9"`},
	{"drain " + strings.Repeat("n", 500), `an event has at most 500 characters`},
}

func TestBadEventsAreExplained(t *testing.T) {
	s := parse(t, small)
	for _, tt := range append(badTimes, badVerbs...) {
		t.Run(tt.text, func(t *testing.T) {
			e, err := s.Event(tt.text)
			if err == nil {
				t.Fatalf("%q means %#v", tt.text, e.What)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("the error is\n%s\nwant\n%s", got, tt.want)
			}
			if e.What != nil {
				t.Errorf("there is an error and an event, %#v", e.What)
			}
		})
	}
}

func TestAnUnknownVerbIsAnsweredWithAll(t *testing.T) {
	s := parse(t, small)
	for _, text := range []string{"explode n1", "5s Drain n1", "-5s drain n1", "when"} {
		_, err := s.Event(text)
		if err == nil {
			t.Errorf("%q means something", text)
			continue
		}
		for _, usage := range config.Verbs() {
			if !strings.Contains(err.Error(), "\n  "+usage) {
				t.Errorf("the answer to %q does not say %q", text, usage)
			}
		}
	}
}
