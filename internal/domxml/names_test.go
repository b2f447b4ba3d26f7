package domxml_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

func TestNames(t *testing.T) {
	tests := []struct {
		about     string
		namespace string
		id        hypervisor.VMID
		name      string // "" if the VM cannot be a domain
	}{
		{"the default namespace is not written", "", "default/web", "web"},
		{"the caller chooses which one is the default", "shop", "shop/web", "web"},
		{"then default is one like others", "shop", "default/web", "default_web"},
		{"namespace and name are joined as KubeVirt does", "", "shop/web", "shop_web"},
		{"a name may have what a namespace may not", "", "shop/web_1", "shop_web_1"},
		{"a namespace with the joint would be another one", "", "a_b/c", ""},
		{"so would a name in the default namespace", "", "default/a_b", ""},
		{"a foreign domain's VM comes back as itself", "", "default_web", "default_web"},
		{"so does a name that begins with the joint", "", "_web", "_web"},
		{"a VM without a namespace is not that of the default one", "", "web", ""},
		{"no name", "", "default/", ""},
		{"no namespace", "", "/web", ""},
		{"nothing", "", "", ""},
		{"a slash too many", "", "shop/web/1", ""},
		{"a line end is in no name", "", "shop/a\nb", ""},
		{"what XML cannot say is in no name", "", "shop/a\x01b", ""},
		{"what is not text is in no name", "", "shop/a\xffb", ""},
		{"libvirt makes a file of the name", "", hypervisor.VMID("s/" + strings.Repeat("x", 245)),
			"s_" + strings.Repeat("x", 245)},
		{"a file's name has a limit", "", hypervisor.VMID("s/" + strings.Repeat("x", 246)), ""},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			name, err := domxml.NameOf(tt.namespace, tt.id)
			if name != tt.name || (err == nil) != (tt.name != "") {
				t.Fatalf("NameOf(%q) = %q, %v; want %q", tt.id, name, err, tt.name)
			}
			if err != nil {
				if !errors.Is(err, hypervisor.Invalid) || !strings.Contains(err.Error(), "choose") {
					t.Errorf("the error is not Invalid, or does not say what to do: %v", err)
				}
				return
			}
			if id := domxml.IDOf(tt.namespace, name); id != tt.id {
				t.Errorf("IDOf(%q) = %q, want %q", name, id, tt.id)
			}
		})
	}
}

// TestEveryDomainIsOneVM: whatever a domain is called, its VM leads back to it. So
// no two domains are the same VM.
func TestEveryDomainIsOneVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces := []string{"", "default", "a", "a_b", "a/b"}
		namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
		name := rapid.OneOf(rapid.StringMatching(`[ab_/]{1,7}`),
			rapid.StringMatching(`default_?[a_/]{0,3}`),
			rapid.StringMatching(`[ -~äλ世 \t]{1,20}`)).Draw(t, "name")
		id := domxml.IDOf(namespace, name)
		back, err := domxml.NameOf(namespace, id)
		if err != nil || back != name {
			t.Fatalf("%q is VM %q, which is %q, %v", name, id, back, err)
		}
	})
}

// TestAVMThatHasADomainComesBack: and no two VMs are the same domain.
func TestAVMThatHasADomainComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespace := rapid.SampledFrom([]string{"", "a", "a_b"}).Draw(t, "namespace")
		id := hypervisor.VMID(rapid.OneOf(rapid.StringMatching(`[ab_/]{0,7}`),
			rapid.StringMatching(`(default|a|b)/[a-z_]{1,5}`), rapid.String()).Draw(t, "id"))
		name, err := domxml.NameOf(namespace, id)
		if err == nil && domxml.IDOf(namespace, name) != id {
			t.Fatalf("VM %q is the domain %q, which is VM %q", id, name,
				domxml.IDOf(namespace, name))
		}
	})
}

func TestUUIDsFollowFromTheName(t *testing.T) {
	const want = "4a1774f1-f0b4-884d-a943-daae8110b9a0"
	if got := domxml.UUIDOf("shop/web_1"); got != want {
		t.Errorf("%s: a UUID that was handed out must not change; want %s", got, want)
	}
	if domxml.UUIDOf("a/b") == domxml.UUIDOf("a/c") {
		t.Error("two VMs have one UUID")
	}
}
