//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// apart opens two hosts whose libvirtds cannot connect to each other by the names that
// this process knows them by.
func apart(t testing.TB, change func(*libvirt.Config)) *trial {
	t.Helper()
	at := func(n name) string { return "qemu+tcp://nowhere." + string(n) + ".invalid/system" }
	return newTrial(t, func(c *libvirt.Config) {
		c.Direct, c.Peer = true, at(c.Name)
		uris := map[string]string{}
		for _, n := range []name{hosta, hostb} {
			uris[at(n)] = string(n)
		}
		reach := c.Reach
		c.Reach = func(peer string) string {
			if n := uris[peer]; n != "" {
				return reach("qemu+tcp://" + n + "/system")
			}
			return peer
		}
		if change != nil {
			change(c)
		}
	})
}

// Where the hosts' libvirtds do not reach each other, this process leads.
func TestADirectMigrationIsLedByThisProcess(t *testing.T) {
	w := apart(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	w.begin("live", vm.ID, transferOptions{Bandwidth: hypervisor.Bandwidth(mib)})
	w.Uncap("live")
	w.arrives("live", vm.ID)
	w.ends(hostb, vm.ID)

	w.start(hosta, vm)
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.begin("cold", vm.ID, transferOptions{})
	w.Until(hosta, "cold", hypervisor.JobSucceeded)
	w.Becomes(hostb, vm.ID, hypervisor.Shutoff)
	w.Do(hosta, vm.ID, moved("cold", vm.ID, hostb))
	w.ends(hostb, vm.ID)
}

// A direct migration may take longer than a call: the limit of a call does not end it.
func TestADirectMigrationTakesLongerThanACall(t *testing.T) {
	testutil.Long(t) // because no limit is short enough to wait for, and enough for a start on a busy machine
	limit := testutil.Limit(20 * time.Second)
	w := apart(t, func(c *libvirt.Config) { c.Timeout = limit })
	large := calm
	large.Fill = 2 * int64(limit/time.Second) << 20 // it takes twice the limit
	vm := w.vm(traveller, large)
	w.start(hosta, vm)
	w.moving("live", vm.ID, transferOptions{Bandwidth: hypervisor.Bandwidth(mib)})
	time.Sleep(limit + time.Second)
	w.Adjust("live", hypervisor.SetBandwidth{})
	w.arrives("live", vm.ID)
	w.ends(hostb, vm.ID)
}

// disconnect ends all connections to a host's libvirtd, as the end of the processes at
// their other ends would.
func (w *trial) disconnect(n name) {
	w.T.Helper()
	admin := func(args ...string) (string, error) {
		uri := "libvirtd:///system?socket=" +
			w.Outside(string(n), "/run/libvirt/libvirt-admin-sock")
		cmd := exec.CommandContext(testutil.Context(w.T, testutil.DefaultLimit), "virt-admin",
			append([]string{"-q", "-c", uri}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	list, err := admin("client-list", "libvirtd")
	if err != nil {
		w.T.Fatalf("virt-admin: %v: %s", err, list)
	}
	for line := range strings.Lines(list) {
		if id := strings.Fields(line); len(id) > 1 {
			_, _ = admin("client-disconnect", "libvirtd", id[0]) // some go with others
		}
	}
}

// A direct migration ends when the process that leads it does: the VM stays.
func TestADirectMigrationEndsWithItsConnections(t *testing.T) {
	if _, err := exec.LookPath("virt-admin"); err != nil {
		t.Skipf("nothing here can cut a connection of libvirt's: %v", err)
	}
	for what, cut := range map[string][]name{"the source": {hosta}, "the target": {hostb},
		"both": {hosta, hostb}} {
		t.Run(what, func(t *testing.T) {
			w := apart(t, nil)
			vm := w.vm(traveller, restless)
			w.start(hosta, vm)
			w.moving("cut", vm.ID, transferOptions{Bandwidth: slow})
			for _, n := range cut {
				w.disconnect(n)
			}
			p := w.ended("cut")
			if p.Status != hypervisor.JobFailed || p.Error == "" {
				t.Errorf("the job is %v: %q", p.Status, p.Error)
			}
			w.stays("cut", vm.ID)
			w.ends(hosta, vm.ID)
		})
	}
}

// ended waits until a job that hosta sends has ended, also while its libvirtd does not
// answer for a moment.
func (w *trial) ended(j jobID) (p hypervisor.Progress) {
	w.T.Helper()
	w.Eventually(string(j)+" has ended", func() bool {
		now, err := w.hosts[hosta].Progress(w.T.Context(), j)
		p = now
		return err == nil && p.Status.Final()
	})
	return p
}
