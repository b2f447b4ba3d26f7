package domxml

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/beevik/etree"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// What libvirt files a [Mark] under, in a domain's metadata.
const (
	MarkURI    = "https://godwit-vm.github.io/xmlns/domain/1.0" // the namespace of its element
	MarkPrefix = "godwit"                                       // the namespace's prefix
	markTag    = "vm"
)

// A Mark is what godwit writes into the metadata of a domain, so that nothing about
// it is kept only in memory.
type Mark struct {
	// VM is the VM as it was asked for, with defaults and aliases that libvirt's
	// XML spells out and with the sizes of disks, which it does not know.
	VM hypervisor.VM
	// Job is the migration that the domain takes part in, or took part in last.
	Job hypervisor.JobID `json:",omitempty"`
	// Boot is the last start of the VM that was counted: see [hypervisor.Start].
	Boot int `json:",omitempty"`
	// Source is the host that the domain came from; "" if it was made here.
	Source hypervisor.HostName `json:",omitempty"`
	// From is how other hosts' libvirtds connect to that of Source.
	From string `json:",omitempty"`
	// Cold says that the job moves the VM while it is shut off.
	Cold bool `json:",omitempty"`
	// Resting says that the job moves the VM while it is paused, and that it stays so.
	Resting bool `json:",omitempty"`
}

// XML returns the mark as the element that virDomainSetMetadata takes, together
// with [MarkPrefix] and [MarkURI]. All of it is in the element's text: libvirt puts
// the namespace on the outermost element only. The text is ASCII.
func (m Mark) XML() (string, error) {
	body, err := json.Marshal(m) // <, > and & become \u003c, \u003e and \u0026
	if err != nil {
		return "", fmt.Errorf("the mark of VM %s cannot be written: %w",
			backend.Quote(string(m.VM.ID)), err)
	}
	return "<" + markTag + ">" + ascii(string(body)) + "</" + markTag + ">", nil
}

// element returns the mark with its namespace, as it is in a domain's XML.
func (m Mark) element() (string, error) {
	plain, err := m.XML()
	body := strings.TrimSuffix(strings.TrimPrefix(plain, "<"+markTag+">"), "</"+markTag+">")
	tag := MarkPrefix + ":" + markTag
	return "<" + tag + " xmlns:" + MarkPrefix + "='" + MarkURI + "'>" + body + "</" + tag + ">", err
}

// ParseMark reads the element that virDomainGetMetadata answers. It fails with
// [hypervisor.Invalid] if it is no mark.
func ParseMark(xml string) (Mark, error) {
	d, err := parse(xml, markTag)
	if err != nil {
		return Mark{}, err
	}
	return markOf(d.Root)
}

func markOf(e *etree.Element) (Mark, error) {
	var m Mark
	if err := json.Unmarshal([]byte(e.Text()), &m); err != nil {
		return Mark{}, fmt.Errorf("the metadata of godwit in the domain are not what it wrote "+
			"(%v): remove them with 'virsh metadata --remove --uri %s', and the domain counts "+
			"as foreign: %w", err, MarkURI, hypervisor.Invalid)
	}
	return m, nil
}

// ascii returns JSON with what is not ASCII escaped, which is in strings only.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// findMark returns the element of the mark in a domain; nil if there is none.
func findMark(domain *etree.Element) *etree.Element {
	metadata := child(domain, "metadata")
	if metadata == nil {
		return nil
	}
	for _, e := range metadata.ChildElements() {
		if e.NamespaceURI() == MarkURI {
			return e
		}
	}
	return nil
}

// SetMark returns the domain's XML with the mark m instead of the one it has, if
// any. It fails with [hypervisor.Invalid] for XML that is no domain.
func SetMark(xml string, m Mark) (string, error) {
	d, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	text, err := m.element()
	if err != nil {
		return "", err
	}
	mark, err := fragment(text)
	if err != nil {
		return "", err
	}
	if old := findMark(d.Root); old != nil {
		replace(old, mark)
	} else {
		add(ensure(d.Root, "metadata"), mark)
	}
	return d.String(), nil
}
