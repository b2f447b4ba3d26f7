package domxml

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// defaultNamespace is the namespace of domains whose name has none.
const defaultNamespace = "default"

// maxDomainName is how long a domain's name may be: libvirt keeps it as a file of
// that name with ".xml", and writes it as ".xml.new" first, in a folder whose names have
// at most 255 bytes.
const maxDomainName = 255 - len(".xml.new")

// NameOf returns what libvirt calls a VM: "shop/web" is "shop_web", and in the
// given namespace, which is "default" if it is empty, "web" is enough.
//
// It fails with [hypervisor.Invalid] for a VM whose domain would be taken for
// another VM by [IDOf], or that libvirt could not name.
func NameOf(namespace string, id hypervisor.VMID) (string, error) {
	name := nameOf(namespaceOr(namespace), string(id))
	switch {
	case !nameable(name):
		return "", fmt.Errorf("VM %s cannot be a libvirt domain: its name has to be "+
			"1 to %d bytes of text without line ends: choose another name: %w",
			backend.Quote(string(id)), maxDomainName, hypervisor.Invalid)
	case IDOf(namespace, name) != id:
		return "", fmt.Errorf("VM %s would be the libvirt domain %q, which is VM %q: choose "+
			`a namespace and a name of which the first has no "_", neither is empty, and "_" `+
			"is in no name of the default namespace: %w",
			backend.Quote(string(id)), name, IDOf(namespace, name), hypervisor.Invalid)
	}
	return name, nil
}

// IDOf returns the VM that a libvirt domain of this name is; namespace is that of
// domains without one, and "default" if it is empty. Every domain has a VM, and
// different domains have different ones: a name that no VM leads to stands for
// itself, as a VM without a namespace.
func IDOf(namespace, name string) hypervisor.VMID {
	namespace = namespaceOr(namespace)
	own, rest, split := strings.Cut(name, "_")
	switch {
	case strings.Contains(name, "/"): // QEMU's driver refuses it, others do not
		return hypervisor.VMID("/" + name)
	case !split:
		return hypervisor.VMID(namespace + "/" + name)
	case own == "" || rest == "" || own == namespace:
		return hypervisor.VMID(name)
	}
	return hypervisor.VMID(own + "/" + rest)
}

// nameOf undoes IDOf, where it can be undone.
func nameOf(namespace, id string) string {
	if name, found := strings.CutPrefix(id, "/"); found && strings.Contains(name, "/") {
		return name
	}
	if name, found := strings.CutPrefix(id, namespace+"/"); found {
		return name
	}
	return strings.Replace(id, "/", "_", 1)
}

func namespaceOr(namespace string) string {
	if namespace == "" {
		return defaultNamespace
	}
	return namespace
}

// nameable reports whether libvirt takes a name: it is in an XML document, in one
// line, and in a file's name.
func nameable(name string) bool {
	return name != "" && len(name) <= maxDomainName && xmlText(name) &&
		!strings.Contains(name, "\n")
}

// xmlText reports whether XML can say s.
// Source: XML 1.0, production 2 (Char).
func xmlText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
	})
}

// UUIDOf returns the identity of a VM's domain, which the firmware tells the
// guest. It follows from the VM's name, so that it is the same on every host, with
// every backend, and after every start.
func UUIDOf(id hypervisor.VMID) string {
	h := sha256.Sum256([]byte("godwit VM " + id))
	h[6] = h[6]&0x0f | 0x80 // version 8: made in a way of our own (RFC 9562)
	h[8] = h[8]&0x3f | 0x80 // its variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
