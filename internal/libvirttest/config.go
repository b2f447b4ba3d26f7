//go:build linux

package libvirttest

import (
	"fmt"
	"time"
)

// Paths inside the hosts.
const (
	imagesDir = "/var/lib/libvirt/images"
	pulseDir  = "/run/pulse"
	hostsFile = "/run/hosts"
	daemonLog = "/var/log/libvirt/libvirtd.log"
	daemonOut = "/var/log/libvirt/libvirtd.out"
	daemonCnf = "/etc/libvirt/libvirtd.conf"
)

// PeerTimeout is after how long at least without an answer a libvirtd gives up its peer: keepalive_interval times
// keepalive_count. With less a machine that is busy loses peers that are there.
const PeerTimeout = 10 * time.Second

// keepalive returns libvirt's interval, in seconds, and count.
func (o Options) keepalive() (interval, count int) {
	if o.QuickLoss {
		return 1, 3
	}
	return 2, int(PeerTimeout / (2 * time.Second))
}

// hostsText lets the two hosts find each other.
const hostsText = "127.0.0.1 localhost\n10.99.0.1 hosta\n10.99.0.2 hostb\n"

// libvirtdConf is the daemon's configuration.
const libvirtdConf = `listen_tcp = 1
auth_tcp = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
host_uuid = "%[1]s"
log_outputs = "2:file:%[2]s"
log_filters = "3:object 3:util 3:rpc 3:event 3:daemon 3:conf 3:node_device"
keepalive_interval = %[3]d
keepalive_count = %[4]d
`

// qemuConf is the configuration of libvirt's QEMU driver. There is no logging
// daemon, no cgroup and no security driver in a host.
const qemuConf = `user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
security_default_confined = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
migration_address = "0.0.0.0"
migration_host = "%[1]s"
keepalive_interval = %[2]d
keepalive_count = %[3]d
`

// files are the texts that a host boots with, by path inside.
func (h *host) files() map[string]string {
	interval, count := h.lab.options.keepalive()
	libvirtd := fmt.Sprintf(libvirtdConf, h.uuid(), daemonLog, interval, count)
	qemu := fmt.Sprintf(qemuConf, h.name, interval, count)
	if dir := h.lab.tls; dir == "" {
		libvirtd += "listen_tls = 0\n"
	} else {
		libvirtd += fmt.Sprintf("listen_tls = 1\nauth_tls = \"none\"\n"+
			"key_file = \"%[1]s/server-key.pem\"\ncert_file = \"%[1]s/server-cert.pem\"\n"+
			"ca_file = \"%[1]s/ca-cert.pem\"\n", dir)
		qemu += fmt.Sprintf("migrate_tls_x509_cert_dir = %q\nmigrate_tls_x509_verify = 1\n", dir)
	}
	return map[string]string{hostsFile: hostsText, daemonCnf: libvirtd,
		"/etc/libvirt/qemu.conf": qemu}
}

// uuid is the host's own, which libvirt tells hosts apart by.
func (h *host) uuid() string {
	return fmt.Sprintf("0000000%[1]d-0000-4000-8000-00000000000%[1]d", h.number)
}
