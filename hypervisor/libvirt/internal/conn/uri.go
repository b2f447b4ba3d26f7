package conn

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Default names the libvirtd of this host.
const Default = "qemu:///system"

// transports says of each way to reach a daemon whether it needs a host.
var transports = map[string]bool{"": false, "unix": false, "tcp": true, "tls": true, "ssh": true}

// drivers are the hypervisors that libvirt knows besides QEMU, by the scheme of
// their URIs.
var drivers = map[string]string{"test": "libvirt's own mock", "lxc": "Linux containers",
	"xen": "Xen", "esx": "VMware ESX", "gsx": "VMware Server", "vpx": "VMware vCenter",
	"vmwareplayer": "VMware Player", "vmwarews": "VMware Workstation", "vbox": "VirtualBox",
	"hyperv": "Hyper-V", "bhyve": "bhyve", "ch": "Cloud Hypervisor", "openvz": "OpenVZ",
	"vz": "Virtuozzo", "parallels": "Virtuozzo"}

// Check refuses what cannot name a libvirtd that runs QEMU: Invalid with what is
// wrong, and Unsupported if it names another hypervisor. It asks no daemon.
func Check(uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return refused(hypervisor.Invalid, "libvirt URI: %w: want one like %s", err, Default)
	}
	bad := func(format string, a ...any) error {
		return refused(hypervisor.Invalid, "libvirt URI %s: %s", u.Redacted(),
			fmt.Sprintf(format, a...))
	}
	driver, transport, plus := strings.Cut(u.Scheme, "+")
	if what, known := drivers[driver]; known {
		return refused(hypervisor.Unsupported,
			"libvirt URI %s: %s is %s, not QEMU: only QEMU's VMs can be moved: "+
				"want one like %s", u.Redacted(), driver, what, Default)
	}
	remote, known := transports[transport]
	switch {
	case strings.ContainsRune(uri, 0):
		return bad("it contains a NUL byte")
	case u.Scheme == "":
		return bad("it has no scheme: want one like %s", Default)
	case driver != "qemu":
		return bad("libvirt knows no hypervisor %q: want one like %s", driver, Default)
	case !known || plus && transport == "":
		return bad("unknown transport %q: want unix, tcp, tls or ssh", transport)
	case u.Opaque != "":
		return bad("no // follows the scheme: want one like %s", Default)
	case remote && u.Hostname() == "":
		return bad("the transport %s needs a host: want qemu+%[1]s://HOST/system", transport)
	case transport == "unix" && u.Host != "":
		return bad("the transport unix reaches only this host, not %s: want tcp, tls or ssh, "+
			"or three slashes before the path", u.Host)
	case u.Fragment != "":
		return bad("libvirt knows no fragments: %q", u.Fragment)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return bad("the port %s is not one of 1 to 65535", port)
		}
	}
	if err := checkTarget(u); err != nil {
		return bad("%v", err)
	}
	return nil
}

// checkTarget looks at the path and the parameters of a URI.
func checkTarget(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("its parameters: %w", err)
	}
	socket, named := query["socket"]
	switch {
	case named && !filepath.IsAbs(socket[0]):
		return fmt.Errorf("socket=%s must be an absolute path", socket[0])
	case named && len(socket) > 1:
		return fmt.Errorf("it names %d sockets: want one", len(socket))
	// Without a socket, libvirt would start a daemon for the session.
	case u.Path == "/session" && !named:
		return fmt.Errorf("a session's daemon ends with the session: want /system, " +
			"or name the daemon's socket with ?socket=")
	case u.Path != "/system" && u.Path != "/session":
		return fmt.Errorf("the path is %q: want /system", u.Path)
	}
	return nil
}

// Shown is the URI without its password.
func Shown(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "libvirt"
	}
	return u.Redacted()
}

func refused(kind hypervisor.Kind, format string, a ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, a...)}
}
