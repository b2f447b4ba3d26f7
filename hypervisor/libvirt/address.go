package libvirt

// This file is what a target answers to Receive and its source is given: where
// the target's libvirtd is, as the libvirtd of the source reaches it, for which job it
// is, and what the VM is to be there.
//
//	libvirt:?cpus=…&host=n2&hold=true&job=…&peer=qemu%2Btcp%3A%2F%2Fn2%2Fsystem&token=…&vm=…
//
// It does no I/O.

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Target is what an address says.
type targetAddress struct {
	// Peer is libvirt's name of the connection to the target, as the source's
	// libvirtd opens it: "qemu+tls://n2/system".
	Peer string
	Host hypervisor.HostName
	Job  hypervisor.JobID
	// VM is what the VM is to be at the target: its disks and pins may be others.
	VM hypervisor.VM
	// Hold: the VM is not to start by itself.
	Hold bool
	// Token tells two targets apart that are alike otherwise.
	Token string
}

const (
	scheme = "libvirt"
	// longest bounds what is read as an address, in bytes.
	longest = 64 << 10
)

// String is the address.
func (t targetAddress) String() string {
	vm, _ := json.Marshal(t.VM) // a VM is made of texts and numbers
	q := url.Values{"peer": {t.Peer}, "host": {string(t.Host)}, "job": {string(t.Job)},
		"token": {t.Token}, "vm": {string(vm)}}
	if t.Hold {
		q.Set("hold", "true")
	}
	return scheme + ":?" + q.Encode()
}

// parseAddress reads an address. The error says what is wrong with it.
func parseAddress(a hypervisor.Address) (targetAddress, error) {
	if len(a) > longest {
		return targetAddress{}, fmt.Errorf("the address has %d bytes, and %d are the most",
			len(a), longest)
	}
	u, err := url.Parse(string(a))
	if err != nil {
		return targetAddress{}, fmt.Errorf("%q is no address that Receive answered", a)
	}
	q, err := url.ParseQuery(u.RawQuery)
	t := targetAddress{Peer: q.Get("peer"), Host: hypervisor.HostName(q.Get("host")),
		Job: hypervisor.JobID(q.Get("job")), Hold: q.Get("hold") == "true", Token: q.Get("token")}
	if err != nil || u.Scheme != scheme || t.Peer == "" || t.Job == "" || t.Token == "" {
		return targetAddress{}, fmt.Errorf("%q is no address that Receive answered", a)
	}
	if err := json.Unmarshal([]byte(q.Get("vm")), &t.VM); err != nil {
		return targetAddress{}, fmt.Errorf("the address of job %s: vm: %w", t.Job, err)
	}
	return t, nil
}
