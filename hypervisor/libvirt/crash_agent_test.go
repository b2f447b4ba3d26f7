//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// A post is what an agent is told about its host when it is started.
type post struct {
	Name   name
	Dir    string
	URI    string
	Peer   string
	Accel  string
	Strict bool
	Peers  map[string]string // how this process reaches what libvirtd calls a peer
}

// openPost opens the host of an agent.
func openPost(text []byte, changed func(vmid)) (backendtest.Backend, error) {
	var p post
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	return libvirt.New(context.Background(), p.config(changed))
}

func (p *post) config(changed func(vmid)) libvirt.Config {
	return libvirt.Config{Name: p.Name, Dir: p.Dir, URI: p.URI, Peer: p.Peer,
		Memory: 4 * hypervisor.GiB, CPUs: 64, Accelerator: p.Accel, DebugDir: "/run",
		Timeout: 10 * time.Second, KeepAlive: time.Second, Grace: 500 * time.Millisecond,
		TombstoneTTL: tombstoneTTL, Strict: p.Strict, Changed: changed,
		Reach: func(peer string) string {
			if uri := p.Peers[peer]; uri != "" {
				return uri
			}
			return peer
		}}
}

// tombstoneTTL is how long a host of these tests keeps a VM out that it has discarded.
const tombstoneTTL = 2 * time.Second
