//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A transplant is a VM at hosta whose disk "data" moves.
type transplant struct {
	*trial
	vm       hypervisor.VM
	contents []byte // of the disk, as the guest knows them
	to       string
	at       int // where is written next
}

// newTransplant starts a VM with a disk of known contents.
func newTransplant(w *trial, id vmid, format string) *transplant {
	w.T.Helper()
	vm := backendtest.WithDisks(w.vm(id, calm), hypervisor.Disk{Name: "data", Format: format, Size: 16 * mib})
	m := &transplant{trial: w, vm: vm, contents: w.furnish(hosta, vm)["data"],
		to: filepath.Join(w.SharedDir(), strings.ReplaceAll(string(id), "/", "-"))}
	w.start(hosta, vm)
	return m
}

// write has the guest's disk written, as its guest would.
func (m *transplant) write() {
	m.T.Helper()
	m.at += 1 << 20
	said := m.virsh(hosta, "qemu-monitor-command", "--hmp", domainOf(m.vm.ID),
		fmt.Sprintf(`qemu-io -d ua-data "write -P 0x5a %d 65536"`, m.at))
	if strings.Contains(said, "rror") || strings.Contains(said, "failed") {
		m.T.Fatalf("it is not written: %s", said)
	}
	copy(m.contents[m.at:], bytes.Repeat([]byte{0x5a}, 65536))
}

// switches switches the disk to its copy, and waits until QEMU has done that. QEMU 7.2.22 dies of a write by its
// monitor's qemu-io in that moment ("child->perm & BLK_PERM_WRITE"); of a guest's own writes it does not.
func (m *transplant) switches() {
	m.T.Helper()
	m.Do(hosta, m.vm.ID, hypervisor.SwitchDisk{Disk: "data"})
	m.jobless()
}

// jobless waits until QEMU does nothing more for a copy that is complete or was given up.
func (m *transplant) jobless() {
	m.T.Helper()
	testutil.Eventually(m.T, "QEMU has no block job", func() error {
		jobs := m.virsh(hosta, "qemu-monitor-command", domainOf(m.vm.ID), `{"execute":"query-block-jobs"}`)
		if !strings.Contains(jobs, `"return":[]`) {
			return fmt.Errorf("it has %s", jobs)
		}
		return nil
	})
}

