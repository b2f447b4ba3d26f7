package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

// A HostStatus is how a check ended.
type HostStatus string

// The statuses, from good to bad.
const (
	OK      HostStatus = "ok"
	Warning HostStatus = "warning"
	Failed  HostStatus = "failed"
)

// A HostResult is what a check has found.
type HostResult struct {
	Check  string     `json:"check"`
	Status HostStatus `json:"status"`
	Found  string     `json:"found"`
	Do     string     `json:"do,omitempty"` // what to do about it
}

// HostCheck says what to check. A zero field leaves a check out, or takes the default it names.
type HostCheck struct {
	// Root is where /proc and /dev are. Default: "/".
	Root string
	// Dirs are those whose disks must have room.
	Dirs []string
	// TLS is the directory of QEMU's certificates; PSK that it has a shared key.
	TLS string
	PSK bool
	// Address and Port are where other hosts reach this one.
	Address string
	Port    int
	// Peers are the addresses at which daemons of other hosts serve health and metrics.
	Peers []string
	// Links are hosts that run ServeLink; MeasureFor is for how long bytes are sent to each. Default: 2 s.
	Links      []string
	MeasureFor time.Duration
	// Software says that VMs are to run in software: without KVM they do as asked.
	Software bool
	// Hypervisor asks what runs VMs here: "QEMU 7.2.22, kvm".
	Hypervisor func(context.Context) (string, error)
	// Autostarted lists the domains that libvirtd starts when the host boots. Default: there is no libvirtd,
	// and libvirt-guests is not looked at either.
	Autostarted func(context.Context) ([]string, error)
	// Store asks whether the store answers.
	Store func(context.Context) error
	// Userfaultfd tries what post-copy needs. Default: the kernel's.
	Userfaultfd func() error
	// Clock asks whether the kernel's clock is kept right. Default: the kernel's.
	Clock func() (synchronised bool, err error)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// CheckHost runs all checks that c asks for. It takes no longer than ctx.
func CheckHost(ctx context.Context, c HostCheck) []HostResult {
	if c.Root == "" {
		c.Root = "/"
	}
	if c.Userfaultfd == nil {
		c.Userfaultfd = userfaultfd
	}
	if c.Clock == nil {
		c.Clock = synchronised
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MeasureFor <= 0 {
		c.MeasureFor = 2 * time.Second
	}
	all := []HostResult{c.kvm(), c.postCopy(), c.hugePages(), c.clock()}
	if c.Hypervisor != nil {
		all = append(all, c.hypervisor(ctx))
	}
	if c.Autostarted != nil {
		all = append(all, c.autostart(ctx), c.libvirtGuests())
	}
	if c.Store != nil {
		all = append(all, c.store(ctx))
	}
	for _, dir := range c.Dirs {
		all = append(all, c.disk(dir))
	}
	if c.TLS != "" {
		all = append(all, c.certificates()...)
	}
	if c.Address != "" {
		all = append(all, c.port(), c.mtu())
	}
	for _, peer := range c.Peers {
		all = append(all, c.peer(ctx, peer))
	}
	for _, host := range c.Links {
		all = append(all, c.link(ctx, host)...)
	}
	return all
}

func (c *HostCheck) kvm() HostResult {
	path := filepath.Join(c.Root, "dev/kvm")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	switch {
	case err != nil && c.Software:
		return HostResult{"KVM", Warning, path + " is not used: VMs run in software, many times slower",
			"use --accelerator kvm on a host that has it"}
	case errors.Is(err, fs.ErrNotExist):
		return HostResult{"KVM", Failed, path + " is not there: VMs run in software, many times slower",
			"switch virtualisation on in the firmware, and load the module: modprobe kvm_intel or kvm_amd"}
	case err != nil:
		return HostResult{"KVM", Failed, err.Error(),
			"run the agent as root, or add its user to the group kvm"}
	}
	_ = f.Close()
	return HostResult{"KVM", OK, path + " can be opened", ""}
}

func (c *HostCheck) postCopy() HostResult {
	if err := c.Userfaultfd(); err != nil {
		return HostResult{"userfaultfd", Warning, "post-copy is not possible: " + err.Error(),
			"run the agent as root, or set vm.unprivileged_userfaultfd=1 with sysctl"}
	}
	return HostResult{"userfaultfd", OK, "post-copy is possible", ""}
}

func (c *HostCheck) hugePages() HostResult {
	text, err := os.ReadFile(filepath.Join(c.Root, "proc/meminfo"))
	if err != nil {
		return HostResult{"huge pages", Warning, err.Error(), "mount /proc"}
	}
	values := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			values[name], _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	total, free, size := values["HugePages_Total"], values["HugePages_Free"], values["Hugepagesize"]
	if total == 0 {
		return HostResult{"huge pages", OK, "none are reserved: a VM that asks for them cannot be here", ""}
	}
	found := fmt.Sprintf("%d of %d pages of %d KiB are free", free, total, size)
	if free == 0 {
		return HostResult{"huge pages", Warning, found,
			"a VM that asks for them cannot come: raise vm.nr_hugepages with sysctl"}
	}
	return HostResult{"huge pages", OK, found, ""}
}

func (c *HostCheck) clock() HostResult {
	const do = "run chrony or systemd-timesyncd: times in logs, and deadlines that are stored, are those of its clock (docs/clocks.md)"
	switch ok, err := c.Clock(); {
	case err != nil:
		return HostResult{"clock", Warning, "the kernel does not say whether it is right: " + err.Error(), do}
	case !ok:
		return HostResult{"clock", Warning, "no service keeps it right", do}
	}
	return HostResult{"clock", OK, "a service keeps it right", ""}
}

func (c *HostCheck) hypervisor(ctx context.Context) HostResult {
	software, err := c.Hypervisor(ctx)
	switch {
	case err != nil:
		return HostResult{"hypervisor", Failed, err.Error(),
			"install qemu-system-x86, or libvirt-daemon-system and start libvirtd"}
	case strings.Contains(software, "tcg"):
		return HostResult{"hypervisor", Warning, software + ": VMs run in software", "see the check of KVM"}
	}
	return HostResult{"hypervisor", OK, software, ""}
}

// autostart warns of domains that libvirtd starts before the agent can say where their VMs are.
func (c *HostCheck) autostart(ctx context.Context) HostResult {
	const check = "autostart"
	names, err := c.Autostarted(ctx)
	switch {
	case err != nil:
		return HostResult{check, Warning, "libvirtd does not say what it starts when the host boots: " + err.Error(),
			"start libvirtd"}
	case len(names) > 0:
		return HostResult{check, Warning, "libvirtd starts when the host boots: " + strings.Join(names, ", ") +
			"; a VM that was started on another host meanwhile runs twice then",
			"for each that is a VM of godwit: virsh autostart --disable NAME"}
	}
	return HostResult{check, OK, "libvirtd starts no domain when the host boots", ""}
}

// Where libvirt-guests is configured, and what enables it.
var (
	guestsConfigs = []string{"etc/default/libvirt-guests", "etc/sysconfig/libvirt-guests"}
	guestsEnabled = "etc/systemd/system/multi-user.target.wants/libvirt-guests.service"
)

// libvirtGuests warns when libvirt's service saves guests when the host shuts down, and starts them when it boots.
// Source: libvirt 9.0 tools/libvirt-guests.sh.in (ON_BOOT is start unless it is set to another word).
func (c *HostCheck) libvirtGuests() HostResult {
	const check = "libvirt-guests"
	if _, err := os.Lstat(filepath.Join(c.Root, guestsEnabled)); err != nil {
		return HostResult{check, OK, "it is not enabled", ""}
	}
	onBoot := "start"
	for _, name := range guestsConfigs {
		text, err := os.ReadFile(filepath.Join(c.Root, name))
		if err == nil {
			onBoot = setting(string(text), "ON_BOOT", onBoot)
		}
	}
	if onBoot == "ignore" {
		return HostResult{check, OK, "it starts nothing when the host boots", ""}
	}
	return HostResult{check, Warning, "it starts the guests that ran when the host shut down; a VM that was started on " +
		"another host meanwhile runs twice then", "set ON_BOOT=ignore in /" + guestsConfigs[0] + " or /" + guestsConfigs[1]}
}

// setting returns the last value of a variable in a file that a shell reads.
func setting(text, name, value string) string {
	for line := range strings.Lines(text) {
		if v, is := strings.CutPrefix(strings.TrimSpace(line), name+"="); is {
			value, _, _ = strings.Cut(v, "#")
			value = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return value
}

func (c *HostCheck) store(ctx context.Context) HostResult {
	if err := c.Store(ctx); err != nil {
		return HostResult{"store", Failed, err.Error(), "start the controller, or etcd, first"}
	}
	return HostResult{"store", OK, "it answers", ""}
}

// Room for the store, the logs and the journals of a host, in bytes.
const (
	littleRoom = 1 << 30
	noRoom     = 64 << 20
)

func (c *HostCheck) disk(dir string) HostResult {
	check := "disk of " + dir
	room, readOnly, err := roomOf(dir)
	found := fmt.Sprintf("%d MiB are free", room>>20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return HostResult{check, Warning, "the directory is not there", "the daemons make it: is it the right one?"}
	case err != nil:
		return HostResult{check, Failed, err.Error(), "make it readable for the daemons"}
	case readOnly:
		return HostResult{check, Failed, "it is mounted read-only",
			"look for errors of the disk with dmesg, and mount it again"}
	case room < noRoom:
		return HostResult{check, Failed, found, "make room: nothing can be stored soon"}
	case room < littleRoom:
		return HostResult{check, Warning, found, "make room: 1 GiB at least"}
	}
	return HostResult{check, OK, found, ""}
}

// soon is how long before its end a certificate is worth a warning.
const soon = 30 * 24 * time.Hour

// certificates checks those that QEMU shows to other hosts.
// Source: QEMU 7.2 docs/system/tls.rst.
func (c *HostCheck) certificates() (all []HostResult) {
	if c.PSK {
		path := filepath.Join(c.TLS, "keys.psk")
		if _, err := os.ReadFile(path); err != nil {
			return []HostResult{{"TLS keys.psk", Failed, err.Error(), "write the key that all hosts share"}}
		}
		return []HostResult{{"TLS keys.psk", OK, path + " can be read", ""}}
	}
	roots, authorities, err := pki.Authorities(filepath.Join(c.TLS, pki.AuthorityCert))
	if err != nil {
		return []HostResult{{"TLS ca-cert.pem", Failed, err.Error(), "copy the certificate of the authority there"}}
	}
	for _, cert := range authorities {
		all = append(all, c.ends("TLS ca-cert.pem", cert))
	}
	for _, name := range []string{"server", "client"} {
		all = append(all, c.certificate(name, roots))
	}
	return all
}

func (c *HostCheck) certificate(name string, roots *x509.CertPool) HostResult {
	check := "TLS " + name + "-cert.pem"
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.TLS, name+"-cert.pem"),
		filepath.Join(c.TLS, name+"-key.pem"))
	if err != nil {
		return HostResult{check, Failed, err.Error(), "make this certificate and its key anew"}
	}
	usage := x509.ExtKeyUsageServerAuth
	if name == "client" {
		usage = x509.ExtKeyUsageClientAuth
	}
	if r := c.ends(check, pair.Leaf); r.Status == Failed {
		return r
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: c.Now(),
		KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return HostResult{check, Failed, err.Error(), "let the authority of ca-cert.pem sign it"}
	}
	if name == "server" && c.Address != "" {
		if err := pair.Leaf.VerifyHostname(c.Address); err != nil {
			return HostResult{check, Warning, err.Error(),
				"let it carry the address, or give --tls-hostname to all agents"}
		}
	}
	r := c.ends(check, pair.Leaf)
	if holder, host := pki.Holder(pair.Leaf); host {
		r.Found += ", of host " + holder
	} else {
		r.Found += ", of " + holder + ", which is no host"
	}
	return r
}

// ends tells when a certificate does.
func (c *HostCheck) ends(check string, cert *x509.Certificate) HostResult {
	day := cert.NotAfter.UTC().Format(time.DateOnly)
	switch left := cert.NotAfter.Sub(c.Now()); {
	case left <= 0:
		return HostResult{check, Failed, "it ended on " + day, "renew it: no migration begins any more"}
	case left < soon:
		return HostResult{check, Warning, "it ends on " + day, "renew it"}
	}
	return HostResult{check, OK, "it ends on " + day, ""}
}

func (c *HostCheck) port() HostResult {
	at := net.JoinHostPort(c.Address, strconv.Itoa(c.Port))
	l, err := net.Listen("tcp", at)
	if err != nil {
		return HostResult{"port", Warning, err.Error(),
			"if it is not the agent of this host that has it: choose another one with --port"}
	}
	_ = l.Close()
	return HostResult{"port", OK, at + " is free", ""}
}

// leastMTU is what Ethernet has; links of migrations do better with 9000.
const leastMTU = 1500

func (c *HostCheck) mtu() HostResult {
	i, err := interfaceOf(c.Address)
	switch {
	case err != nil:
		return HostResult{"MTU", Warning, err.Error(), "look with ip link"}
	case i.Name == "":
		return HostResult{"MTU", Failed, "no interface has the address " + c.Address,
			"give an address of this host with --address"}
	}
	found := fmt.Sprintf("%s has %d bytes", i.Name, i.MTU)
	if i.MTU < leastMTU {
		return HostResult{"MTU", Warning, found, "a tunnel on the way? 1500 is usual, and 9000 is better"}
	}
	return HostResult{"MTU", OK, found, ""}
}

// farOff is by how much clocks of hosts may differ. The other's is told in whole seconds.
const farOff = 2 * time.Second

// peer asks a daemon of another host, and compares its clock.
func (c *HostCheck) peer(ctx context.Context, address string) HostResult {
	check := "host at " + address
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return HostResult{check, Failed, err.Error(), "write HOST:PORT"}
	}
	client := http.Client{Timeout: 5 * time.Second}
	asked := c.Now()
	got, err := client.Do(r)
	if err != nil {
		return HostResult{check, Failed, err.Error(),
			"start its agent with --listen, and open the port in its firewall"}
	}
	_ = got.Body.Close()
	took := c.Now().Sub(asked)
	theirs, err := http.ParseTime(got.Header.Get("Date"))
	if err != nil {
		return HostResult{check, Warning, "it does not tell its time", "is it an agent or a controller?"}
	}
	// Its time was rounded down to a second, at a moment between question and answer.
	apart := max(theirs.Sub(c.Now()), asked.Sub(theirs)-time.Second)
	if apart > farOff {
		return HostResult{check, Failed, fmt.Sprintf("its clock differs by %v", apart.Round(time.Second)),
			"run chrony on both"}
	}
	return HostResult{check, OK, fmt.Sprintf("it answers within %v, and its clock agrees",
		took.Round(time.Millisecond)), ""}
}
