package qmp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/machine"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/probe"
)

// A Host runs the VMs of one machine.
type Host struct {
	config   Config
	features probe.Features
	journal  *journal.Journal
	boot     string // names the present start of the machine
	server   *handover.Server
	life     context.Context // ends with Close
	end      context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	domains map[hypervisor.VMID]*domain
	jobs    map[hypervisor.JobID]*journal.Job // each is replaced, never changed
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// New opens the directory of a host, finds what runs, and goes on with it. The
// error is an *[hypervisor.Error]: Conflict when another process owns the
// directory, Unsupported when QEMU is too old, otherwise Invalid.
func New(ctx context.Context, config Config) (*Host, error) {
	fail := func(kind hypervisor.Kind, err error) (*Host, error) {
		return nil, &hypervisor.Error{Op: "New", Host: config.Name, Kind: kind, Err: err}
	}
	c, err := config.complete()
	if err != nil {
		return fail(hypervisor.Invalid, err)
	}
	features, err := probe.Probe(ctx, c.QEMU)
	if err != nil {
		return fail(hypervisor.Invalid, err)
	}
	if err := features.Require(probe.Oldest); err != nil {
		return fail(hypervisor.Unsupported, err)
	}
	if c.Accelerator == machine.TCG {
		features.Accelerator, features.CPU = machine.TCG, ""
	} else if c.Accelerator == machine.KVM && features.Accelerator != machine.KVM {
		return fail(hypervisor.Unsupported, fmt.Errorf("KVM does not work here: %s: use tcg, "+
			"or make it work", features.NoKVM))
	}
	j, err := journal.Open(c.Dir)
	if err != nil {
		if _, locked := errors.AsType[*journal.LockedError](err); locked {
			return fail(hypervisor.Conflict, err)
		}
		return fail(hypervisor.Invalid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fail(hypervisor.Invalid, errors.Join(err, j.Close()))
	}
	h := &Host{config: c, features: features, journal: j, boot: strings.TrimSpace(string(boot)),
		domains: map[hypervisor.VMID]*domain{}, jobs: map[hypervisor.JobID]*journal.Job{}}
	h.life, h.end = context.WithCancel(context.Background())
	if err := errors.Join(h.adopt(ctx), h.listen()); err != nil {
		h.Close()
		return fail(hypervisor.Invalid, err)
	}
	return h, nil
}

// listen hears sources.
func (h *Host) listen() error {
	network, address := "unix", filepath.Join(h.config.Dir, "handover.sock")
	if h.config.Listen != "" {
		network = "tcp"
		address = net.JoinHostPort(h.config.Listen, strconv.Itoa(h.config.Port))
	} else if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // what a dead process left: the directory is ours alone
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listen for sources: %w", err)
	}
	h.server = handover.Serve(l, h.token, h.hear)
	return nil
}

// Close lets go of everything and returns when nothing of ours runs any more. The
// VMs run on.
func (h *Host) Close() error {
	h.end()
	var err error
	if h.server != nil {
		err = h.server.Close()
	}
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.domains {
		if d.vm != nil {
			d.vm.letGo()
		}
	}
	return errors.Join(err, h.journal.Close())
}

// Host answers capacity and abilities.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	if err := ctx.Err(); err != nil {
		return hypervisor.Host{}, h.explain("Host", "", err)
	}
	c := &h.config
	return hypervisor.Host{Name: c.Name, Memory: c.Memory, CPUs: c.CPUs, Link: c.Link,
		Abilities: h.abilities(), Software: h.features.Software()}, nil
}

