package conn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
)

// uris are what may stand for a libvirtd, and what is wrong with it; "" is nothing.
var uris = []struct {
	uri  string
	kind hypervisor.Kind
	want string
}{
	{"qemu:///system", 0, ""},
	{"qemu+unix:///system", 0, ""},
	{"qemu+unix:///system?socket=/run/a/sock", 0, ""},
	{"qemu+unix:///session?socket=/run/a/sock", 0, ""},
	{"qemu+tcp://10.0.0.1/system", 0, ""},
	{"qemu+tcp://[::1]:16509/system", 0, ""},
	{"qemu+tls://host.example:16514/system?pkipath=/etc/pki", 0, ""},
	{"qemu://host.example/system", 0, ""},
	{"qemu+ssh://root@host.example:22/system?keyfile=/k", 0, ""},

	{"", hypervisor.Invalid, "it has no scheme: want one like qemu:///system"},
	{"nonsense", hypervisor.Invalid, "it has no scheme"},
	{"/run/libvirt/libvirt-sock", hypervisor.Invalid, "it has no scheme"},
	{"://", hypervisor.Invalid, "missing protocol scheme"},
	{"qemu:///system\x00", hypervisor.Invalid, "invalid control character"},
	{"qemu:///sys%zz", hypervisor.Invalid, "invalid URL escape"},
	{"qemu:system", hypervisor.Invalid, "no // follows the scheme"},
	{"http://host/system", hypervisor.Invalid, `libvirt knows no hypervisor "http"`},
	{"qemu+carrier://host/system", hypervisor.Invalid, `unknown transport "carrier"`},
	{"qemu+ext:///system?command=/bin/sh", hypervisor.Invalid, `unknown transport "ext"`},
	{"qemu+:///system", hypervisor.Invalid, `unknown transport ""`},
	{"qemu+tcp:///system", hypervisor.Invalid,
		"the transport tcp needs a host: want qemu+tcp://HOST/system"},
	{"qemu+ssh:///system", hypervisor.Invalid, "the transport ssh needs a host"},
	{"qemu+tls://:16514/system", hypervisor.Invalid, "the transport tls needs a host"},
	{"qemu+unix://run/sock", hypervisor.Invalid, "reaches only this host, not run"},
	{"qemu+tcp://host:0/system", hypervisor.Invalid, "the port 0 is not one of 1 to 65535"},
	{"qemu+tcp://host:65536/system", hypervisor.Invalid, "the port 65536"},
	{"qemu+tcp://host:x/system", hypervisor.Invalid, "invalid port"},
	{"qemu:///system#1", hypervisor.Invalid, `no fragments: "1"`},
	{"qemu:///", hypervisor.Invalid, `the path is "/": want /system`},
	{"qemu:///embed?root=/x", hypervisor.Invalid, `the path is "/embed"`},
	{"qemu:///session", hypervisor.Invalid, "a session's daemon ends with the session"},
	{"qemu:///system?socket=sock", hypervisor.Invalid, "socket=sock must be an absolute path"},
	{"qemu:///system?socket=", hypervisor.Invalid, "socket= must be an absolute path"},
	{"qemu:///system?socket=/a&socket=/b", hypervisor.Invalid, "it names 2 sockets"},
	{"qemu:///system?a;b", hypervisor.Invalid, "invalid semicolon"},

	{"test:///default", hypervisor.Unsupported, "test is libvirt's own mock, not QEMU"},
	{"lxc:///system", hypervisor.Unsupported, "lxc is Linux containers, not QEMU"},
	{"xen:///system", hypervisor.Unsupported, "xen is Xen, not QEMU"},
	{"esx+ssh://root:secret@host/", hypervisor.Unsupported, "esx is VMware ESX, not QEMU"},
}

func TestCheck(t *testing.T) {
	for _, row := range uris {
		t.Run(row.uri, func(t *testing.T) {
			err := conn.Check(row.uri)
			if row.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, row.kind) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %v and %q", err, row.kind, row.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	for _, row := range uris {
		f.Add(row.uri)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := conn.Check(text)
		if err != nil && !errors.Is(err, hypervisor.Invalid) &&
			!errors.Is(err, hypervisor.Unsupported) {
			t.Errorf("got %v", err)
		}
	})
}

func TestShownTellsNoPassword(t *testing.T) {
	for text, want := range map[string]string{"qemu:///system": "qemu:///system",
		"qemu+ssh://me:secret@host/system": "qemu+ssh://me:xxxxx@host/system",
		"qemu:///%zz":                      "libvirt"} {
		if got := conn.Shown(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