// is waits until the move is in a phase.
func (m *transplant) is(want hypervisor.DiskPhase) {
	m.T.Helper()
	testutil.Eventually(m.T, "the move is "+string(want), func() error {
		if now := m.Domain(hosta, m.vm.ID).Moving; now == nil || now.Phase != want {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
}

// over ends the move, asked again until it has ended.
func (m *transplant) over(on string, keep bool) {
	m.T.Helper()
	testutil.Eventually(m.T, "the move has ended", func() error {
		err := m.Host(hosta).Do(m.T.Context(), m.vm.ID, hypervisor.EndDiskMove{Disk: "data", On: on, Keep: keep})
		if now := m.Domain(hosta, m.vm.ID).Moving; err == nil && now != nil {
			err = fmt.Errorf("it is %+v", now)
		}
		return err
	})
}

// noted closes hosta as if its process had died when it had noted something of the move, does what happens
// until there is another process, and begins that.
func (m *transplant) noted(change func(*backend.DiskMove), meanwhile func()) {
	m.T.Helper()
	must(m.T, m.hosts[hosta].Close())
	delete(m.hosts, hosta)
	file := filepath.Join(m.config(hosta).Dir, "vms", durable.Name(string(m.vm.ID)))
	var rec libvirt.DomainRecord
	must(m.T, durable.Read(file, &rec))
	change(rec.Move)
	must(m.T, durable.Write(file, &rec, true))
	if meanwhile != nil {
		meanwhile()
	}
	_, err := m.open(hosta)
	must(m.T, err)
}

// ends kills the VM and wants one image of it, at a path, with everything that was written, in the
// definition as well.
func (m *transplant) ends(path string) {
	m.T.Helper()
	m.Do(hosta, m.vm.ID, hypervisor.Kill{})
	m.Eventually("it rests", func() bool { return m.Domain(hosta, m.vm.ID).State.Rests() })
	want := m.vm.AtPath("data", path)
	if d := m.Domain(hosta, m.vm.ID); !d.VM.Equal(want) || d.Moving != nil {
		m.T.Errorf("it is %+v with %+v, its move %+v", d, d.VM.Hardware.Disks, d.Moving)
	}
	image, cache := path, "none"
	if path == "" {
		image, cache = filepath.Join(diskDir, domainOf(m.vm.ID)+".data"), "writeback"
	}
	m.keeps(hosta, m.vm.ID, []string{"<source file='" + image + "'/>", "cache='" + cache + "'"}, "--inactive")
	seen := image
	if path == "" {
		seen = m.Outside(string(hosta), image)
	} else if left := m.images(hosta); slices.Contains(left, domainOf(m.vm.ID)+".data") {
		m.T.Errorf("there is still %v", left)
	}
	raw := filepath.Join(m.T.(*testing.T).TempDir(), "raw")
	must(m.T, os.WriteFile(raw, m.contents, 0o600))
	backendtest.Image(m.T, "compare", "-f", m.info(seen).Format, "-F", "raw", seen, raw)
	m.left(path)
	m.start(hosta, want)
	m.sound(hosta, m.vm.ID)
	m.Do(hosta, m.vm.ID, hypervisor.Kill{}, hypervisor.Forget{})
	_ = os.Remove(seen)
}

// left wants no file of the copying besides the image at a path.
func (m *transplant) left(path string) {
	m.T.Helper()
	names, err := filepath.Glob(m.to + "*")
	if err != nil || len(names) > 1 || len(names) == 1 && names[0] != path {
		m.T.Errorf("there are %v, %v", names, err)
	}
}

// A disk moves while its guest writes, and the old image stays as it was at the switch.
func TestADiskMovesWhileItsGuestWrites(t *testing.T) {
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			m := newTransplant(newTrial(t, nil), traveller, format)
			old := m.disk(hosta, m.vm.ID, "data")
			begin := hypervisor.MoveDisk{Disk: "data", To: m.to}
			must(t, os.WriteFile(m.to, []byte("precious"), 0o600))
			m.Refuses(hosta, m.vm.ID, begin, hypervisor.Conflict, m.to)
			if text, err := os.ReadFile(m.to); err != nil || string(text) != "precious" {
				t.Errorf("the file has %q, %v", text, err)
			}
			must(t, os.Remove(m.to))
			m.Do(hosta, m.vm.ID, begin, begin)
			m.write()
			m.is(hypervisor.DiskReady)
			m.Refuses(hosta, m.vm.ID, hypervisor.Snapshot{Disk: "data", Name: "a"}, hypervisor.Conflict, m.to)
			m.write()
			before := m.Domain(hosta, m.vm.ID).Moving
			if before.Total < 16*mib || before.Copied != before.Total {
				t.Errorf("of the complete copy it says %+v", before)
			}
			m.Do(hosta, m.vm.ID, hypervisor.SwitchDisk{Disk: "data"}, hypervisor.SwitchDisk{Disk: "data"})
			m.over(m.to, true)
			m.jobless()
			m.write()
			must(t, os.Remove(old))
			m.ends(m.to)
		})
	}
}

// A process that dies in any phase, with libvirt having done what was noted or not, and the QEMU or libvirtd
// dying with it, leaves one whole image, on which the journal, libvirt and its definition agree.
func TestDyingWhileADiskMoves(t *testing.T) {
	testutil.Long(t)
	w := newTrial(t, nil)
	none := func(*backend.DiskMove) {}
	in := func(p backend.MovePhase) func(*backend.DiskMove) {
		return func(m *backend.DiskMove) { m.Phase, m.Tidied = p, false }
	}
	type phase = hypervisor.DiskPhase
	for i, row := range []struct {
		name   string
		at     phase // that the move has come to
		change func(*backend.DiskMove)
		then   phase // with a QEMU that lives
		killed phase // with one that does not
	}{
		{"as it is copied, perhaps", hypervisor.DiskCopying, none, hypervisor.DiskReady, ""},
		{"when the file is made", hypervisor.DiskReady, in(backend.MoveMaking), hypervisor.DiskFailed, hypervisor.DiskFailed},
		{"when it is asked for", hypervisor.DiskReady, in(backend.MoveCopying), hypervisor.DiskReady, hypervisor.DiskFailed},
		{"when it is complete", hypervisor.DiskReady, none, hypervisor.DiskReady, hypervisor.DiskReady},
		{"when it is cancelled", hypervisor.DiskReady, in(backend.MoveFailed), hypervisor.DiskFailed, hypervisor.DiskFailed},
		{"before libvirt hears of the switch", hypervisor.DiskReady, in(backend.MoveSwitching), hypervisor.DiskSwitched,
			hypervisor.DiskSwitched},
		{"at the switch", hypervisor.DiskSwitched, none, hypervisor.DiskSwitched, hypervisor.DiskSwitched},
		{"after the switch", hypervisor.DiskSwitched, in(backend.MoveSwitching), hypervisor.DiskSwitched,
			hypervisor.DiskSwitched},
	} {
		for _, dies := range []string{"", "QEMU", "libvirtd"} {
			if dies == "QEMU" && row.killed == "" {
				continue
			}
			w.run(row.name+" "+dies, func() {
				m := newTransplant(w, vmid(fmt.Sprintf("suite/mover%d%s", i, strings.ToLower(dies))),
					[]string{"raw", "qcow2"}[i%2])
				m.Do(hosta, m.vm.ID, hypervisor.MoveDisk{Disk: "data", To: m.to})
				m.write()
				if row.at != hypervisor.DiskCopying {
					m.is(hypervisor.DiskReady)
					m.write()
				}
				if row.at == hypervisor.DiskSwitched {
					m.switches()
				}
				want := row.then
				m.noted(row.change, func() {
					m.write()
					switch dies {
					case "QEMU":
						want = row.killed
						must(m.T, w.signal(hosta, m.vm.ID, 9))
						w.Eventually("its QEMU has ended", func() bool {
							return strings.Contains(m.virsh(hosta, "domstate", domainOf(m.vm.ID)), "shut off")
						})
					case "libvirtd":
						w.KillDaemon(string(hosta))
						w.StartDaemon(string(hosta))
					}
				})
				m.is(want)
				m.finish(want, dies == "QEMU")
			})
		}
	}
}

