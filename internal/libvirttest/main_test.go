//go:build linux

package libvirttest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestMain(m *testing.M) { os.Exit(libvirttest.Main(m)) }

// patience is how long anything may take on a busy machine.
var patience = testutil.Limit(testutil.DefaultLimit)

// A domain is a guest in a host.
type domain struct {
	name, accelerator string
	params            guest.Params
	rom               string
}

func newDomain(t *testing.T, l *libvirttest.Lab, name, accelerator string) domain {
	t.Helper()
	p := guest.Params{WorkingSet: 4 << 20, Rate: 16 << 20}.On(accelerator, testutil.QEMU())
	return domain{name, accelerator, p, l.Guest(t, p)}
}

// xml is what virsh defines or creates.
func (d domain) xml(t *testing.T) string {
	t.Helper()
	cpu := `<cpu mode='custom' match='exact' check='none'><model>qemu64</model></cpu>`
	if d.accelerator == "kvm" {
		cpu = `<cpu mode='host-passthrough' check='none'>
			<feature policy='disable' name='arch-capabilities'/></cpu>`
	}
	path := filepath.Join(t.TempDir(), d.name+".xml")
	text := fmt.Sprintf(`<domain type='%s'><name>%s</name><memory unit='MiB'>%d</memory>
<os><type arch='x86_64' machine='pc'>hvm</type>
<loader readonly='yes' type='rom'>%s</loader></os>
%s<on_poweroff>destroy</on_poweroff><on_crash>preserve</on_crash>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<controller type='usb' model='none'/>
<serial type='unix'><source mode='bind' path='%s'/>
<target type='isa-debug' port='0'><model name='isa-debugcon'/></target>
<address type='isa' iobase='0xe9'/></serial><memballoon model='none'/></devices></domain>`,
		d.accelerator, d.name, libvirttest.Memory(d.params), d.rom, cpu,
		libvirttest.PulsePath(d.name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// virsh runs virsh, which must succeed.
func virsh(t *testing.T, l *libvirttest.Lab, host string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := l.Virsh(ctx, host, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// start creates the domain and waits until its guest beats.
func (d domain) start(t *testing.T, l *libvirttest.Lab, host string) *guest.HeartbeatListener {
	t.Helper()
	pulse := l.Listen(t, d.name)
	virsh(t, l, host, "create", d.xml(t))
	beats(t, pulse, host)
	return pulse
}

// beats waits until a guest has sent ten more heartbeats from a host.
func beats(t *testing.T, p *guest.HeartbeatListener, host string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var here int64
	begin := p.Log().Beats
	err := p.Wait(ctx, func(r guest.HeartbeatLog) bool {
		if libvirttest.HostOf(r.From) != host {
			begin = r.Beats
		}
		here = r.Beats - begin
		return here >= 10
	})
	if err != nil {
		t.Fatalf("%d heartbeats from %s; %+v: %v", here, host, p.Log(), err)
	}
	if err := p.Log().Check(); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until nothing is wrong.
func eventually(t *testing.T, what string, wrong func() string) {
	t.Helper()
	testutil.Eventually(t, what, func() error {
		if why := wrong(); why != "" {
			return errors.New(why)
		}
		return nil
	})
}

// spaces are the namespaces of a host: links that say which.
func spaces(t *testing.T, l *libvirttest.Lab, host string) []string {
	t.Helper()
	var all []string
	for _, kind := range []string{"mnt", "uts", "ipc", "net", "pid"} {
		s, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", l.PID(host), kind))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	hold(t, all)
	return all
}

// hold keeps those of some namespaces that exist until the test ends, without being in them.
// The kernel gives the number of one that is gone to the next that is made on this machine.
func hold(t *testing.T, spaces []string) {
	t.Helper()
	held := map[string]bool{}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/*")
	for _, link := range links {
		s, _ := os.Readlink(link)
		if held[s] || !slices.Contains(spaces, s) {
			continue
		}
		if f, err := os.Open(link); err == nil {
			t.Cleanup(func() { f.Close() })
			held[s] = true
		}
	}
}

// residents lists the processes that are in one of some namespaces.
func residents(spaces []string) string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/*")
	for _, link := range links {
		s, err := os.Readlink(link)
		for _, space := range spaces {
			if err == nil && s == space {
				pid := strings.Split(link, "/")[2]
				argv, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				found = append(found, fmt.Sprintf("process %s in %s: %q", pid, s,
					bytes.ReplaceAll(argv, []byte{0}, []byte{' '})))
			}
		}
	}
	return strings.Join(found, "\n")
}
