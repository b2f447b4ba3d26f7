//go:build linux

package qmp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// moved is what one move took: from the order to prepare a target, and from the
// order to send, until the guest beat there, and how long it stood.
type moved struct{ whole, sending, downtime time.Duration }

// A script moves a VM by giving QEMUs the commands that a Host gives, one after
// the other, and remembers nothing.
type script struct {
	lab    *lab
	vm     hypervisor.VM
	pulse  *guest.HeartbeatListener
	count  int
	source *scripted
	limit  hypervisor.Bandwidth
}

// A scripted QEMU understands one command at a time.
type scripted struct {
	cmd  *exec.Cmd
	conn net.Conn
	read *bufio.Reader
}

func (s *script) start(ctx context.Context, incoming bool) *scripted {
	t := s.lab.T
	s.count++
	dir := filepath.Join(s.lab.dir, fmt.Sprintf("s%d", s.count))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, _ := features()
	settings := qemu.Settings{Dir: dir, Accelerator: s.lab.accel, CPU: f.CPU, Console: true,
		Incoming: incoming}
	if s.lab.accel == qemu.TCG {
		settings.CPU = ""
	}
	args, err := qemu.Args(s.vm, settings)
	if err != nil {
		t.Fatal(err)
	}
	q := &scripted{cmd: exec.Command(f.Path, args...)}
	q.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the kernel shares CPUs by session
	if err := q.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if q.conn, err = net.Dial("unix", settings.QMP()); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	q.read = bufio.NewReader(q.conn)
	q.do(t, "qmp_capabilities", nil)
	if err := s.pulse.Connect(ctx, dir, settings.DebugSocket()); err != nil {
		t.Fatal(err)
	}
	return q
}

