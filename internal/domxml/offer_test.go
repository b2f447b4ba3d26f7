package domxml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// offer is what libvirt 9.0 says of a host's CPU, made shorter.
const offer = `<domainCapabilities>
  <path>/usr/bin/qemu-system-x86_64</path><domain>kvm</domain>
  <cpu>
    <mode name='host-passthrough' supported='yes'>
      <enum name='hostPassthroughMigratable'><value>on</value><value>off</value></enum>
    </mode>
    <mode name='maximum' supported='yes'/>
    <mode name='host-model' supported='yes'>
      <model fallback='forbid'>kvm64</model>
      <vendor>%s</vendor>
      <feature policy='require' name='x2apic'/>
      <feature policy='%s' name='arch-capabilities'/>
    </mode>
    <mode name='custom' supported='no'/>
  </cpu>
</domainCapabilities>`

func TestNoGuestGetsAFeatureThatItsHostHasNot(t *testing.T) {
	for _, row := range []struct{ about, capabilities, want string }{
		{"AMD, and offered", fmt.Sprintf(offer, "AMD", "require"), domxml.ArchCapabilities},
		{"AMD, and not offered", fmt.Sprintf(offer, "AMD", "disable"), ""},
		{"Intel", fmt.Sprintf(offer, "Intel", "require"), ""},
		{"no CPU", "<domainCapabilities/>", ""},
		{"not to be read", "<domainCapabilities>", ""},
		{"nothing", "", ""},
	} {
		if got := domxml.Unfit(row.capabilities); got != row.want {
			t.Errorf("%s: %q is unfit, want %q", row.about, got, row.want)
		}
	}
}

// Who names a CPU gets it as it is named.
func TestADefaultCPUIsWithoutWhatIsUnfit(t *testing.T) {
	const off = `<feature policy="disable" name="arch-capabilities"`
	for _, row := range []struct {
		kind, unfit, model string
		want               bool
	}{
		{domxml.KVM, domxml.ArchCapabilities, "", true},
		{domxml.KVM, domxml.ArchCapabilities, "host", false},
		{domxml.KVM, "", "", false},
		{domxml.QEMU, domxml.ArchCapabilities, "", false},
	} {
		vm := hypervisor.VM{ID: "a/b", Memory: hypervisor.GiB, CPUs: 1,
			Hardware: &hypervisor.Hardware{CPUModel: row.model}}
		s := domxml.Settings{Type: row.kind, Unfit: row.unfit}
		text, err := domxml.Build(vm, s, domxml.Mark{VM: vm})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text, off); got != row.want {
			t.Errorf("%+v: is it taken away? %v\n%s", row, got, text)
		}
	}
}
