// Package etcdtest starts real clusters of etcd for tests. Every member is a process of its
// own, which can be killed, stopped and started again: internal/tools/etcdmember.
//
// Addresses are drawn from the loopback network, so that clusters do not meet.
package etcdtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// patience is how long a cluster may take for what it must do: the machine may be busy.
const patience = 60 * time.Second

// Options describe a cluster. A zero field takes the default that it names.
type Options struct {
	// Members is how many there are. Default: 1.
	Members int
	// Quota is how many bytes a member may store. Default: etcd's own, 2 GiB.
	Quota int64
	// Fsync has every write synced to disk, as in production. Default: it is left to the
	// operating system, which loses nothing when a process is killed.
	Fsync bool
	// Authority has its members speak TLS only, and with clients that it has certified
	// only. Default: no TLS.
	Authority *Authority
}

// Cluster is a running cluster of etcd.
type Cluster struct {
	// Endpoints are where its members answer, by index.
	Endpoints []string

	t       testing.TB
	program string // etcdmember
	dir     string
	options Options
	members []*process
}

// member is the program that members are.
var member = testutil.Tool{Module: "internal/tools", Package: "./etcdmember"}

// built is the path of it: its sources are read once for each process.
var built = sync.OnceValues(member.Build)

// Build builds the program that members are, if that was not done before. It is for a TestMain whose
// tests cannot: they have no network.
func Build() error {
	_, err := built()
	return err
}

// IsMember reports whether these are the arguments of a process that is a member.
func IsMember(argv []string) bool {
	path, err := built()
	return err == nil && len(argv) > 0 && argv[0] == path
}

func program(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// description is what a member needs to know.
type description struct {
	Name, Dir, Log, Client, Peer, Cluster string
	CA, Cert, Key                         string
	Quota                                 int64
	Fsync                                 bool
}

// process is one member.
type process struct {
	about  description
	cmd    *exec.Cmd
	stdin  io.Closer
	ended  chan struct{} // closed when the process has
	ready  chan struct{} // closed when the member is part of a cluster
	stderr bytes.Buffer  // read it when ended is closed
}

// Start starts a cluster and waits until it answers. t.Cleanup ends it.
func Start(t testing.TB, members int) *Cluster {
	t.Helper()
	return StartWith(t, Options{Members: members})
}

// StartWith starts a cluster that differs from the usual one.
func StartWith(t testing.TB, o Options) *Cluster {
	t.Helper()
	o.Members = max(1, o.Members)
	c := &Cluster{t: t, program: program(t), dir: t.TempDir(), options: o}
	c.describe()
	t.Cleanup(func() {
		for i := range c.members {
			c.Kill(i)
		}
	})
	for i := range c.members {
		c.begin(i)
	}
	for _, p := range c.members {
		c.await(p)
	}
	t.Logf("etcd %s, %d members", version.Version, o.Members)
	return c
}

// describe finds addresses, and says what each member is to be.
func (c *Cluster) describe() {
	host, ports := addresses(c.t, 2*c.options.Members)
	scheme := "http://"
	var d description
	if a := c.options.Authority; a != nil {
		scheme, d.CA = "https://", a.File
		d.Cert, d.Key = a.Issue(c.t, "etcd", host)
	}
	var all []string
	for i := range c.options.Members {
		d.Name = fmt.Sprintf("m%d", i)
		d.Dir, d.Log = filepath.Join(c.dir, d.Name), filepath.Join(c.dir, d.Name+".log")
		d.Client = scheme + net.JoinHostPort(host, ports[2*i])
		d.Peer = "http://" + net.JoinHostPort(host, ports[2*i+1])
		d.Quota, d.Fsync = c.options.Quota, c.options.Fsync
		c.Endpoints = append(c.Endpoints, d.Client)
		c.members = append(c.members, &process{about: d})
		all = append(all, d.Name+"="+d.Peer)
	}
	for _, p := range c.members {
		p.about.Cluster = strings.Join(all, ",")
	}
}

// addresses answers an unused loopback address, and ports that are free there.
// They are not from the range that the system gives to those that ask for any.
func addresses(t testing.TB, n int) (host string, ports []string) {
	t.Helper()
	host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(253), rand.IntN(255), 1+rand.IntN(253))
	for range 100 * n {
		port := fmt.Sprint(10_000 + rand.IntN(20_000))
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			continue
		}
		defer l.Close() // it was only to see whether the port is free, and not drawn before
		if ports = append(ports, port); len(ports) == n {
			return host, ports
		}
	}
	t.Fatalf("no %d free ports at %s", n, host)
	return "", nil
}