// do gives a command and waits for its answer.
func (q *scripted) do(t testing.TB, command string, arguments any) {
	t.Helper()
	line, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if arguments == nil {
		line, err = json.Marshal(map[string]any{"execute": command})
	}
	if err == nil {
		_, err = q.conn.Write(append(line, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	q.until(t, func(m map[string]any) bool {
		if m["error"] != nil {
			t.Fatalf("%s: %v", command, m["error"])
		}
		return m["return"] != nil
	})
}

func (q *scripted) until(t testing.TB, done func(map[string]any) bool) {
	t.Helper()
	for {
		line, err := q.read.ReadBytes('\n')
		m := map[string]any{}
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		if done(m) {
			return
		}
	}
}

func (q *scripted) end() {
	q.conn.Close()
	q.cmd.Process.Kill()
	q.cmd.Wait()
}

// configure makes both ends move memory as a Host does.
func (q *scripted) configure(t testing.TB, limit hypervisor.Bandwidth) {
	var list []map[string]any
	for _, c := range []string{"events", "return-path", "late-block-activate"} {
		list = append(list, map[string]any{"capability": c, "state": true})
	}
	q.do(t, "migrate-set-capabilities", map[string]any{"capabilities": list})
	q.do(t, "migrate-set-parameters", map[string]any{"max-bandwidth": int64(limit),
		"downtime-limit": 300})
}

// move moves the VM to a new QEMU.
func (s *script) move(ctx context.Context) moved {
	t := s.lab.T
	began := time.Now()
	target := s.start(ctx, true)
	uri := "unix:" + filepath.Join(s.lab.dir, fmt.Sprintf("m%d", s.count))
	ordered := time.Now()
	target.configure(t, s.limit)
	target.do(t, "migrate-incoming", map[string]any{"uri": uri})
	s.source.configure(t, s.limit)
	s.source.do(t, "migrate", map[string]any{"uri": uri})
	s.source.until(t, func(m map[string]any) bool {
		data, _ := m["data"].(map[string]any)
		return m["event"] == "MIGRATION" && data["status"] == "completed"
	})
	target.do(t, "cont", nil)
	m := arrived(ctx, t, s.pulse, began, ordered)
	s.source.end()
	s.source = target
	return m
}

// arrived waits for the guest's first heartbeats at its target.
func arrived(ctx context.Context, t testing.TB, p *guest.HeartbeatListener, began, ordered time.Time) moved {
	t.Helper()
	err := p.Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Move.Begin.After(ordered) })
	r := p.Log()
	if err != nil || r.Check() != nil {
		t.Fatal(err, r.Check())
	}
	return moved{r.Move.End.Sub(began), r.Move.End.Sub(ordered), r.Move.Length}
}

// travel moves a VM of the lab to the other host.
func (l *lab) travel(ctx context.Context, i int, vm hypervisor.VM, limit hypervisor.Bandwidth,
) moved {
	l.T.Helper()
	from, to := name("n1"), name("n2")
	if i%2 == 1 {
		from, to = to, from
	}
	p := l.pulse(vm.ID)
	job := hypervisor.JobID(fmt.Sprintf("job-%d", i))
	began := time.Now()
	address, err := l.Host(to).Receive(ctx, hypervisor.Incoming{Job: job, VM: vm})
	ordered := time.Now()
	if err == nil {
		err = l.hosts[from].Migrate(ctx, hypervisor.Outgoing{Job: job, VM: vm.ID, Target: to,
			Address: address, Options: hypervisor.TransferOptions{Bandwidth: limit}})
	}
	if err != nil {
		l.T.Fatal(err)
	}
	m := arrived(ctx, l.T, p, began, ordered)
	l.Until(from, job, hypervisor.JobSucceeded)
	l.release(job, vm.ID, from, to)
	return m
}

// BenchmarkWhatAMoveCosts measures what a Host adds to a move, against a script that gives
// the same commands: two guests of the same kind run, and are moved in turn. Each iteration
// is a pair; -benchtime=25x makes medians of 25. Chance decides whether QEMU stops a guest in
// this window of 100 ms or in the next, so that few pairs tell little.
func BenchmarkWhatAMoveCosts(b *testing.B) {
	for _, row := range []struct {
		name  string
		limit hypervisor.Bandwidth
	}{{"capped at 500 MiB-s", 500 << 20}, {"without a cap", 0}} {
		b.Run(row.name, func(b *testing.B) { compare(b, row.limit) })
	}
}

func compare(t *testing.B, limit hypervisor.Bandwidth) {
	accel := accelerator(t)
	l := newLab(t, accel, nil)
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Limit(5*time.Minute))
	defer cancel()
	p := guest.Params{Fill: 248 << 20, WorkingSet: 8 << 20, Rate: 20 << 20}
	ours := l.vm("suite/ours", p)
	if err := l.Host("n1").Do(ctx, ours.ID, hypervisor.Start{VM: ours}); err != nil {
		t.Fatal(err)
	}
	pulse, err := guest.NewHeartbeatListener()
	if err != nil {
		t.Fatal(err)
	}
	defer pulse.Close()
	theirs := &script{lab: l, vm: l.vm("suite/theirs", p), pulse: pulse, limit: limit}
	theirs.source = theirs.start(ctx, false)
	defer func() { theirs.source.end() }()
	theirs.source.do(t, "cont", nil)
	err = pulse.Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Ready && r.Beats > 100 })
	if err != nil {
		t.Fatal(err)
	}
	var a, b []moved
	for i := range t.N {
		if i%2 == 0 {
			a = append(a, l.travel(ctx, i, ours, limit))
			b = append(b, theirs.move(ctx))
			continue
		}
		b = append(b, theirs.move(ctx))
		a = append(a, l.travel(ctx, i, ours, limit))
	}
	report(t, a, b)
}

// report tells medians and ratios, those of lower quartiles, too: the noise of a machine only
// adds.
func report(b *testing.B, ours, theirs []moved) {
	b.ReportMetric(0, "ns/op") // says nothing: it is of both together
	for _, row := range []struct {
		what string
		of   func(moved) time.Duration
	}{
		{"whole", func(m moved) time.Duration { return m.whole }}, // with preparing a target
		{"sending", func(m moved) time.Duration { return m.sending }},
		{"downtime", func(m moved) time.Duration { return m.downtime }},
	} {
		low, median := quartiles(ours, row.of)
		least, their := quartiles(theirs, row.of)
		b.ReportMetric(float64(median)/float64(time.Millisecond), row.what+"-ms")
		b.ReportMetric(float64(median)/float64(their), row.what+"-ratio")
		b.ReportMetric(float64(low)/float64(least), row.what+"-lower-ratio")
	}
}

// quartiles returns the first and the second.
func quartiles(all []moved, of func(moved) time.Duration) (lower, median time.Duration) {
	list := make([]time.Duration, len(all))
	for i, m := range all {
		list[i] = of(m)
	}
	slices.Sort(list)
	return list[len(list)/4], list[len(list)/2]
}