// Domains lists what the host knows, ordered by VM. Of a QEMU that does not answer
// it tells what was seen last.
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := ctx.Err(); err != nil {
		return nil, h.explain("Domains", "", err)
	}
	h.mu.Lock()
	known := make([]*domain, 0, len(h.domains))
	for _, d := range h.domains {
		known = append(known, d)
	}
	h.mu.Unlock()
	list := make([]hypervisor.Domain, len(known))
	var looks errgroup.Group
	looks.SetLimit(64)
	for i, d := range known {
		looks.Go(func() error {
			list[i], _ = d.answer(ctx) // in doubt it is what was seen last
			return nil
		})
	}
	_ = looks.Wait()
	list = slices.DeleteFunc(list, func(d hypervisor.Domain) bool {
		return d.State == hypervisor.Absent
	})
	slices.SortFunc(list, func(a, b hypervisor.Domain) int { return cmp.Compare(a.VM.ID, b.VM.ID) })
	return list, nil
}

// Domain answers one VM. It answers Transient when its QEMU does not answer.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	if err := ctx.Err(); err != nil {
		return hypervisor.Domain{}, h.explain("Domain", vm, err)
	}
	h.mu.Lock()
	d := h.domains[vm]
	h.mu.Unlock()
	if d == nil {
		return hypervisor.Domain{VM: hypervisor.VM{ID: vm}}, nil
	}
	answer, err := d.answer(ctx)
	return answer, h.explain("Domain", vm, observing(err))
}

// Monitor returns the connection to the monitor of a VM, for what this package
// does not offer. The caller must not close it, nor change what this package
// manages: run state, migration, disks. It answers NotFound for a VM without a
// process.
func (h *Host) Monitor(vm hypervisor.VMID) (monitor.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.domains[vm]; d != nil {
		if q := d.qemu(); q != nil {
			return q.client, nil
		}
	}
	return nil, h.explain("Monitor", vm, refuse(hypervisor.NotFound, "no QEMU runs it"))
}

// token returns what a source of the job must know; "" is nobody.
func (h *Host) token(job hypervisor.JobID) string {
	if j := h.job(job); j != nil && j.Role == journal.Target && !j.Refused {
		return j.Token
	}
	return ""
}

func (h *Host) job(id hypervisor.JobID) *journal.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs[id]
}

// putJob keeps a job.
func (h *Host) putJob(j *journal.Job, durable bool) error {
	if err := h.journal.PutJob(j, durable); err != nil {
		return refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	h.mu.Lock()
	h.jobs[j.ID] = j
	h.mu.Unlock()
	return nil
}

// forgetJob removes a job that nobody has heard of.
func (h *Host) forgetJob(id hypervisor.JobID) error {
	h.mu.Lock()
	delete(h.jobs, id)
	h.mu.Unlock()
	if err := h.journal.RemoveJob(id); err != nil {
		return refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	return nil
}

// refuse makes an error of a kind; explain completes it.
func refuse(kind hypervisor.Kind, format string, a ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, a...)}
}

// explain completes an error with what was asked of whom, and says what may be
// done about it.
func (h *Host) explain(op string, vm hypervisor.VMID, err error) error {
	if err == nil {
		return nil
	}
	kind, why := classify(err), err
	if e, ok := errors.AsType[*hypervisor.Error](err); ok && e == err {
		why = e.Err
	}
	return &hypervisor.Error{Op: op, Host: h.config.Name, VM: vm, Kind: kind, Err: why}
}

// classify returns the kind of an error from below. What QEMU refused, it refused
// because of the state that it is in.
func classify(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	if _, ok := errors.AsType[*monitor.UnsupportedError](err); ok {
		return hypervisor.Unsupported
	}
	if e, ok := errors.AsType[*monitor.Error](err); ok {
		if e.Class == monitor.CommandNotFound {
			return hypervisor.Unsupported
		}
		return hypervisor.Conflict
	}
	switch {
	case errors.Is(err, monitor.NotSent), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		if !errors.Is(err, monitor.Unknown) {
			return hypervisor.Transient
		}
	}
	return hypervisor.Unknown
}

// observing marks an error of something that has no effect: it may be repeated.
func observing(err error) error {
	if err != nil && classify(err) == hypervisor.Unknown {
		return &hypervisor.Error{Kind: hypervisor.Transient, Err: err}
	}
	return err
}