// begin starts a member's process.
func (c *Cluster) begin(i int) {
	c.t.Helper()
	p := c.members[i]
	text, err := json.Marshal(p.about)
	if err != nil {
		c.t.Fatal(err)
	}
	p.cmd = exec.Command(c.program, "run", string(text))
	p.stderr.Reset()
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cmd = nil
		c.t.Fatalf("etcd %s: %v", p.about.Name, err)
	}
	p.ended, p.ready = make(chan struct{}), make(chan struct{})
	go p.reap(p.cmd, out)
}

// reap reads what a member says, until it has ended.
func (p *process) reap(cmd *exec.Cmd, out io.Reader) {
	ended, ready := p.ended, p.ready
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			close(ready)
		}
	}
	_ = cmd.Wait() // it was killed
	close(ended)
}

// await waits until a member is part of a cluster.
func (c *Cluster) await(p *process) {
	c.t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		c.t.Fatalf("etcd %s has ended: %s%s", p.about.Name, p.stderr.String(), p.log())
	case <-time.After(testutil.Limit(patience)):
		c.t.Fatalf("etcd %s is not ready after %v: %s", p.about.Name, patience, p.log())
	}
}

// log is the end of what a member has logged.
func (p *process) log() string {
	text, _ := os.ReadFile(p.about.Log) // it may have none yet
	return string(text[max(0, len(text)-4096):])
}

// Kill ends a member without warning, as kill -9 does. One that is dead stays dead.
func (c *Cluster) Kill(i int) {
	p := c.members[i]
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
	_ = p.stdin.Close() // its reader is dead
	p.cmd = nil
}

// Restart starts a member that was killed, with what it has stored. It does not wait: see
// [Cluster.Ready].
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	if c.members[i].cmd == nil {
		c.begin(i)
	}
}

// Ready waits until every living member is part of a cluster. There must be enough of them.
func (c *Cluster) Ready() {
	c.t.Helper()
	for _, p := range c.members {
		if p.cmd != nil {
			c.await(p)
		}
	}
}

// Pause stops a member as it is: it does not answer, and its connections stay open. It
// returns when the member has stopped.
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	c.signal(i, syscall.SIGSTOP)
	p := c.members[i]
	for begun := time.Now(); !stopped(p.cmd.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			c.t.Fatalf("etcd %s has not stopped after %v", p.about.Name, patience)
		}
	}
}

// stopped reports whether every thread of a process has stopped, by proc(5): the state is
// the first letter after the name, which is in parentheses.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range threads {
		text, err := os.ReadFile(file)
		at := bytes.LastIndex(text, []byte(") "))
		if err == nil && !bytes.HasPrefix(text[at+1:], []byte(" T")) {
			return false
		}
	}
	return len(threads) > 0
}

// Continue lets a paused member go on.
func (c *Cluster) Continue(i int) { c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s syscall.Signal) {
	c.t.Helper()
	p := c.members[i]
	if p.cmd == nil {
		c.t.Fatalf("etcd %s is dead", p.about.Name)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("etcd %s: %v", p.about.Name, err)
	}
}

// Leader answers which member leads, as soon as one does and says so.
func (c *Cluster) Leader() int {
	c.t.Helper()
	client := c.Client()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		for i, p := range c.members {
			if p.cmd == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			s, err := client.Status(ctx, c.Endpoints[i])
			cancel()
			if err == nil && s.Leader != 0 && s.Leader == s.Header.MemberId {
				return i
			}
		}
	}
	c.t.Fatalf("no member leads after %v", patience)
	return -1
}

// Compact has etcd forget all but what is true now, and waits until that is out of its file: a
// defragmentation that comes earlier gives nothing back.
func (c *Cluster) Compact() error {
	client := c.Client()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := client.Get(ctx, "/")
	if err != nil {
		return err
	}
	_, err = client.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical())
	return err
}

// Client returns a client of etcd itself. t.Cleanup closes it.
func (c *Cluster) Client() *clientv3.Client {
	c.t.Helper()
	config := clientv3.Config{Endpoints: c.Endpoints, Logger: zap.NewNop()}
	if a := c.options.Authority; a != nil {
		config.TLS = a.client(c.t)
	}
	client, err := clientv3.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() }) // the test is over
	return client
}
