//go:build linux

package qmp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A post is what a process of ours is told about its host when it is started.
type post struct {
	Name     name
	Dir      string
	Accel    string
	Features qemu.Features
	Link     string // the socket where addresses are advertised; "" is not at all
	Spy      string // the socket of a second monitor of its QEMUs
}

// openPost opens the host of an agent.
func openPost(text []byte, changed func(vmid)) (backendtest.Backend, error) {
	var p post
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	c := qmp.Config{Name: p.Name, Dir: p.Dir, Locks: filepath.Join(filepath.Dir(p.Dir), "locks"),
		Memory: hypervisor.GiB, CPUs: 64,
		Accelerator: p.Accel, Timeout: 5 * time.Second,
		TargetTimeout: 150 * time.Millisecond,
		Args:          []string{"-qmp", "unix:" + p.Spy + ",server=on,wait=off"}, Changed: changed}
	c.SetFeatures(&p.Features)
	if p.Link != "" {
		c.Advertise = func(address string) string { return advertised(p.Link, address) }
	}
	return qmp.New(context.Background(), c)
}

// advertised asks the test where an address is reached through the link.
func advertised(socket, address string) string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return address
	}
	defer c.Close()
	fmt.Fprintln(c, address)
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return address
	}
	return strings.TrimSpace(answer)
}

// advertise answers the agents' questions where they are reached through a link.
func advertise(l *link, socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				fmt.Fprintln(c, l.advertise(strings.TrimSpace(line)))
			}
			c.Close()
		}
	})
	return func() { listener.Close(); running.Wait() }, nil
}