// A copy that breaks while no process of ours is there, and whose QEMU dies then, too, lacks what was written since:
// the VM has the image that it had.
func TestACopyThatBreaksUnseen(t *testing.T) {
	testutil.Sample(t, 5)
	w := newTrial(t, nil)
	w.run("unseen", func() {
		m := newTransplant(w, "suite/unseen", "qcow2")
		m.Do(hosta, m.vm.ID, hypervisor.MoveDisk{Disk: "data", To: m.to})
		m.is(hypervisor.DiskReady)
		m.write()
		m.noted(func(*backend.DiskMove) {}, func() {
			dev, err := domxml.Target(m.virsh(hosta, "dumpxml", domainOf(m.vm.ID)), "data")
			must(m.T, err)
			m.virsh(hosta, "blockjob", domainOf(m.vm.ID), dev, "--abort")
			m.jobless()
			m.write()
			must(m.T, w.signal(hosta, m.vm.ID, 9))
			w.Eventually("its QEMU has ended", func() bool {
				return strings.Contains(m.virsh(hosta, "domstate", domainOf(m.vm.ID)), "shut off")
			})
		})
		m.Refuses(hosta, m.vm.ID, hypervisor.SwitchDisk{Disk: "data"}, hypervisor.Conflict, m.to)
		m.Refuses(hosta, m.vm.ID, hypervisor.Start{VM: m.vm.AtPath("data", m.to)}, hypervisor.Conflict, m.to)
		m.start(hosta, m.vm)
		m.write()
		m.over("", false)
		m.ends("")
	})
}

// finish brings a move to its end, or makes it again where it has failed.
func (m *transplant) finish(p hypervisor.DiskPhase, rests bool) {
	m.T.Helper()
	if rests && p == hypervisor.DiskFailed {
		m.over("", false)
		m.ends("")
		return
	}
	if rests && p == hypervisor.DiskReady { // it may have run elsewhere since
		m.Refuses(hosta, m.vm.ID, hypervisor.Start{VM: m.vm.AtPath("data", m.to)}, hypervisor.Conflict, m.to)
		m.over(m.to, false)
		m.ends(m.to)
		return
	}
	if !rests && p != hypervisor.DiskReady {
		m.jobless()
	}
	if !rests {
		m.write()
	}
	if p == hypervisor.DiskFailed {
		testutil.Eventually(m.T, "it is begun anew", func() error {
			return m.Host(hosta).Do(m.T.Context(), m.vm.ID, hypervisor.MoveDisk{Disk: "data", To: m.to})
		})
		m.is(hypervisor.DiskReady)
		p = hypervisor.DiskReady
	}
	if p == hypervisor.DiskReady {
		m.switches()
		m.write()
	}
	err := m.Host(hosta).Do(m.T.Context(), m.vm.ID, hypervisor.EndDiskMove{Disk: "data"})
	if !errors.Is(err, hypervisor.Conflict) {
		m.T.Errorf("ended on the old image: %v", err)
	}
	m.over(m.to, false)
	m.ends(m.to)
}
